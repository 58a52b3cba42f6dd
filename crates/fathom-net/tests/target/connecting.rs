//! Connect, properties, admin commands, discovery and reset.

use fathom_nvme::{
    Command, Connect, ControllerIdentity, ControllerKind, DISCOVERY_NQN, FabricsType, Opcode, Pdu,
    Property, PropertyAccess, Status,
};

use crate::bare_host::{BareHost, HOST, connect, inside, outside, transfer};
use crate::setup::{BOTH, NO_DIGESTS, NQN, config, connections, null, start, wait_for};

fn identify(cns: u32, nsid: u32) -> Command {
    Command::new(Opcode::IDENTIFY, 4)
        .with_nsid(nsid)
        .with_dword(10, cns)
        .with_data(outside(4096))
}

fn property(host: &mut BareHost, property: Property, is_wide: bool) -> u64 {
    let access = PropertyAccess {
        property,
        is_wide,
        value: 0,
    };
    let command = access.encode(FabricsType::PROPERTY_GET, 3);
    host.run(command, &[]).0.result
}

/// The order of Linux: CC is written without EN first, and read back.
#[test]
fn a_host_brings_a_controller_up_and_down() {
    for digests in [NO_DIGESTS, BOTH] {
        let (target, address, log) = start(config(null(), 2));
        let mut host = BareHost::open(address, digests);
        let completion = host.connect(&connect(0, Connect::ANY_CONTROLLER));
        host.cntlid = u16::try_from(completion.result).unwrap();
        assert_eq!(property(&mut host, Property::CAP, true) & 0xffff, 127);
        host.set_configuration(0x46_0000);
        assert_eq!(property(&mut host, Property::CC, false), 0x46_0000);
        assert_eq!(property(&mut host, Property::CSTS, false), 0);
        let mut early = BareHost::open(address, digests);
        let refused = early.connect(&connect(1, host.cntlid));
        assert_eq!(refused.status.type_and_code(), (1, 0x82), "not enabled");
        host.set_configuration(0x46_0001);
        assert_eq!(property(&mut host, Property::CSTS, false), 1);
        assert_eq!(property(&mut host, Property::VS, false), 0x1_0400);
        let page = host.succeed(identify(1, 0), &[]);
        let identity = ControllerIdentity::decode(page[..].first_chunk().unwrap());
        assert_eq!(identity.cntlid, host.cntlid);
        assert_eq!(identity.subsystem_nqn, NQN);
        assert_eq!((identity.mdts, identity.in_capsule_bytes), (5, 4096));
        let events = Command::new(Opcode::ASYNC_EVENT_REQUEST, 31);
        host.send(&Pdu::Command(events), &[]);
        let queues = Command::new(Opcode::SET_FEATURES, 9)
            .with_dword(10, 7)
            .with_dword(11, 0x1_0001)
            .with_data(inside(0));
        assert_eq!(host.run(queues, &[]).0.result, 0x1_0001);
        let mut queue = host.io(address, 1, digests);
        queue.succeed(transfer(Opcode::READ, 1, 0, 4096), &[]);
        // Shutdown: status first, then the host closes.
        host.set_configuration(0x46_4001);
        assert_eq!(property(&mut host, Property::CSTS, false), 9);
        drop(host);
        queue.wait_end();
        wait_for(&target, |statistics| connections(statistics) == 1);
        assert!(log.contain("ControllerEnded"));
    }
}

#[test]
fn a_reset_closes_the_io_queues_and_keeps_the_admin_queue() {
    let (target, address, _) = start(config(null(), 2));
    let mut admin = BareHost::admin(address, NO_DIGESTS);
    let mut queues: Vec<_> = (1..4)
        .map(|qid| admin.io(address, qid, NO_DIGESTS))
        .collect();
    admin.set_configuration(0x46_0000);
    for queue in &mut queues {
        queue.wait_end();
    }
    assert_eq!(property(&mut admin, Property::CSTS, false), 0);
    wait_for(&target, |statistics| connections(statistics) == 1);
    admin.set_configuration(0x46_0001);
    let mut queue = admin.io(address, 1, NO_DIGESTS);
    queue.succeed(transfer(Opcode::READ, 1, 0, 4096), &[]);
}

#[test]
fn the_end_of_an_io_queue_is_that_of_the_queue_alone() {
    let (target, address, _) = start(config(null(), 2));
    let mut admin = BareHost::admin(address, NO_DIGESTS);
    let first = admin.io(address, 1, NO_DIGESTS);
    let mut second = admin.io(address, 2, NO_DIGESTS);
    drop(first);
    wait_for(&target, |statistics| connections(statistics) == 2);
    second.succeed(transfer(Opcode::READ, 1, 0, 4096), &[]);
    admin.succeed(identify(1, 0), &[]);
    let mut again = admin.io(address, 1, NO_DIGESTS);
    again.succeed(transfer(Opcode::READ, 1, 0, 4096), &[]);
}

#[track_caller]
fn check_refused(connect: &Connect, want: (u8, u8), result: u64) {
    let mut config = config(null(), 1);
    config.subsystems[0].allowed_hosts = Some(vec![HOST.to_owned()]);
    let (_target, address, log) = start(config);
    let admin = BareHost::admin(address, NO_DIGESTS);
    assert_eq!(admin.cntlid, 1);
    let _queue = admin.io(address, 1, NO_DIGESTS);
    let mut host = BareHost::open(address, NO_DIGESTS);
    let completion = host.connect(connect);
    assert_eq!(completion.status.type_and_code(), want, "{connect:?}");
    assert_eq!(completion.result, result, "{connect:?}");
    assert!(completion.status.has_do_not_retry());
    assert!(log.contain("Refused"));
}

#[test]
fn admin_queues_are_refused_with_the_status_of_the_specification() {
    let base = || connect(0, Connect::ANY_CONTROLLER);
    let format = Connect {
        record_format: 1,
        ..base()
    };
    check_refused(&format, (1, 0x80), 0);
    for sq_size in [0, 128] {
        let size = Connect { sq_size, ..base() };
        check_refused(&size, (1, 0x82), 44);
    }
    check_refused(&connect(0, 1), (1, 0x82), IN_DATA | 16);
    let subsystem = Connect {
        subsystem_nqn: UNKNOWN.to_owned(),
        ..base()
    };
    check_refused(&subsystem, (1, 0x82), IN_DATA | 256);
    let stranger = Connect {
        host_nqn: STRANGER.to_owned(),
        ..base()
    };
    check_refused(&stranger, (1, 0x84), 0);
}

#[test]
fn io_queues_are_refused_with_the_status_of_the_specification() {
    check_refused(&connect(2, 9), (1, 0x82), IN_DATA | 16);
    check_refused(&connect(1, 1), (1, 0x01), 0);
    check_refused(&connect(129, 1), (1, 0x01), 0);
    let subsystem = Connect {
        subsystem_nqn: UNKNOWN.to_owned(),
        ..connect(2, 1)
    };
    check_refused(&subsystem, (1, 0x82), IN_DATA | 256);
    let stranger = Connect {
        host_nqn: STRANGER.to_owned(),
        ..connect(2, 1)
    };
    check_refused(&stranger, (1, 0x82), IN_DATA | 512);
    let size = Connect {
        sq_size: 1024,
        ..connect(2, 1)
    };
    check_refused(&size, (1, 0x82), 44);
}

/// A field of the data is at fault, not of the command.
const IN_DATA: u64 = 1 << 16;
const UNKNOWN: &str = "nqn.2026-01.io.fathom:other";
const STRANGER: &str = "nqn.2014-08.org.nvmexpress:uuid:stranger";

/// More data than a host expects end its connection.
#[test]
fn pages_have_the_length_that_the_host_has_room_for() {
    let (_target, address, _) = start(config(null(), 1));
    let mut host = BareHost::admin(address, NO_DIGESTS);
    let health = Command::new(Opcode::GET_LOG_PAGE, 5).with_dword(10, 127 << 16 | 0x02);
    let length = Status::DATA_SGL_LENGTH_INVALID.do_not_retry();
    let kind = Status::SGL_TYPE_INVALID.do_not_retry();
    for (command, pointer, want) in [
        (identify(1, 0), outside(4096), Status::SUCCESS),
        (identify(1, 0), outside(512), length),
        (identify(1, 0), outside(8192), length),
        (identify(1, 0), inside(0), kind),
        (health, outside(512), Status::SUCCESS),
        (health, outside(508), length),
    ] {
        let (completion, page) = host.run(command.with_data(pointer), &[]);
        assert_eq!(completion.status, want, "{command:?}");
        assert_eq!(page.is_empty(), want != Status::SUCCESS, "{command:?}");
    }
}

/// The host of SPDK's benchmark has no name.
#[test]
fn a_host_without_a_name_is_any_host() {
    let (_target, address, _) = start(config(null(), 1));
    let mut host = BareHost::open(address, NO_DIGESTS);
    let nameless = Connect {
        host_nqn: String::new(),
        ..connect(0, Connect::ANY_CONTROLLER)
    };
    assert!(host.connect(&nameless).status.is_success());
}

#[test]
fn only_connect_comes_first() {
    let (_target, address, _) = start(config(null(), 1));
    let mut host = BareHost::open(address, NO_DIGESTS);
    let sequence = Status::COMMAND_SEQUENCE_ERROR.do_not_retry();
    assert_eq!(host.run(identify(1, 0), &[]).0.status, sequence);
    let read = transfer(Opcode::READ, 1, 0, 4096);
    assert_eq!(host.run(read, &[]).0.status, sequence);
    assert!(
        host.connect(&connect(0, Connect::ANY_CONTROLLER))
            .status
            .is_success()
    );
}

#[test]
fn discovery_lists_what_the_host_may_use() {
    let mut config = config(null(), 1);
    let mut other = config.subsystems[0].clone();
    other.nqn = "nqn.2026-01.io.fathom:other".to_owned();
    other.allowed_hosts = Some(Vec::new());
    config.subsystems.push(other);
    config.listen = vec!["0.0.0.0:0".parse().unwrap()];
    let (_target, address, _) = start(config);
    let address = (std::net::Ipv4Addr::LOCALHOST, address.port()).into();
    let mut host = BareHost::open(address, NO_DIGESTS);
    let discovery = Connect {
        subsystem_nqn: DISCOVERY_NQN.to_owned(),
        ..connect(0, Connect::ANY_CONTROLLER)
    };
    host.cntlid = u16::try_from(host.connect(&discovery).result).unwrap();
    host.set_configuration(0x46_0001);
    let page = host.succeed(identify(1, 0), &[]);
    let identity = ControllerIdentity::decode(page[..].first_chunk().unwrap());
    assert_eq!(identity.kind, ControllerKind::Discovery);
    assert_eq!(identity.subsystem_nqn, DISCOVERY_NQN);
    let log = Command::new(Opcode::GET_LOG_PAGE, 5)
        .with_dword(10, 511 << 16 | 0x70)
        .with_data(outside(2048));
    let page = host.succeed(log, &[]);
    assert_eq!(page[8..16], [1, 0, 0, 0, 0, 0, 0, 0], "one record");
    let record = &page[1024..];
    assert_eq!(record[..3], [3, 1, 2]);
    assert!(record[256..].starts_with(NQN.as_bytes()));
    assert!(record[512..].starts_with(b"127.0.0.1"));
    assert!(record[32..].starts_with(address.port().to_string().as_bytes()));
    let mut queue = BareHost::open(address, NO_DIGESTS);
    let refused = queue.connect(&Connect {
        qid: 1,
        cntlid: host.cntlid,
        ..discovery
    });
    assert!(!refused.status.is_success());
}

use super::*;
use crate::identify::NamespaceIdentity;
use crate::log_pages::DiscoveryEntry;
use crate::subsystem::Discovery;
use crate::wire::{u16_at, u64_at};

const LIMITS: ControllerLimits = ControllerLimits {
    queues: 128,
    queue_entries: 128,
    mdts: 5,
    in_capsule_bytes: 4096,
    optional: OptionalCommands {
        compare: false,
        dataset_management: true,
        write_zeroes: true,
        write_uncorrectable: false,
        verify: false,
    },
};

fn subsystem() -> Subsystem {
    let namespace = NamespaceIdentity {
        blocks: 1 << 18,
        block_shift: 12,
        nguid: [7; 16],
        is_write_protected: false,
    };
    Subsystem {
        nqn: "nqn.2026-01.io.fathom:test".into(),
        serial: "1".into(),
        model: "Fathom".into(),
        firmware: "0.1".into(),
        allowed_hosts: Some(vec!["nqn.host".into()]),
        namespaces: vec![(1, namespace), (3, namespace)],
        discovery: None,
    }
}

fn controller(subsystem: Subsystem, keep_alive_ms: u32) -> Controller {
    let host = ([0; 16], keep_alive_ms);
    Controller::new(5, Arc::new(subsystem), LIMITS, host, Tick::ZERO)
}

/// Runs a command and returns its result, or its status code type and code.
#[track_caller]
fn result_of(controller: &mut Controller, command: Command) -> Result<u64, (u8, u8)> {
    match controller.admin(&command, &[], Tick::ZERO) {
        Answer::Complete(completion) | Answer::Data(_, completion) => {
            assert_eq!(completion.cid, command.cid());
            match completion.status.is_success() {
                true => Ok(completion.result),
                false => Err(completion.status.type_and_code()),
            }
        }
        Answer::Held => panic!("{command:?} is held"),
    }
}

#[track_caller]
fn data_of(controller: &mut Controller, command: Command) -> Vec<u8> {
    match controller.admin(&command, &[], Tick::ZERO) {
        Answer::Data(data, _) => data,
        other => panic!("{command:?}: {other:?}"),
    }
}

fn get(property: Property, is_wide: bool) -> Command {
    let access = PropertyAccess {
        property,
        is_wide,
        value: 0,
    };
    access.encode(FabricsType::PROPERTY_GET, 1)
}

fn set_cc(value: u64) -> Command {
    let access = PropertyAccess {
        property: Property::CC,
        is_wide: false,
        value,
    };
    access.encode(FabricsType::PROPERTY_SET, 2)
}

fn identify(cns: u32, nsid: u32) -> Command {
    Command::new(Opcode::IDENTIFY, 3)
        .with_nsid(nsid)
        .with_dword(10, cns)
}

/// Returns an enabled controller.
fn enabled() -> Controller {
    let mut controller = controller(subsystem(), 5000);
    assert_eq!(result_of(&mut controller, set_cc(0x46_0001)), Ok(0));
    controller
}

/// The command sequence of a Linux 6.1 host, from a trace, with the values it read.
#[test]
fn linux_connects() {
    let mut controller = controller(subsystem(), 5000);
    let answer = |controller: &mut Controller, command| result_of(controller, command);
    let cap = answer(&mut controller, get(Property::CAP, true)).expect("CAP");
    assert_eq!(cap, 0x20_1e01_007f);
    assert_eq!(answer(&mut controller, set_cc(0x46_0000)), Ok(0));
    assert_eq!(
        answer(&mut controller, get(Property::CC, false)),
        Ok(0x46_0000)
    );
    assert_eq!(answer(&mut controller, get(Property::CSTS, false)), Ok(0));
    assert_eq!(
        answer(&mut controller, identify(1, 0)),
        Err((0, 0x0c)),
        "not enabled"
    );
    assert_eq!(answer(&mut controller, set_cc(0x46_0001)), Ok(0));
    assert_eq!(answer(&mut controller, get(Property::CSTS, false)), Ok(1));
    assert_eq!(
        answer(&mut controller, get(Property::VS, false)),
        Ok(0x1_0400)
    );
    let page = data_of(&mut controller, identify(1, 0));
    assert_eq!((page.len(), u16_at(&page, 78)), (4096, 5));
    let queues = Command::new(Opcode::SET_FEATURES, 4)
        .with_dword(10, 7)
        .with_dword(11, 0x1_0001);
    assert_eq!(answer(&mut controller, queues), Ok(0x1_0001));
    assert_eq!(controller.qid_max(), 2);
    assert_eq!(
        answer(&mut controller, queues),
        Err((0, 0x0c)),
        "a second time"
    );
    let list = data_of(&mut controller, identify(2, 1));
    assert_eq!((u32_at(&list, 0), u32_at(&list, 4)), (3, 0));
    // Disconnect: shutdown, then the status says that it is complete.
    assert_eq!(answer(&mut controller, set_cc(0x46_4001)), Ok(0));
    assert_eq!(answer(&mut controller, get(Property::CSTS, false)), Ok(9));
    assert!(controller.is_shut_down());
    assert_eq!(controller.deadline(), None);
}

#[test]
fn namespaces_are_identified_or_refused() {
    let mut controller = enabled();
    let page = data_of(&mut controller, identify(0, 1));
    assert_eq!(u64_at(&page, 0), 1 << 18);
    assert_eq!(
        data_of(&mut controller, identify(0, 2)),
        [0; 4096],
        "inactive"
    );
    for nsid in [0, 4, u32::MAX] {
        assert_eq!(
            result_of(&mut controller, identify(0, nsid)),
            Err((0, 0x0b)),
            "{nsid}"
        );
    }
    assert_eq!(result_of(&mut controller, identify(0x42, 1)), Err((0, 2)));
}

#[test]
fn log_pages_are_read_in_parts() {
    let mut controller = enabled();
    let read = |page: u32, dwords: u32, offset: u64| {
        Command::new(Opcode::GET_LOG_PAGE, 1)
            .with_nsid(u32::MAX)
            .with_dword(10, page | (dwords - 1) << 16)
            .with_qword(12, offset)
    };
    assert_eq!(data_of(&mut controller, read(2, 128, 0)).len(), 512);
    assert_eq!(data_of(&mut controller, read(2, 1, 508)).len(), 4);
    assert_eq!(
        result_of(&mut controller, read(2, 1, 512)),
        Err((0, 2)),
        "past the end"
    );
    assert_eq!(
        result_of(&mut controller, read(0x0c, 4, 0)),
        Err((0, 2)),
        "no ANA"
    );
    assert_eq!(
        result_of(&mut controller, read(0x70, 4, 0)),
        Err((0, 2)),
        "no discovery"
    );
    // 16 GiB of a page of 512 bytes.
    let all = read(2, 0x1_0000, 0).with_dword(11, 0xffff);
    assert_eq!(result_of(&mut controller, all), Err((0, 2)), "too much");
    let most = read(2, 0x8000, 0);
    assert_eq!(data_of(&mut controller, most).len(), LOG_BYTES_MAX);
    controller.set_health(Health {
        reads: 7,
        ..Health::default()
    });
    let page = data_of(&mut controller, read(2, 128, 0));
    assert_eq!(u64_at(&page, 64), 7);
}

#[test]
fn a_discovery_controller_lists_subsystems_and_has_no_queues() {
    let entry = DiscoveryEntry {
        address: "127.0.0.1".into(),
        is_ipv6: false,
        service: "4420".into(),
        subsystem_nqn: "nqn.2026-01.io.fathom:test".into(),
        port_id: 0,
    };
    let discovery = Discovery {
        generation: 1,
        entries: vec![entry],
    };
    let mut controller = controller(
        Subsystem {
            namespaces: Vec::new(),
            discovery: Some(discovery),
            ..subsystem()
        },
        0,
    );
    assert_eq!(result_of(&mut controller, set_cc(0x46_0001)), Ok(0));
    let read = Command::new(Opcode::GET_LOG_PAGE, 1).with_dword(10, 0x03ff_8070);
    let page = data_of(&mut controller, read);
    assert_eq!((page.len(), u64_at(&page, 8)), (4096, 1));
    assert_eq!(controller.qid_max(), 0);
    let off = Command::new(Opcode::SET_FEATURES, 9).with_dword(10, 0x0f);
    for _ in 0..2 {
        let limit = Tick::ZERO + Nanos::from_secs(120);
        assert_eq!(controller.deadline(), Some(limit), "never off");
        assert_eq!(result_of(&mut controller, off), Ok(0));
    }
}

#[test]
fn event_requests_are_held_until_there_is_an_event() {
    let mut controller = enabled();
    let request = |cid| Command::new(Opcode::ASYNC_EVENT_REQUEST, cid);
    for cid in 0..4 {
        assert_eq!(
            controller.admin(&request(cid), &[], Tick::ZERO),
            Answer::Held
        );
    }
    assert_eq!(result_of(&mut controller, request(4)), Err((1, 5)));
    assert_eq!(
        controller.namespaces_changed(),
        None,
        "the host did not ask"
    );
    let ask = Command::new(Opcode::SET_FEATURES, 9)
        .with_dword(10, 0x0b)
        .with_dword(11, 0x100);
    assert_eq!(result_of(&mut controller, ask), Ok(0));
    let event = controller.namespaces_changed().expect("an event");
    assert_eq!((event.result, event.cid), (0x4_0002, 0));
    assert_eq!(controller.admin(&request(4), &[], Tick::ZERO), Answer::Held);
}

#[test]
fn silence_ends_a_controller() {
    let ms = |ms| Tick::ZERO + Nanos::from_millis(ms);
    let mut controller = controller(subsystem(), 1500);
    assert_eq!(
        controller.deadline(),
        Some(ms(2000)),
        "rounded up to seconds"
    );
    assert_eq!(result_of(&mut controller, set_cc(0x46_0001)), Ok(0));
    let alive = Command::new(Opcode::KEEP_ALIVE, 1);
    let _completion = controller.admin(&alive, &[], ms(1900));
    assert!(!controller.has_expired(ms(3899)) && controller.has_expired(ms(3900)));
    let set = |ms| {
        let command = Command::new(Opcode::SET_FEATURES, 9).with_dword(10, 0x0f);
        command.with_dword(11, ms)
    };
    assert_eq!(result_of(&mut controller, set(0)), Ok(0));
    assert_eq!(controller.deadline(), None);
    // A timer that is set anew does not count the time before.
    let _completion = controller.admin(&set(1000), &[], ms(60_000));
    assert_eq!(controller.deadline(), Some(ms(61_000)));
    // Rounded up, the longest one would not fit dword 0 of the completion.
    assert_eq!(result_of(&mut controller, set(u32::MAX)), Ok(0));
    let get = Command::new(Opcode::GET_FEATURES, 10).with_dword(10, 0x0f);
    assert_eq!(result_of(&mut controller, get), Ok(4_294_967_000));
}

#[test]
fn a_reset_forgets_what_the_host_set() {
    let mut controller = enabled();
    let queues = Command::new(Opcode::SET_FEATURES, 4).with_dword(10, 7);
    assert_eq!(result_of(&mut controller, queues), Ok(0));
    assert_eq!(controller.qid_max(), 1);
    assert_eq!(result_of(&mut controller, set_cc(0x46_0000)), Ok(0));
    assert_eq!(
        result_of(&mut controller, get(Property::CSTS, false)),
        Ok(0)
    );
    assert_eq!(controller.qid_max(), 128);
}

#[test]
fn a_controller_that_is_enabled_is_not_shut_down() {
    let mut controller = controller(subsystem(), 5000);
    for (value, status) in [(0x46_4000, 8), (0x46_0001, 1), (0x46_4001, 9)] {
        assert_eq!(result_of(&mut controller, set_cc(value)), Ok(0));
        assert_eq!(
            result_of(&mut controller, get(Property::CSTS, false)),
            Ok(status)
        );
        assert_eq!(controller.deadline().is_some(), status == 1, "kept alive");
    }
}

#[test]
fn commands_and_properties_that_do_not_exist_are_refused() {
    let mut controller = enabled();
    let unknown = Command::new(Opcode(0x55), 1);
    assert_eq!(result_of(&mut controller, unknown), Err((0, 1)));
    assert_eq!(
        result_of(&mut controller, get(Property(0x0c), false)),
        Err((0, 2))
    );
    assert_eq!(
        result_of(&mut controller, get(Property::CAP, false)),
        Err((0, 2)),
        "half of it"
    );
    let feature = Command::new(Opcode::GET_FEATURES, 1).with_dword(10, 0x7e);
    assert_eq!(result_of(&mut controller, feature), Err((0, 2)));
    let host_id = Command::new(Opcode::GET_FEATURES, 1).with_dword(10, 0x81);
    assert_eq!(
        result_of(&mut controller, host_id),
        Err((0, 2)),
        "of 8 bytes"
    );
    assert_eq!(data_of(&mut controller, host_id.with_dword(11, 1)), [0; 16]);
}

#[test]
fn hosts_are_allowed_by_name() {
    let mut subsystem = subsystem();
    assert!(subsystem.allows("nqn.host") && !subsystem.allows("nqn.other"));
    subsystem.allowed_hosts = None;
    assert!(subsystem.allows(""));
}

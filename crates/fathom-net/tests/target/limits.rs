//! Limits of time and number.

use std::collections::VecDeque;
use std::sync::Arc;

use fathom_block::Null;
use fathom_core::{BlockDevice, CommandData, Finished, Geometry, Nanos, Tick};
use fathom_net::target::{
    DeviceError, DeviceFactory, NamespaceConfig, Target, TargetConfig, TargetStatistics,
};
use fathom_nvme::{Command, Connect, Opcode, Pdu};

use crate::bare_host::{BareHost, connect, h2c, inside, outside, transfer};
use crate::setup::{Lines, NO_DIGESTS, Nulls, config, connections, memory, null, start, wait_for};

const SHORT: Nanos = Nanos::from_millis(40);

/// A target with short limits for transfers. The time to connect has its own test: a busy machine
/// must not fail others.
fn hasty() -> TargetConfig {
    let mut config = config(memory(1 << 20), 2);
    config.limits.transfer_timeout = SHORT;
    config.limits.termination_timeout = SHORT;
    config
}

#[test]
fn a_host_must_connect_in_time() {
    let mut config = config(null(), 2);
    config.limits.initialization_timeout = SHORT;
    let (_target, address, log) = start(config);
    BareHost::raw(address).wait_end();
    let mut half = BareHost::raw(address);
    half.send_bytes(&[0, 0, 128, 0]);
    half.wait_end();
    assert!(log.contain("NotInitialized"));
}

#[test]
fn silence_amid_a_pdu_ends_the_connection() {
    let (target, address, log) = start(hasty());
    let mut admin = BareHost::admin(address, NO_DIGESTS);
    let mut header = admin.io(address, 1, NO_DIGESTS);
    header.send_bytes(&[4, 0, 72]);
    header.wait_end();
    let mut data = admin.io(address, 2, NO_DIGESTS);
    let command = transfer(Opcode::WRITE, 1, 0, 4096).with_data(inside(4096));
    let encoded = Pdu::Command(command).encode(fathom_nvme::Framing::PLAIN, 4096);
    data.send_bytes(encoded.as_bytes());
    data.wait_end();
    let mut requested = admin.io(address, 3, NO_DIGESTS);
    requested.send(&Pdu::Command(transfer(Opcode::WRITE, 1, 0, 8192)), &[]);
    requested.wait_end();
    assert!(log.contain("Silent"));
    // A queue without commands may be silent for as long as it likes.
    let mut idle = admin.io(address, 4, NO_DIGESTS);
    wait_for(&target, |statistics| {
        connections(statistics) == 2 && statistics.buffers_in_use == 0
    });
    idle.succeed(transfer(Opcode::READ, 1, 0, 4096), &[]);
    admin.set_configuration(0x46_0001);
}

#[test]
fn a_host_that_does_not_receive_loses_its_connection() {
    let (target, address, log) = start(hasty());
    let admin = BareHost::admin(address, NO_DIGESTS);
    let mut queue = admin.io(address, 1, NO_DIGESTS);
    for round in 0..64_u16 {
        // Beyond what the sockets hold, without a queue longer than was agreed.
        for cid in 0..32 {
            let read = transfer(Opcode::READ, round * 32 + cid, 0, 131_072);
            if queue.try_send(&Pdu::Command(read)).is_err() {
                break;
            }
        }
    }
    wait_for(&target, |statistics| {
        connections(statistics) == 1 && statistics.buffers_in_use == 0
    });
    assert!(log.contain("Stalled") || log.contain("Terminated(Controller"));
}

#[test]
fn a_terminated_connection_is_closed_after_a_while() {
    let (target, address, _) = start(hasty());
    let admin = BareHost::admin(address, NO_DIGESTS);
    let mut queue = admin.io(address, 1, NO_DIGESTS);
    queue.send_bytes(&[0xff; 8]);
    queue.wait_end();
    wait_for(&target, |statistics| connections(statistics) == 1);
}

/// The granularity of the keep-alive timer is a second.
#[test]
fn a_host_that_does_not_keep_alive_loses_its_controller() {
    let (target, address, log) = start(config(null(), 2));
    let mut admin = BareHost::open(address, NO_DIGESTS);
    let connect = Connect {
        keep_alive_ms: 1,
        ..connect(0, Connect::ANY_CONTROLLER)
    };
    admin.cntlid = u16::try_from(admin.connect(&connect).result).unwrap();
    admin.set_configuration(0x46_0001);
    let mut queue = admin.io(address, 1, NO_DIGESTS);
    queue.wait_end();
    admin.wait_end();
    assert!(log.contain("KeepAliveExpired"));
    wait_for(&target, |statistics| connections(statistics) == 0);
}

/// The most that a controller may have: 128 I/O queues of 1024 entries.
#[test]
fn the_largest_queues_work() {
    let mut config = config(null(), 2);
    config.limits.queue_entries = 1024;
    config.limits.queues = 128;
    let (target, address, _) = start(config);
    let mut admin = BareHost::admin(address, NO_DIGESTS);
    let features = Command::new(Opcode::SET_FEATURES, 9)
        .with_dword(10, 7)
        .with_dword(11, 0x03ff_03ff)
        .with_data(inside(0));
    assert_eq!(admin.run(features, &[]).0.result, 0x007f_007f);
    let open = |qid| {
        let mut queue = BareHost::open(address, NO_DIGESTS);
        let largest = Connect {
            sq_size: 1023,
            ..connect(qid, admin.cntlid)
        };
        assert!(queue.connect(&largest).status.is_success(), "queue {qid}");
        queue
    };
    let mut queues: Vec<_> = (1..=128).map(open).collect();
    for queue in &mut queues {
        queue.succeed(transfer(Opcode::READ, 1, 0, 512), &[]);
    }
    let queue = &mut queues[127];
    for cid in 0..1023 {
        queue.send(&Pdu::Command(transfer(Opcode::READ, cid, 0, 512)), &[]);
    }
    for _ in 0..1023 {
        assert!(matches!(queue.receive().unwrap().pdu, Pdu::C2hData(_)));
    }
    assert_eq!(connections(&target.statistics()), 129);
}

#[test]
fn connections_beyond_the_limits_are_turned_away_and_the_others_go_on() {
    for (total, of_address) in [(8, 100), (100, 8)] {
        let mut config = config(null(), 2);
        config.limits.connections_max = total;
        config.limits.connections_per_address_max = of_address;
        let (target, address, log) = start(config);
        let admin = BareHost::admin(address, NO_DIGESTS);
        let mut queue = admin.io(address, 1, NO_DIGESTS);
        let mut crowd: Vec<_> = (0..50).map(|_| BareHost::raw(address)).collect();
        for host in &mut crowd[6..] {
            host.wait_end();
        }
        queue.succeed(transfer(Opcode::READ, 1, 0, 4096), &[]);
        wait_for(&target, |statistics| connections(statistics) == 8);
        assert!(log.contain("TooMany"));
        drop(crowd);
        wait_for(&target, |statistics| connections(statistics) == 2);
        let mut again = admin.io(address, 2, NO_DIGESTS);
        again.succeed(transfer(Opcode::READ, 1, 0, 4096), &[]);
    }
}

/// Each of the commands becomes half a million of a device that completes them at once.
#[test]
fn large_commands_delay_no_other_host() {
    let (_target, address, _) = start(config(Arc::new(Nulls(1 << 62)), 1));
    let admin = BareHost::admin(address, NO_DIGESTS);
    let mut other = BareHost::admin(address, NO_DIGESTS);
    let mut queue = admin.io(address, 1, NO_DIGESTS);
    let range = [0, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0];
    for cid in 0..31 {
        let command = Command::new(Opcode::DATASET_MANAGEMENT, cid)
            .with_nsid(1)
            .with_dword(10, 255)
            .with_dword(11, 4)
            .with_data(inside(4096));
        queue.send(&Pdu::Command(command), &range.repeat(256));
    }
    for cid in 0..10 {
        other.succeed(Command::new(Opcode::KEEP_ALIVE, cid), &[]);
    }
}

/// As above, while a command of another device is in flight.
#[test]
fn large_commands_delay_no_other_device() {
    let mut config = config(Arc::new(Slows(Nanos::from_millis(2))), 1);
    let namespaces = &mut config.subsystems[0].namespaces;
    namespaces.push(NamespaceConfig {
        nsid: 2,
        device: Arc::new(Nulls(1 << 62)),
        ..namespaces[0].clone()
    });
    let (target, address, _) = start(config);
    let admin = BareHost::admin(address, NO_DIGESTS);
    let mut queues = [1, 2].map(|qid| admin.io(address, qid, NO_DIGESTS));
    let read = Pdu::Command(transfer(Opcode::READ, 1, 0, 4096));
    queues[0].send(&read, &[]);
    wait_for(&target, |statistics| statistics.buffers_in_use == 1);
    let range = [0, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0];
    for cid in 0..31 {
        let command = Command::new(Opcode::DATASET_MANAGEMENT, cid)
            .with_nsid(2)
            .with_dword(10, 255)
            .with_dword(11, 4)
            .with_data(inside(4096));
        queues[1].send(&Pdu::Command(command), &range.repeat(256));
    }
    for _ in 0..4 {
        assert!(queues[0].receive().is_some());
        queues[0].send(&read, &[]);
    }
    let statistics = target.stop();
    assert_eq!(statistics.namespaces[1].io.others, 0, "they are not done");
}

/// Device that takes a time of its own for each command.
#[derive(Debug)]
struct Slow {
    time: Nanos,
    started: VecDeque<Finished>,
}

impl BlockDevice for Slow {
    fn geometry(&self) -> Geometry {
        Geometry {
            bytes: 1 << 20,
            ..Geometry::UNBOUNDED
        }
    }

    fn start(&mut self, command: &fathom_core::Command, _data: &mut CommandData, now: Tick) {
        let finished = Finished::new(command.tag, now + self.time, command.whole());
        self.started.push_back(finished);
    }

    fn next(&self) -> Option<Tick> {
        self.started.front().map(|finished| finished.at)
    }

    fn completed(&mut self, now: Tick) -> Option<Finished> {
        let is_due = self.next().is_some_and(|at| at <= now);
        is_due.then(|| self.started.pop_front()).flatten()
    }
}

#[derive(Debug)]
struct Slows(Nanos);

impl Slows {
    fn device(&self) -> Slow {
        Slow {
            time: self.0,
            started: VecDeque::new(),
        }
    }
}

/// Far longer than a host may be silent.
const LONG: Nanos = Nanos::from_millis(400);

impl DeviceFactory for Slows {
    fn open(&self, _thread: u32, _now: Tick) -> Result<Box<dyn BlockDevice>, DeviceError> {
        Ok(Box::new(self.device()))
    }

    fn geometry(&self) -> Geometry {
        self.device().geometry()
    }
}

/// Only commands that move data wait for buffers.
#[test]
fn hosts_connect_while_others_hold_all_buffers() {
    for cache in [0, 8] {
        let mut config = config(Arc::new(Slows(LONG)), 1);
        config.buffers.count = Some(1);
        config.buffers.cache = cache;
        let (target, address, _) = start(config);
        let admin = BareHost::admin(address, NO_DIGESTS);
        let mut queues: Vec<_> = (1..=5)
            .map(|qid| admin.io(address, qid, NO_DIGESTS))
            .collect();
        // 155 commands, each of which keeps the device for 400 ms.
        for queue in &mut queues {
            for cid in 0..31 {
                queue.send(&Pdu::Command(transfer(Opcode::READ, cid, 0, 4096)), &[]);
            }
        }
        let pending = |statistics: &TargetStatistics| statistics.threads[0].admission.pending;
        wait_for(&target, |statistics| pending(statistics) > 128);
        let other = BareHost::admin(address, NO_DIGESTS);
        let mut queue = other.io(address, 1, NO_DIGESTS);
        let flush = Command::new(Opcode::FLUSH, 1).with_nsid(1);
        queue.succeed(flush, &[]);
        assert!(pending(&target.statistics()) > 0, "they waited, too");
    }
}

/// A connection that has stopped for a buffer is not silent.
#[test]
fn hosts_are_not_blamed_for_a_lack_of_buffers() {
    let mut config = config(Arc::new(Slows(LONG)), 1);
    config.limits.transfer_timeout = SHORT;
    config.buffers.count = Some(1);
    config.buffers.cache = 0;
    let (_target, address, _) = start(config);
    let admin = BareHost::admin(address, NO_DIGESTS);
    let mut first = admin.io(address, 1, NO_DIGESTS);
    let mut second = admin.io(address, 2, NO_DIGESTS);
    first.send(&Pdu::Command(transfer(Opcode::READ, 1, 0, 4096)), &[]);
    let write = transfer(Opcode::WRITE, 2, 0, 4096).with_data(inside(4096));
    second.succeed(write, &[1; 4096]);
    assert!(first.receive().is_some());
}

/// The limit on silence runs from the request for data on, however late that comes.
#[test]
fn hosts_are_not_blamed_for_a_late_request() {
    let device = Slows(Nanos::from_millis(1200));
    let mut config = config(Arc::new(device), 1);
    config.limits.transfer_timeout = Nanos::from_millis(1000);
    config.buffers.count = Some(1);
    config.buffers.cache = 0;
    let (_target, address, _) = start(config);
    let mut admin = BareHost::admin(address, NO_DIGESTS);
    let mut first = admin.io(address, 1, NO_DIGESTS);
    let mut second = admin.io(address, 2, NO_DIGESTS);
    first.send(&Pdu::Command(transfer(Opcode::READ, 1, 0, 4096)), &[]);
    let write = transfer(Opcode::WRITE, 2, 0, 8192);
    second.send(&Pdu::Command(write), &[]);
    let Pdu::R2t(ready) = second.receive().expect("a request").pdu else {
        panic!("no request for data");
    };
    // Counters are published when the limits are looked at: one look has passed once the read,
    // which gave up the buffer, is among them.
    let health = Command::new(Opcode::GET_LOG_PAGE, 5)
        .with_dword(10, 127 << 16 | 0x02)
        .with_data(outside(512));
    while admin.succeed(health, &[])[64] == 0 {}
    second.send(&h2c(ready.cid, ready.ttag, 8192), &[1; 8192]);
    let Pdu::Response(completion) = second.receive().expect("an answer").pdu else {
        panic!("no response");
    };
    assert!(completion.status.is_success());
}

/// Data that others promise and do not send keep no host out.
#[test]
fn hosts_connect_while_others_promise_data() {
    let (_target, address, _) = start(config(null(), 1));
    let promise = |cid| {
        let command = Command::new(Opcode::SET_FEATURES, cid).with_dword(10, 0x81);
        Pdu::Command(command.with_dword(11, 1).with_data(outside(8192)))
    };
    let mut requested = 0;
    let _crowd: Vec<_> = (0..70)
        .map(|_| {
            let mut host = BareHost::open(address, NO_DIGESTS);
            let largest = Connect {
                sq_size: 127,
                ..connect(0, Connect::ANY_CONTROLLER)
            };
            assert!(host.connect(&largest).status.is_success());
            host.set_configuration(0x46_0001);
            (0..127).for_each(|cid| host.send(&promise(cid), &[]));
            let answers = (0..127).map(|_| host.receive().expect("an answer").pdu);
            requested += answers.filter(|pdu| matches!(pdu, Pdu::R2t(_))).count();
            host
        })
        .collect();
    assert!((8192..127 * 70).contains(&requested), "{requested}");
    let mut other = BareHost::admin(address, NO_DIGESTS);
    let identify = Command::new(Opcode::IDENTIFY, 1).with_dword(10, 1);
    other.succeed(identify.with_data(outside(4096)), &[]);
}

#[test]
fn transfers_of_a_page_are_no_limit_that_hosts_could_be_told() {
    for (bytes, is_valid) in [(4096, false), (8192, true)] {
        let mut config = config(null(), 1);
        config.limits.io_bytes_max = bytes;
        let started = Target::start(config, Arc::new(Lines::default()));
        assert_eq!(started.is_ok(), is_valid, "{bytes} B");
    }
}

/// Device with a bug.
#[derive(Debug)]
struct Broken;

impl BlockDevice for Broken {
    fn geometry(&self) -> Geometry {
        Null::new(1 << 20, 512).geometry()
    }

    fn start(&mut self, _command: &fathom_core::Command, _data: &mut CommandData, _now: Tick) {
        panic!("as it should in this test");
    }

    fn next(&self) -> Option<Tick> {
        None
    }

    fn completed(&mut self, _now: Tick) -> Option<Finished> {
        None
    }
}

impl DeviceFactory for Broken {
    fn open(&self, _thread: u32, _now: Tick) -> Result<Box<dyn BlockDevice>, DeviceError> {
        Ok(Box::new(Self))
    }

    fn geometry(&self) -> Geometry {
        BlockDevice::geometry(self)
    }
}

/// Neither counters nor the stop wait for a thread that has ended.
#[test]
fn a_thread_that_fails_is_reported() {
    let (target, address, _) = start(config(Arc::new(Broken), 2));
    assert_eq!(target.failed_thread(), None);
    let admin = BareHost::admin(address, NO_DIGESTS);
    let mut queue = admin.io(address, 1, NO_DIGESTS);
    let read = transfer(Opcode::READ, 1, 0, 512);
    queue.send(&Pdu::Command(read), &[]);
    while target.failed_thread().is_none() {
        std::thread::yield_now();
    }
    assert_eq!(target.statistics().threads.len(), 1);
    assert_eq!(target.stop().threads.len(), 1);
}

use std::sync::Arc;

use super::*;
use crate::controller::{Answer, Controller, ControllerLimits};
use crate::identify::OptionalCommands;
use crate::subsystem::Subsystem;

const LIMITS: ControllerLimits = ControllerLimits {
    queues: 4,
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

const NAMESPACE: NamespaceIdentity = NamespaceIdentity {
    blocks: 1 << 18,
    block_shift: 12,
    nguid: [7; 16],
    is_write_protected: false,
};

fn subsystem() -> Arc<Subsystem> {
    Arc::new(Subsystem {
        nqn: "nqn.2026-01.io.fathom:test".into(),
        serial: "1".into(),
        model: "Fathom".into(),
        firmware: "0.1".into(),
        allowed_hosts: None,
        namespaces: vec![(1, NAMESPACE), (3, NAMESPACE)],
        discovery: None,
    })
}

fn config() -> HostConfig {
    HostConfig {
        subsystem_nqn: "nqn.2026-01.io.fathom:test".into(),
        host_nqn: "nqn.host".into(),
        host_id: [9; 16],
        keep_alive: Some(Nanos::from_secs(2)),
        queues: 2,
        namespaces: vec![1, 3],
        timeout: Nanos::from_secs(10),
    }
}

/// The two state machines, one against the other, without a connection between them.
struct Pair {
    host: HostController,
    controller: Option<Controller>,
    now: Tick,
    /// Opcodes seen, with the fabrics type or the Identify page.
    seen: Vec<(u8, u32)>,
}

impl Pair {
    fn new(config: HostConfig) -> Self {
        Self {
            host: HostController::new(config, Tick::ZERO),
            controller: None,
            now: Tick::ZERO,
            seen: Vec::new(),
        }
    }

    /// Answers one command; false if there is none.
    fn step(&mut self) -> Result<bool, ControllerError> {
        let Some(asked) = self.host.next(self.now) else {
            return Ok(false);
        };
        let command = asked.command;
        let detail = match command.opcode() {
            Opcode::FABRICS => command.fabrics_type().into(),
            _ => command.dword(10),
        };
        self.seen.push((command.opcode().0, detail));
        let is_connect = detail == 1 && command.opcode() == Opcode::FABRICS;
        if is_connect {
            let data = asked.data.first_chunk().expect("data of Connect");
            let connect = Connect::decode(&command, data);
            assert_eq!((connect.qid, connect.cntlid), (0, Connect::ANY_CONTROLLER));
            let host = (connect.host_id, connect.keep_alive_ms);
            let created = Controller::new(5, subsystem(), LIMITS, host, self.now);
            self.controller = Some(created);
            let completion = Completion {
                result: 5,
                ..Completion::default()
            };
            self.host.complete(&completion, &[], self.now)?;
            return Ok(true);
        }
        let controller = self.controller.as_mut().expect("connected");
        let (data, completion) = match controller.admin(&command, &asked.data, self.now) {
            Answer::Complete(completion) => (Vec::new(), completion),
            Answer::Data(data, completion) => (data, completion),
            Answer::Held => panic!("no event requests are sent"),
        };
        if completion.status.is_success() {
            assert_eq!(data.len(), asked.answer_bytes as usize);
        }
        self.host.complete(&completion, &data, self.now)?;
        Ok(true)
    }

    fn run(&mut self) -> Result<(), ControllerError> {
        while self.step()? {}
        Ok(())
    }
}

/// The order of SPDK's host, without the commands that it can do without.
#[test]
fn a_host_connects_enables_and_identifies() {
    let mut pair = Pair::new(config());
    pair.run().expect("a controller");
    let fabrics = Opcode::FABRICS.0;
    let (identify, set_features) = (Opcode::IDENTIFY.0, Opcode::SET_FEATURES.0);
    let want = [
        (fabrics, 1),
        (fabrics, 4),
        (fabrics, 0),
        (fabrics, 4),
        (identify, 1),
        (set_features, 7),
        (identify, 0),
        (identify, 0),
    ];
    assert_eq!(pair.seen, want);
    let facts = pair.host.facts().expect("facts");
    assert_eq!(
        (facts.cntlid, facts.queues, facts.commands_max),
        (5, 2, 127)
    );
    assert_eq!(
        (facts.data_bytes_max, facts.in_capsule_bytes),
        (1 << 17, 4096)
    );
    assert_eq!(facts.namespaces, [NAMESPACE, NAMESPACE]);
    assert!(facts.has_dataset_management);
    assert!(pair.controller.expect("connected").is_enabled());
}

#[test]
fn the_controller_is_kept_alive_and_shut_down() {
    let mut pair = Pair::new(config());
    pair.run().expect("a controller");
    for _ in 0..10 {
        let due = pair.host.deadline().expect("a Keep Alive");
        assert_eq!(due, pair.now + Nanos::from_secs(1));
        pair.now = due;
        pair.run().expect("an answer");
        assert_eq!(pair.seen.last(), Some(&(Opcode::KEEP_ALIVE.0, 0)));
        let controller = pair.controller.as_ref().expect("connected");
        assert!(!controller.has_expired(pair.now + Nanos::from_millis(1900)));
    }
    pair.host.shut_down(pair.now);
    pair.run().expect("an answer");
    assert!(pair.host.has_ended());
    assert!(pair.controller.expect("connected").is_shut_down());
}

#[test]
fn a_shutdown_waits_for_the_keep_alive_in_flight() {
    let mut pair = Pair::new(config());
    pair.run().expect("a controller");
    pair.now += Nanos::from_secs(1);
    assert!(pair.host.next(pair.now).is_some());
    pair.host.shut_down(pair.now);
    assert!(pair.host.next(pair.now).is_none());
    let done = pair.host.complete(&Completion::default(), &[], pair.now);
    done.expect("a Keep Alive");
    pair.run().expect("an answer");
    assert!(pair.host.has_ended());
}

#[test]
fn a_controller_that_does_not_answer_is_given_up() {
    let mut pair = Pair::new(config());
    pair.run().expect("a controller");
    pair.now += Nanos::from_secs(1);
    assert!(pair.host.next(pair.now).is_some());
    pair.host.check(pair.now).expect("time is left");
    let error = pair.host.check(pair.host.deadline().expect("a limit"));
    let error = error.expect_err("2 s of silence");
    assert_eq!(error.to_string(), "Keep Alive: no answer in time");
}

#[test]
fn a_missing_namespace_is_named() {
    let mut pair = Pair::new(HostConfig {
        namespaces: vec![2],
        ..config()
    });
    let error = pair.run().expect_err("an inactive namespace");
    assert_eq!(error, ControllerError::NoNamespace { nsid: 2 });
    let mut pair = Pair::new(HostConfig {
        namespaces: vec![9],
        ..config()
    });
    let error = pair.run().expect_err("no namespace");
    assert_eq!(error, ControllerError::NoNamespace { nsid: 9 });
}

#[test]
fn a_namespace_that_no_host_can_use_is_not_missing() {
    let mut host = HostController::new(config(), Tick::ZERO);
    let mut page = NAMESPACE.encode();
    page[LBAF0 + 2] = 63;
    let error = host.on_namespace(0, &page, Tick::ZERO).unwrap_err();
    let want = "namespace 1: LBA format 0 has blocks of 2^63 B (LBADS 63); supported are 512 B to \
                64 KiB";
    assert_eq!(error.to_string(), want);
}

#[test]
fn a_refused_connect_names_the_parameter() {
    let mut host = HostController::new(config(), Tick::ZERO);
    assert!(host.next(Tick::ZERO).is_some());
    let refusal = crate::fabrics::ConnectField::SubsystemNqn.refusal(0);
    let error = host
        .complete(&refusal, &[], Tick::ZERO)
        .expect_err("refused");
    let want = "Connect: invalid parameters (status 1h/82h): subsystem NQN";
    assert_eq!(error.to_string(), want);
}

#[test]
fn a_controller_that_is_never_ready_is_given_up() {
    // A time-out of 2 × 500 ms.
    assert!(time_to_give_up(0x20_0201_007f) <= Nanos::from_millis(1010));
    // One of 127.5 s, of which the host has 10 s.
    let limit = config().timeout + STATUS_INTERVAL;
    assert!(time_to_give_up(0x20_ff01_007f) <= limit);
}

/// Returns the time that a host gives a controller with these capabilities to become ready.
#[track_caller]
fn time_to_give_up(capabilities: u64) -> Nanos {
    let mut host = HostController::new(config(), Tick::ZERO);
    let mut now = Tick::ZERO;
    let mut answer = |host: &mut HostController, result| {
        now = host.deadline().expect("something to do").max(now);
        assert!(host.next(now).is_some());
        let completion = Completion {
            result,
            ..Completion::default()
        };
        host.complete(&completion, &[], now)
    };
    answer(&mut host, 1).expect("Connect");
    answer(&mut host, capabilities).expect("CAP");
    answer(&mut host, 0).expect("CC");
    let error = (0..2000).find_map(|_| answer(&mut host, 0).err());
    assert_eq!(error, Some(ControllerError::NotReady));
    now.since(Tick::ZERO)
}

#[test]
fn a_shutdown_that_is_never_complete_is_given_up() {
    let mut host = HostController::new(config(), Tick::ZERO);
    host.step = Step::Live;
    host.shut_down(Tick::ZERO);
    let mut now = Tick::ZERO;
    for _ in 0..1_000_000 {
        let Some(due) = host.deadline() else { break };
        now = due.max(now);
        assert!(host.next(now).is_some());
        let ready = Completion {
            result: CSTS_READY,
            ..Completion::default()
        };
        host.complete(&ready, &[], now).expect("a state");
    }
    assert!(host.has_ended());
    assert!(now.since(Tick::ZERO) <= config().timeout + STATUS_INTERVAL);
}

#[test]
fn metadata_are_those_of_the_format_in_use() {
    let mut host = HostController::new(config(), Tick::ZERO);
    host.facts.data_bytes_max = UNLIMITED_BYTES;
    let mut page = NAMESPACE.encode();
    page[26] = 0x21;
    page[LBAF0 + 4 * 17 + 2] = 12;
    page[LBAF0 + 4] = 8;
    let step = host.on_namespace(0, &page, Tick::ZERO);
    assert_eq!(step, Ok(Step::Namespace(1)));
    page[LBAF0 + 4 * 17] = 8;
    let refused = host.on_namespace(0, &page, Tick::ZERO);
    assert!(matches!(refused, Err(ControllerError::Unsupported(_))));
}

#[test]
fn sizes_follow_from_mdts_and_the_smallest_page() {
    assert_eq!(data_bytes_max(0, 5), 1 << 17);
    assert_eq!(data_bytes_max(0, 0), UNLIMITED_BYTES);
    assert_eq!(data_bytes_max(1 << 48, 5), 1 << 18);
    assert_eq!(data_bytes_max(0, 255), 1 << 31);
}

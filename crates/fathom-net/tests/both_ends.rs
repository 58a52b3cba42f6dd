//! The initiator against the target, in one process: data and the account of them, at many
//! settings of both.
#![expect(
    clippy::unwrap_used,
    reason = "the whole file is a test, its helpers too"
)]

#[path = "target/setup.rs"]
mod setup;

use fathom_core::{
    Completion, Direction, EngineValues, FileIndex, Op, OpKind, OptionValue, Slot, Xoshiro256,
};
use fathom_engine::{AnyEngine, EngineConfig, EngineFile, start};
use fathom_net::NVME_TCP;
use fathom_net::target::Target;
use fathom_sys::clock::Clock;
use setup::NQN;

/// Bytes of the namespace, and of the largest op.
const BYTES: usize = 4 << 20;
const OP_BYTES: u32 = 256 << 10;
const DEPTH: u32 = 16;

/// Settings of the target, and options of the initiator.
struct Settings {
    threads: u32,
    buffers: Option<u32>,
    in_capsule_bytes: u32,
    success_in_data: bool,
    options: &'static [(&'static str, u64)],
}

fn target(settings: &Settings) -> Target {
    let mut config = setup::config(setup::memory(BYTES as u64), settings.threads);
    config.limits.in_capsule_bytes = settings.in_capsule_bytes;
    config.buffers.count = settings.buffers;
    config.buffers.cache = 0;
    config.success_in_data = settings.success_in_data;
    setup::start(config).0
}

fn initiator(target: &Target, options: &[(&'static str, u64)]) -> AnyEngine {
    let port = target.addresses()[0].port();
    let path = format!("trtype=tcp traddr=127.0.0.1 trsvcid={port} subnqn={NQN}");
    let mut values = EngineValues::default();
    for &(name, value) in options {
        values.set(name, OptionValue::Number(value));
    }
    let file = EngineFile {
        path,
        read: true,
        write: true,
        ..EngineFile::default()
    };
    let config = EngineConfig {
        depth: DEPTH,
        buffer_bytes: OP_BYTES,
        files: vec![file],
        options: values,
        ..EngineConfig::new(NVME_TCP, Clock::monotonic())
    };
    start(config).unwrap()
}

/// Ops on ranges that do not overlap, one for each slot, of random directions and lengths.
fn round(random: &mut Xoshiro256) -> Vec<Op> {
    let part = BYTES as u64 / u64::from(DEPTH);
    let op = |slot: u32| {
        let length = (random.next_u64() % (u64::from(OP_BYTES) / 512) + 1) * 512;
        let room = (part - length) / 512 + 1;
        Op {
            slot: Slot::new(slot),
            kind: OpKind::Data(match random.next_u64() % 8 {
                0 => Direction::Trim,
                1..4 => Direction::Read,
                _ => Direction::Write,
            }),
            priority: 0,
            file: FileIndex::new(0),
            length: u32::try_from(length).unwrap(),
            buffer_offset: 0,
            offset: u64::from(slot) * part + random.next_u64() % room * 512,
            sequence: 0,
        }
    };
    (0..DEPTH).map(op).collect()
}

/// Runs random ops, and compares all that is read with a model of the namespace.
fn check(settings: &Settings) {
    let target = target(settings);
    let mut engine = initiator(&target, settings.options);
    let engine = engine.as_dyn();
    engine.open(FileIndex::new(0)).unwrap();
    let mut model = vec![0_u8; BYTES];
    let mut random = Xoshiro256::new(7);
    for _ in 0..40 {
        let ops = round(&mut random);
        for op in &ops {
            let byte = random.next_u64().to_le_bytes()[0];
            let content = &mut engine.buffer(op.slot)[..op.length as usize];
            for (place, at) in content.iter_mut().zip(0_u32..) {
                *place = at.to_le_bytes()[1] ^ byte;
            }
        }
        ops.iter().for_each(|op| engine.prepare(op));
        engine.submit(0);
        let mut done = [Completion::default(); DEPTH as usize];
        let mut left = ops.len();
        while left > 0 {
            engine.wait(1, None).unwrap();
            let count = engine.reap(&mut done);
            for one in &done[..count] {
                let op = ops[one.slot.index()];
                assert_eq!(one.result, op.length.cast_signed());
                let from = usize::try_from(op.offset).unwrap();
                let there = &mut model[from..from + op.length as usize];
                let here = &engine.buffer(op.slot)[..op.length as usize];
                match op.kind {
                    OpKind::Data(Direction::Write) => there.copy_from_slice(here),
                    OpKind::Data(Direction::Trim) => there.fill(0),
                    _ => assert!(there == here, "{op:?}"),
                }
            }
            left -= count;
        }
    }
    engine.close(FileIndex::new(0)).unwrap();
    let statistics = target.stop();
    assert_eq!(statistics.buffers_in_use, 0, "{statistics:?}");
}

const PLAIN: Settings = Settings {
    threads: 1,
    buffers: None,
    in_capsule_bytes: 4096,
    success_in_data: true,
    options: &[],
};

#[test]
fn data_survive_plain_connections() {
    check(&PLAIN);
}

#[test]
fn data_survive_several_queues_on_several_threads() {
    check(&Settings {
        threads: 2,
        options: &[("queues", 4)],
        ..PLAIN
    });
}

#[test]
fn data_survive_digests() {
    check(&Settings {
        options: &[("hdgst", 1), ("ddgst", 1)],
        ..PLAIN
    });
}

#[test]
fn data_survive_a_shortage_of_buffers() {
    check(&Settings {
        threads: 2,
        buffers: Some(3),
        options: &[("queues", 3), ("ddgst", 1)],
        ..PLAIN
    });
}

#[test]
fn data_survive_completions_of_their_own_and_large_capsules() {
    check(&Settings {
        success_in_data: false,
        in_capsule_bytes: 16_384,
        options: &[("hipri", 1)],
        ..PLAIN
    });
}

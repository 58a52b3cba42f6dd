//! Conformance of the engines whose ops are not I/O: what a worker relies on.

use fathom_conformance::option_values;
use fathom_core::{Completion, Direction, FileIndex, Nanos, Op, OpKind, Slot, Submitted, Tick};
use fathom_engine::{AnyEngine, EngineConfig, JobFacts, Registry, built_in, start};
use fathom_sys::clock::Clock;

/// Every engine without I/O, with options by which its ops last.
const ENGINES: [(&str, &str); 2] = [
    ("cpuio", "cpuload=100 cpuchunks=4294967295"),
    (
        "exec",
        "program=/bin/sleep arguments=1000 grace_time=0 std_redirect=0",
    ),
];

fn engine(name: &'static str, words: &str) -> AnyEngine {
    let engine = built_in(name);
    let config = EngineConfig {
        options: option_values(engine.info, words),
        job: JobFacts {
            runtime: Some(Nanos::from_secs(1000)),
            ..JobFacts::default()
        },
        ..EngineConfig::new(engine, Clock::monotonic())
    };
    start(config).unwrap()
}

fn prepare(engine: &mut AnyEngine) {
    let op = Op {
        slot: Slot::new(0),
        kind: OpKind::Data(Direction::Read),
        priority: 0,
        file: FileIndex::new(0),
        length: 4096,
        buffer_offset: 0,
        offset: 0,
        sequence: 0,
    };
    let engine = engine.as_dyn();
    engine.prepare(&op);
    assert!(matches!(engine.submit(0), Submitted::Issued { .. }));
}

/// Waits for the op in flight, and returns its result.
fn complete(engine: &mut AnyEngine) -> i32 {
    let engine = engine.as_dyn();
    let mut done = [Completion::default(); 2];
    loop {
        match engine.reap(&mut done) {
            0 => engine.wait(1, None).unwrap(),
            count => {
                assert_eq!((count, done[0].slot), (1, Slot::new(0)));
                assert_eq!(engine.reap(&mut done), 0, "an op completes once");
                return done[0].result;
            }
        }
    }
}

#[test]
fn each_engine_without_io_is_tested() {
    let registry = Registry::built_in();
    let infos = registry.infos().iter().filter(|info| !info.performs_io());
    let names: Vec<_> = infos.map(|info| info.name).collect();
    assert_eq!(names, ENGINES.map(|(name, _)| name));
}

#[test]
fn each_op_completes_once() {
    let cases = [
        ("cpuio", "cpuload=100 cpuchunks=100"),
        ("cpuio", "cpuload=100 cpuchunks=100 cpumode=qsort"),
        ENGINES[1],
    ];
    for (name, words) in cases {
        let mut engine = engine(name, words);
        assert!(engine.as_dyn().capabilities().synchronous, "{name}");
        for _ in 0..3 {
            prepare(&mut engine);
            assert_eq!(complete(&mut engine), 4096, "{name}");
        }
        engine.as_dyn().wait(0, Some(Tick::ZERO)).unwrap();
    }
}

#[test]
fn an_op_that_lasts_can_be_cancelled() {
    for (name, words) in ENGINES {
        let mut engine = engine(name, words);
        prepare(&mut engine);
        engine.as_dyn().cancel();
        engine.as_dyn().cancel();
        let result = complete(&mut engine);
        assert!([4096, Completion::ENDED].contains(&result), "{name}");
        // Nothing is in flight: nothing to cancel.
        engine.as_dyn().cancel();
        assert_eq!(
            engine.as_dyn().reap(&mut [Completion::default()]),
            0,
            "{name}"
        );
    }
}

#[test]
fn an_engine_may_be_dropped_with_an_op_in_flight() {
    for (name, words) in ENGINES {
        let mut engine = engine(name, words);
        prepare(&mut engine);
        drop(engine);
    }
}

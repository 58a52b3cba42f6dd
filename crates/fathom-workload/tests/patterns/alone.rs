//! An op that an engine cannot queue is alone in its submission, however ops are batched. Where
//! the engine says so, nothing else is in flight either, and nothing starts before it has
//! completed.

use std::collections::VecDeque;

use crate::common;
use fathom_core::{
    Capabilities, Completion, Direction, Engine, EngineError, Op, OpKind, Queueing, Slot, Step,
    StopRequest, Submitted, Tick,
};
use fathom_workload::{Batching, Mix, SyncRules, Worker, WorkerConfig, turn};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn ops_that_cannot_be_queued_run_alone(
        queueing in prop_oneof![Just(Queueing::Inline), Just(Queueing::Alone)],
        mix in prop_oneof![
            Just(Mix::Write),
            Just(Mix::ReadWrite { read: 30 }),
            Just(Mix::Trim),
            Just(Mix::TrimWrite),
        ],
        depth in 1..9_u32,
        (submit, complete_min, complete_max, low) in (1..9_u32, 0..9_u32, 1..9_u32, 0..9_u32),
        (full_every, data_every) in (0..6_u32, 0..6_u32),
        latencies in prop::collection::vec(1..30_000_u64, 1..9),
    ) {
        let batching = Batching {
            submit: submit.min(depth),
            complete_min: complete_min.min(depth),
            complete_max: complete_max.min(depth),
            low: low.min(depth),
        };
        let sync = SyncRules { full_every, data_every, ..SyncRules::default() };
        let pattern = common::config(mix, false, 4096, OPS * 4096);
        let config = WorkerConfig { depth, batching, sync, ..common::job(pattern) };
        let engine = run(config, queueing, latencies);
        prop_assert!(engine.in_flight.is_empty() && engine.prepared.is_empty());
        // A trim and a write for each block.
        let each = if mix == Mix::TrimWrite { 2 } else { 1 };
        prop_assert_eq!(engine.data, OPS * each);
        let writes = matches!(mix, Mix::Write | Mix::ReadWrite { .. });
        let syncs = writes && full_every + data_every == 1;
        prop_assert!(!syncs || engine.syncs > 0);
    }
}

#[test]
fn an_op_inside_the_submission_does_not_drain_the_queue() {
    let batching = Batching {
        submit: 1,
        complete_min: 1,
        complete_max: 1,
        low: 8,
    };
    let sync = SyncRules {
        full_every: 1,
        ..SyncRules::default()
    };
    let config = WorkerConfig {
        depth: 8,
        batching,
        sync,
        ..common::job(common::config(Mix::Write, false, 4096, OPS * 4096))
    };
    let deepest = |queueing| run(config.clone(), queueing, vec![20_000]).deepest;
    assert_eq!(deepest(Queueing::Alone), 1);
    assert_eq!(deepest(Queueing::Inline), 8);
}

const OPS: u64 = 64;

/// Runs a job and returns its engine.
fn run(config: WorkerConfig, queueing: Queueing, latencies: Vec<u64>) -> Unqueued {
    let mut engine = Unqueued {
        queueing,
        deepest: 0,
        latencies,
        now: 0,
        prepared: Vec::new(),
        in_flight: VecDeque::new(),
        data: 0,
        syncs: 0,
    };
    let mut worker =
        Worker::new(config, engine.capabilities(), Tick::ZERO).expect("it makes sense");
    let stop = StopRequest::default();
    for _ in 0..10_000 {
        let now = Tick::new(engine.now);
        match turn(&mut worker, &mut engine, &stop, now) {
            Step::Again => {}
            Step::Wait { .. } => engine.now += 1_000,
            Step::Blocked => panic!("this engine never blocks"),
            Step::Done => return engine,
        }
    }
    panic!("the job does not end");
}

/// Engine whose ops complete in order, each some time after the one before.
struct Unqueued {
    queueing: Queueing,
    /// Most ops under way.
    deepest: usize,
    latencies: Vec<u64>,
    now: u64,
    prepared: Vec<Op>,
    in_flight: VecDeque<(u64, Op)>,
    data: u64,
    syncs: u64,
}

/// Returns whether the op cannot be queued.
fn is_alone(op: &Op) -> bool {
    !matches!(op.kind, OpKind::Data(Direction::Read | Direction::Write))
}

impl Engine for Unqueued {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "unqueued",
            synchronous: false,
            moves_data: false,
            syncs: self.queueing,
            trims: self.queueing,
        }
    }

    fn buffer(&mut self, _slot: Slot) -> &mut [u8] {
        &mut []
    }

    fn prepare(&mut self, op: &Op) {
        let others = self.in_flight.iter().map(|(_, other)| other);
        let in_its_way = others.take(match self.queueing {
            Queueing::Alone => usize::MAX,
            Queueing::Inline | Queueing::Queued => 0,
        });
        let mut in_its_way = self.prepared.iter().chain(in_its_way);
        let first = in_its_way.clone().next().is_none();
        assert!(first || !is_alone(op), "{op:?} while others are under way");
        assert!(!in_its_way.any(is_alone), "{op:?} beside one that is alone");
        self.prepared.push(*op);
        let under_way = self.prepared.len() + self.in_flight.len();
        self.deepest = self.deepest.max(under_way);
    }

    fn submit(&mut self, _want: u32) -> Submitted {
        for op in self.prepared.drain(..) {
            let number = self.data + self.syncs;
            match op.kind {
                OpKind::Data(_) => self.data += 1,
                OpKind::Sync(_) => self.syncs += 1,
            }
            if is_alone(&op) && self.queueing == Queueing::Inline {
                self.in_flight.push_front((self.now, op));
                continue;
            }
            let begin = self.in_flight.back().map_or(self.now, |(end, _)| *end);
            #[expect(clippy::cast_possible_truncation, reason = "a hundred ops")]
            let latency = self.latencies[number as usize % self.latencies.len()];
            self.in_flight
                .push_back((begin.max(self.now) + latency, op));
        }
        let now = Tick::new(self.now);
        Submitted::Issued { issue: now, now }
    }

    fn reap(&mut self, out: &mut [Completion]) -> usize {
        let ready = self.in_flight.partition_point(|(end, _)| *end <= self.now);
        let count = ready.min(out.len());
        for (place, (_, op)) in out.iter_mut().zip(self.in_flight.drain(..count)) {
            let result = op.length.cast_signed();
            *place = Completion {
                slot: op.slot,
                result,
            };
        }
        count
    }

    fn wait(&mut self, _min: u32, _until: Option<Tick>) -> Result<(), EngineError> {
        Ok(())
    }
}

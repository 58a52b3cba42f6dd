//! Rules on a job's own ops, beside what comes between and after them: readback, syncs, the ramp.

use std::collections::VecDeque;

use crate::common;
use fathom_core::{
    Capabilities, Completion, Direction, Engine, EngineError, Nanos, Op, OpKind, PerDirection,
    Slot, Step, Submitted, Tick,
};
use fathom_workload::{
    CHECKSUMS, Control, LatencyTarget, MapMode, Mix, Pace, PatternConfig, Results, Sequencer,
    SizeChoice, SyncRules, Think, VerifyConfig, VerifyMethod, Worker, WorkerConfig, turn,
};

/// Returns a job that writes `ops` blocks in sequence and reads them back.
fn job(ops: u64) -> WorkerConfig {
    let crc32c = CHECKSUMS.iter().find(|sum| sum.name == "crc32c");
    let method = VerifyMethod::Checksum(crc32c.expect("a known checksum"));
    WorkerConfig {
        verify: Some(VerifyConfig::new(method)),
        ..common::job(common::sequential(Mix::Write, ops * 4096))
    }
}

/// Returns a job whose writes must keep a rate in ops per second.
fn rated(ops: u64, least: u64) -> WorkerConfig {
    WorkerConfig {
        rate_min: PerDirection::new(None, Some(Pace::Ops(least)), None),
        ..job(ops)
    }
}

/// Runs a job and returns its results, and the end of each op. `latency` is the latency of an op
/// that begins at a time, both in ms.
fn run(config: WorkerConfig, latency: fn(OpKind, u64) -> u64) -> (Results, Vec<(OpKind, u64)>) {
    run_on(engine(&config, latency), config)
}

/// Returns the engine of a job.
fn engine(config: &WorkerConfig, latency: fn(OpKind, u64) -> u64) -> Memory {
    let bytes = config.pattern.files[0].file;
    Memory {
        file: vec![0; usize::try_from(bytes).expect("a small file")],
        buffers: vec![vec![0; 16 << 10]; config.depth as usize],
        damaged: None,
        latency,
        now: 0,
        in_flight: VecDeque::new(),
        prepared: Vec::new(),
        done: Vec::new(),
    }
}

fn run_on(mut engine: Memory, config: WorkerConfig) -> (Results, Vec<(OpKind, u64)>) {
    let mut worker =
        Worker::new(config, engine.capabilities(), Tick::ZERO).expect("it makes sense");
    let control = Control::default();
    for _ in 0..1_000_000 {
        let now = Tick::new(engine.now);
        match turn(&mut worker, &mut engine, &control, now) {
            Step::Again => {}
            Step::Wait { min, until, .. } => engine.pass_time(min, until),
            Step::Blocked => panic!("this engine never blocks"),
            Step::Done => return (worker.into_results(), engine.done),
        }
    }
    panic!("the job does not end");
}

/// Engine of a file in memory, which serves one op after the other.
struct Memory {
    file: Vec<u8>,
    buffers: Vec<Vec<u8>>,
    /// Offset of a byte that reads find damaged.
    damaged: Option<u64>,
    latency: fn(OpKind, u64) -> u64,
    now: u64,
    prepared: Vec<Op>,
    in_flight: VecDeque<(u64, Op)>,
    done: Vec<(OpKind, u64)>,
}

impl Memory {
    fn pass_time(&mut self, min: u32, until: Option<Tick>) {
        let first = self.in_flight.front().filter(|_| min > 0);
        let moments = [first.map(|(end, _)| *end), until.map(Tick::get)];
        let next = moments.into_iter().flatten().min();
        self.now = self.now.max(next.expect("something to wait for"));
    }

    fn transfer(&mut self, op: &Op) {
        let OpKind::Data(direction) = op.kind else {
            return;
        };
        let at = usize::try_from(op.offset).expect("a small offset");
        let part = &mut self.file[at..][..op.length as usize];
        let buffer = &mut self.buffers[op.slot.index()][..op.length as usize];
        match direction {
            Direction::Read => {
                buffer.copy_from_slice(part);
                let damaged = self.damaged.and_then(|at| at.checked_sub(op.offset));
                let damaged = damaged.and_then(|at| buffer.get_mut(usize::try_from(at).ok()?));
                damaged.into_iter().for_each(|byte| *byte ^= 1);
            }
            Direction::Write => part.copy_from_slice(buffer),
            Direction::Trim => part.fill(0),
        }
    }
}

impl Engine for Memory {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "memory",
            synchronous: false,
            moves_data: true,
            queued_sync: true,
            queued_trim: true,
        }
    }

    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        &mut self.buffers[slot.index()]
    }

    fn prepare(&mut self, op: &Op) {
        self.prepared.push(*op);
    }

    fn submit(&mut self, _want: u32) -> Submitted {
        for op in std::mem::take(&mut self.prepared) {
            self.transfer(&op);
            let begin = self.in_flight.back().map_or(self.now, |(end, _)| *end);
            let begin = begin.max(self.now);
            let latency = (self.latency)(op.kind, begin / MS) * MS;
            self.in_flight.push_back((begin + latency, op));
        }
        let now = Tick::new(self.now);
        Submitted::Issued { issue: now, now }
    }

    fn reap(&mut self, out: &mut [Completion]) -> usize {
        let ready = self.in_flight.partition_point(|(end, _)| *end <= self.now);
        let count = ready.min(out.len());
        for (place, (end, op)) in out.iter_mut().zip(self.in_flight.drain(..count)) {
            self.done.push((op.kind, end / MS));
            *place = Completion {
                slot: op.slot,
                result: op.length.cast_signed(),
            };
        }
        count
    }

    fn wait(&mut self, _min: u32, _until: Option<Tick>) -> Result<(), EngineError> {
        Ok(())
    }
}

/// A millisecond in ns.
const MS: u64 = 1_000_000;

/// Checks that a job has moved all its ops without an error.
#[track_caller]
fn check(config: WorkerConfig, latency: fn(OpKind, u64) -> u64, ops: u64) {
    let (results, _) = run(config, latency);
    assert_eq!(results.error, None);
    let directions = &results.directions;
    assert_eq!((directions.read.ios, directions.write.ios), (ops, ops));
}

#[test]
fn readback_and_final_syncs_do_not_count_for_rate_min() {
    check(rated(350, 60), |_, _| 10, 350);
    let sync = SyncRules {
        at_end: true,
        ..SyncRules::default()
    };
    let config = WorkerConfig {
        sync,
        ..rated(350, 60)
    };
    let slow_sync = |kind, _| {
        if matches!(kind, OpKind::Sync(_)) {
            3000
        } else {
            10
        }
    };
    check(config, slow_sync, 350);
    // Passes shorter than a cycle, between which others are read back.
    let config = WorkerConfig {
        loops: 8,
        ..rated(70, 60)
    };
    check(config, |_, _| 10, 8 * 70);
}

#[test]
fn passes_without_readback_are_judged_together() {
    let config = WorkerConfig {
        verify: None,
        loops: 100,
        ..rated(20, 60)
    };
    let (results, _) = run(config, |_, _| 20);
    let activity = results.error.map(|error| error.activity.name());
    assert_eq!(activity, Some("rate_min"), "50 op/s are too few");
}

#[test]
fn the_ramp_does_not_count_for_rate_min() {
    let ramped = |least| WorkerConfig {
        ramp: Nanos::from_secs(6),
        verify: None,
        ..rated(400, least)
    };
    let slow_at_first = |_, at| if at < 6000 { 100 } else { 10 };
    let (results, _) = run(ramped(60), slow_at_first);
    assert_eq!(results.error, None);
    let (results, _) = run(ramped(200), slow_at_first);
    let error = results.error.expect("100 op/s are too few");
    assert_eq!(error.activity.name(), "rate_min");
}

#[test]
fn reads_of_readback_follow_each_other_without_pauses() {
    let think = Think {
        time: Nanos::from_millis(500),
        spin: Nanos::ZERO,
        blocks: 1,
        count_issues: true,
        io_time: Nanos::ZERO,
        moves_schedule: false,
    };
    let config = WorkerConfig {
        think: Some(think),
        loops: 2,
        ..job(3)
    };
    let (_, done) = run(config, |_, _| 10);
    let of = |wanted| {
        let ended = done
            .iter()
            .filter(move |(kind, _)| *kind == OpKind::Data(wanted));
        ended.map(|(_, end)| *end).collect::<Vec<_>>()
    };
    let (writes, reads) = (of(Direction::Write), of(Direction::Read));
    assert_eq!(writes, [10, 520, 1030, 1570, 2080, 2590]);
    assert_eq!(reads, [1540, 1550, 1560, 3100, 3110, 3120]);
}

#[test]
fn a_search_for_a_depth_ends_with_readback() {
    let mut config = job(1000);
    config.limits.target = Some(LatencyTarget {
        latency: Nanos::from_millis(5),
        window: Nanos::from_millis(100),
        share: 100_000_000,
        run: false,
    });
    config.loops = 2;
    // The slow reads come after the search.
    let slow_reads = |kind, _| {
        if kind == OpKind::Data(Direction::Read) {
            10
        } else {
            1
        }
    };
    let (results, done) = run(config, slow_reads);
    assert_eq!(results.error, None);
    let writes = done
        .iter()
        .filter(|(kind, _)| *kind == OpKind::Data(Direction::Write));
    let writes = writes.count() as u64;
    assert!((200..=202).contains(&writes), "{writes}");
    assert_eq!(results.directions.read.ios, writes);
}

#[test]
fn writes_with_gaps_are_read_back() {
    for gap in [100, 1000, 512] {
        let ops = job(256);
        let pattern = PatternConfig {
            sequencer: Sequencer::Skip(gap),
            ..ops.pattern.clone()
        };
        let (results, _) = run(WorkerConfig { pattern, ..ops }, |_, _| 1);
        assert_eq!(results.error, None);
        let (reads, writes) = (results.directions.read.ios, results.directions.write.ios);
        assert!(writes > 100 && reads == writes, "{gap}: {reads} {writes}");
    }
}

#[test]
fn every_block_of_an_op_is_checked_whichever_size_it_has() {
    let mut config = job(16);
    config.pattern.random = true;
    config.pattern.map = MapMode::Off;
    config.pattern.sizes_by_order = true;
    config.pattern.sizes.read = SizeChoice::Fixed(16 << 10);
    config.pattern.percentage_random.write = 0;
    for block in 0..16 {
        let mut engine = engine(&config, |_, _| 1);
        engine.damaged = Some(block * 4096 + 1000);
        let (results, _) = run_on(engine, config.clone());
        assert!(results.error.is_some(), "block {block}");
    }
}

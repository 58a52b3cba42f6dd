//! Trims of several ranges: each range is drawn like an op, and an op counts once.

use crate::common::{self, file};
use fathom_core::{
    Capabilities, Completion, Direction, Engine, EngineError, Op, Queueing, Slot, Step,
    StopRequest, Submitted, Tick, TrimRange,
};
use fathom_workload::{
    FileService, Mix, Pace, Rate, RateProcess, Results, SizeChoice, Worker, WorkerConfig, turn,
};

/// Engine that notes its ops, and completes every one at once.
#[derive(Default)]
struct Recorder {
    now: u64,
    /// Ranges of the next trim.
    set: Vec<TrimRange>,
    prepared: Vec<Op>,
    /// Each op, its time, and its ranges (offset, length).
    seen: Vec<Seen>,
}

type Seen = (u64, Op, Vec<(u64, u32)>);

impl Engine for Recorder {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "ranges",
            synchronous: false,
            moves_data: true,
            syncs: Queueing::Queued,
            trims: Queueing::Queued,
        }
    }

    fn buffer(&mut self, _slot: Slot) -> &mut [u8] {
        &mut []
    }

    fn set_ranges(&mut self, _slot: Slot, ranges: &[TrimRange]) {
        self.set = ranges.to_vec();
    }

    fn prepare(&mut self, op: &Op) {
        let ranges: Vec<_> = self.set.drain(..).map(|r| (r.offset, r.length)).collect();
        assert_eq!(op.offset, ranges[0].0);
        assert_eq!(op.length, ranges.iter().map(|range| range.1).sum::<u32>());
        self.seen.push((self.now, *op, ranges));
        self.prepared.push(*op);
    }

    fn submit(&mut self, _want: u32) -> Submitted {
        let now = Tick::new(self.now);
        Submitted::Issued { issue: now, now }
    }

    fn reap(&mut self, out: &mut [Completion]) -> usize {
        let count = out.len().min(self.prepared.len());
        for (place, op) in out.iter_mut().zip(self.prepared.drain(..count)) {
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

/// Runs a job; returns its ops and its results.
fn run(config: WorkerConfig) -> (Recorder, Results) {
    let mut engine = Recorder::default();
    let mut worker =
        Worker::new(config, engine.capabilities(), Tick::ZERO).expect("it makes sense");
    let stop = StopRequest::default();
    loop {
        let now = Tick::new(engine.now);
        match turn(&mut worker, &mut engine, &stop, now) {
            Step::Again => {}
            Step::Wait { until, .. } => {
                engine.now = until.map_or(engine.now + 1, Tick::get).max(engine.now + 1);
            }
            Step::Blocked => panic!("this engine never blocks"),
            Step::Done => return (engine, worker.into_results()),
        }
        assert!(engine.now < 1 << 40, "the job does not end");
    }
}

fn job(random: bool, ranges: u32, bytes: u64) -> WorkerConfig {
    WorkerConfig {
        trim_ranges: ranges,
        ..common::job(common::config(Mix::Trim, random, 4096, bytes))
    }
}

fn numbers(engine: &Recorder) -> Vec<usize> {
    engine
        .seen
        .iter()
        .map(|(_, _, ranges)| ranges.len())
        .collect()
}

#[test]
fn sequential_ranges_follow_each_other() {
    let (engine, results) = run(job(false, 4, 10 * 4096));
    assert_eq!(numbers(&engine), [4, 4, 2]);
    let ranges = engine.seen.iter().flat_map(|(_, _, ranges)| ranges);
    let want: Vec<_> = (0..10).map(|block| (block * 4096, 4096)).collect();
    assert_eq!(ranges.copied().collect::<Vec<_>>(), want);
    let trims = &results.directions[Direction::Trim];
    assert_eq!((trims.ios, trims.bytes), (3, 10 * 4096));
}

#[test]
fn random_ranges_cover_every_block_once() {
    let (engine, _) = run(WorkerConfig {
        depth: 4,
        ..job(true, 256, 1000 * 4096)
    });
    assert_eq!(numbers(&engine), [256, 256, 256, 232]);
    let ranges = engine.seen.iter().flat_map(|(_, _, ranges)| ranges);
    let mut offsets: Vec<_> = ranges.map(|range| range.0).collect();
    assert!(!offsets.is_sorted());
    offsets.sort_unstable();
    assert_eq!(offsets, (0..1000).map(|b| b * 4096).collect::<Vec<_>>());
}

#[test]
fn each_range_has_a_size_of_its_own() {
    let mut config = job(true, 8, 1 << 26);
    config.pattern.keeps_sizes = true;
    config.pattern.sizes.trim = SizeChoice::Range {
        min: 4096,
        max: 16384,
    };
    let (engine, results) = run(config);
    let mixed = |(_, _, ranges): &Seen| ranges.iter().any(|range| range.1 != ranges[0].1);
    assert!(engine.seen.iter().any(mixed));
    // Blocks that are trimmed already cut no range: the mean is that of the sizes.
    let trims = &results.directions[Direction::Trim];
    assert!(trims.bytes >= 1 << 26);
    let ranges: usize = numbers(&engine).iter().sum();
    let mean = trims.bytes / ranges as u64;
    assert!((10_000..=10_500).contains(&mean), "{mean}");
}

#[test]
fn the_ranges_of_an_op_are_in_one_file() {
    let mut config = job(false, 4, 6 * 4096);
    config.pattern.files = vec![file(0, 6 * 4096), file(0, 6 * 4096)];
    config.pattern.service = FileService::RoundRobin(u32::MAX);
    config.bytes_per_pass *= 2;
    let (engine, _) = run(config);
    assert_eq!(numbers(&engine), [4, 2, 4, 2]);
    let files = engine.seen.iter().map(|(_, op, _)| op.file.get());
    assert_eq!(files.collect::<Vec<_>>(), [0, 0, 1, 1]);
}

#[test]
fn bytes_end_a_pass_between_ranges() {
    let (engine, _) = run(WorkerConfig {
        bytes_per_pass: 7 * 4096,
        loops: 2,
        ..job(false, 3, 100 * 4096)
    });
    assert_eq!(numbers(&engine), [3, 3, 1, 3, 3, 1]);
}

#[test]
fn a_rate_counts_the_bytes_of_all_ranges() {
    let mut config = job(true, 2, 100 * 4096);
    config.rate.trim = Some(Rate {
        pace: Pace::Bytes(8192 * 1000),
        process: RateProcess::Linear,
    });
    let (engine, _) = run(config);
    let times: Vec<_> = engine.seen.iter().map(|(time, ..)| *time).collect();
    let want: Vec<_> = (0..50).map(|op| op * 1_000_000).collect();
    assert_eq!(times, want);
}

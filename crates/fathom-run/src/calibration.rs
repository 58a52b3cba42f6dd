//! The tool's own cost per op of each job's path, measured before the jobs start.
//!
//! ```text
//! job's configuration ─► reduced: short, no pauses, nothing shared ─► a worker of its own
//!                                                                       │ turns, 2 ms
//!                        median ns per op of the turns ◄─ DryEngine ◄───┘
//! ```
//!
//! The dry worker is built from a copy: the job's own generators, maps and groups are not touched,
//! and no file is. It takes the path of the job through the loop, with its pattern, batches and
//! measurements, and fills buffers. Checksums of verified data, logs and recordings are left out.
//! Clones share a calibration, as do jobs that differ in files and seeds alone; all of them take
//! 20 ms at most.

use std::collections::HashMap;

use fathom_core::{
    Capabilities, Completion, Direction, Engine, EngineError, Nanos, Op, PerDirection, Slot, Step,
    StopRequest, Submitted, Tick,
};
use fathom_engine::{AnyEngine, EngineConfig, Null, built_in, start};
use fathom_record::OwnCostRecord;
use fathom_setup::translate::JobSetup;
use fathom_sys::clock::Clock;
use fathom_workload::{
    FileRange, LimitConfig, Measure, Pace, Rate, Think, Worker, WorkerConfig, turn,
};

/// Returns the own cost of each job, in the order of the setups. The cost per op is missing if the
/// time was over before it could be measured, or the job replays a log.
pub(crate) fn own_costs(setups: &[JobSetup], clock: &Clock) -> Vec<OwnCostRecord> {
    let last_start = clock.now() + BUDGET;
    let (mut by_section, mut by_path) = (HashMap::new(), HashMap::new());
    let each = setups.iter().map(|setup| OwnCostRecord {
        clock_read_ns: clock.read_cost_ns(),
        loop_ns_per_op: *by_section.entry(setup.place.section).or_insert_with(|| {
            // The first one in any case, however late a busy machine comes to it.
            if clock.now() >= last_start && !by_path.is_empty() {
                return None;
            }
            let dry = DryRun::of(setup)?;
            *(by_path.entry(dry.path())).or_insert_with(|| dry.ns_per_op(clock, SPAN))
        }),
    });
    each.collect()
}

/// Reduced copy of a job.
#[derive(Debug)]
struct DryRun {
    config: WorkerConfig,
    synchronous: bool,
    /// Size of the buffer that all slots share; 0 if the engine moves no data.
    buffer_bytes: u32,
}

impl DryRun {
    /// Reduces a job; `None` if its ops come from a log, or it has none.
    fn of(setup: &JobSetup) -> Option<Self> {
        let job = &setup.worker;
        if job.replay.is_some() || job.pattern.preconditioning.is_some() {
            return None;
        }
        let options = &setup.job.options;
        let synchronous = options.is_synchronous(job.depth);
        let buffer_bytes = match options.moves_data() && setup.buffer_bytes <= BUFFER_BYTES_MAX {
            true => setup.buffer_bytes,
            false => 0,
        };
        Some(Self {
            config: reduced(job),
            synchronous,
            buffer_bytes,
        })
    }

    /// Returns the key of the path: equal for jobs that differ in files and seeds alone.
    fn path(&self) -> String {
        format!("{self:?}")
    }

    /// Returns the median over the turns of the time per op; `None` if no op completes.
    ///
    /// The turns take `span`. On a busy machine it can pass before the first op completes: then the
    /// turn that completes one is the last.
    fn ns_per_op(self, clock: &Clock, span: Nanos) -> Option<f64> {
        let mut engine = DryEngine::new(&self, clock)?;
        let begun = clock.now();
        let mut worker = Worker::new(self.config, engine.capabilities(), begun).ok()?;
        worker.set_clock_read(Nanos::new(clock.read_cost_ns()));
        let never = StopRequest::default();
        let (mut turns, mut done) = (Vec::with_capacity(TURNS_KEPT), 0);
        for taken in 0.. {
            let now = clock.now();
            let enough = match turns.len() {
                0 => taken == IDLE_TURNS_MAX,
                kept => kept == TURNS_KEPT || now >= begun + span,
            };
            if enough {
                break;
            }
            if turn(&mut worker, &mut engine, &never, now) == Step::Done {
                break;
            }
            let after = clock.now();
            let ios = worker.progress().ios;
            let total: u64 = Direction::ALL.into_iter().map(|way| ios[way]).sum();
            if total > done {
                turns.push(ratio((after - now).get(), total - done));
            }
            done = total;
        }
        turns.sort_by(f64::total_cmp);
        let median = turns.get(turns.len() / 2)?;
        Some((median * 10.0).round() / 10.0)
    }
}

/// Returns a configuration with the same path through the loop that neither waits nor ends, and
/// shares nothing with other jobs.
fn reduced(job: &WorkerConfig) -> WorkerConfig {
    let mut pattern = job.pattern.clone();
    pattern.seed = 1;
    pattern.files.truncate(FILES_MAX);
    // Parts and sequences name places in the files as they are.
    if pattern.shares.is_none() && pattern.sequence.is_none() && pattern.zones.is_none() {
        for file in &mut pattern.files {
            let length = file.length.min(FILE_BYTES);
            *file = FileRange {
                offset: 0,
                length,
                file: length,
            };
        }
    }
    // An op is due whenever there is room for it.
    let rate = |rate: Option<Rate>| {
        rate.map(|rate| Rate {
            pace: Pace::Ops(1_000_000_000),
            ..rate
        })
    };
    let bytes = pattern.files.iter().map(|file| file.length).sum();
    WorkerConfig {
        bytes_per_pass: job.bytes_per_pass.min(bytes),
        pattern,
        loops: 1,
        bytes_in_all: None,
        runtime: Some(Nanos::MAX),
        time_based: true,
        ramp: Nanos::ZERO,
        start_delay: Nanos::ZERO,
        rate: job.rate.map(rate),
        rate_min: PerDirection::default(),
        // As often looked at, and never held.
        think: job.think.map(|think| Think {
            time: Nanos::ZERO,
            spin: Nanos::ZERO,
            blocks: u32::MAX,
            io_time: Nanos::ZERO,
            ..think
        }),
        fill: false,
        sync_filesystems: Vec::new(),
        recreate_each_pass: false,
        trim_ranges: 1,
        // Without zones, but on the path that looks at each op.
        serialize_overlap: job.serialize_overlap || job.zoned.is_some(),
        zoned: None,
        verify: None,
        is_dry_run: false,
        generations: Vec::new(),
        measure: Measure {
            bandwidth: false,
            ..job.measure
        },
        invalidate: false,
        block_lives: None,
        limits: LimitConfig::default(),
        replay: None,
        records: false,
        timeline: None,
        depth: job.depth.min(DEPTH_MAX),
        ..job.clone()
    }
}

/// The null engine with the capabilities of another, and a buffer to fill.
///
/// A type of its own: a second caller of the loop over `Null` would change how the compiler inlines
/// the first.
struct DryEngine {
    null: Null,
    capabilities: Capabilities,
    buffer: Box<[u8]>,
}

impl DryEngine {
    fn new(dry: &DryRun, clock: &Clock) -> Option<Self> {
        // The null engine is synchronous at depth 1.
        let depth = match dry.synchronous {
            true => 1,
            false => dry.config.depth.max(2),
        };
        let config = EngineConfig {
            depth,
            ..EngineConfig::new(built_in("null"), *clock)
        };
        let Ok(AnyEngine::Null(null)) = start(config) else {
            return None;
        };
        Some(Self {
            capabilities: Capabilities {
                synchronous: dry.synchronous,
                moves_data: dry.buffer_bytes > 0,
                ..null.capabilities()
            },
            null,
            buffer: vec![0; dry.buffer_bytes as usize].into_boxed_slice(),
        })
    }
}

impl Engine for DryEngine {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    #[inline]
    fn buffer(&mut self, _slot: Slot) -> &mut [u8] {
        &mut self.buffer
    }

    #[inline]
    fn prepare(&mut self, op: &Op) {
        self.null.prepare(op);
    }

    #[inline]
    fn prepare_many(&mut self, op: &Op, slots: &[Slot], offset: impl FnMut() -> u64) {
        self.null.prepare_many(op, slots, offset);
    }

    #[inline(always)]
    fn submit(&mut self, want: u32) -> Submitted {
        self.null.submit(want)
    }

    #[inline]
    fn reap(&mut self, out: &mut [Completion]) -> usize {
        self.null.reap(out)
    }

    fn wait(&mut self, min: u32, until: Option<Tick>) -> Result<(), EngineError> {
        self.null.wait(min, until)
    }
}

fn ratio(span_ns: u64, ops: u64) -> f64 {
    span_ns as f64 / ops as f64
}

/// Time after which no further calibration starts. A started one takes `SPAN` and at most one turn,
/// 5 ms, more: 20 ms in all.
const BUDGET: Nanos = Nanos::from_millis(12);
/// Length of a calibration: a turn over a fast path takes some 0.3 ms.
const SPAN: Nanos = Nanos::from_millis(2);
/// Turns of which the median is taken, at most.
const TURNS_KEPT: usize = 256;
/// Turns to wait for the first op: the first of them only submits.
const IDLE_TURNS_MAX: usize = 16;
/// Files of the reduced job: a guess at more than one op needs in the cache.
const FILES_MAX: usize = 8;
/// Bytes of each file of the reduced job: the map of its blocks stays in the L1 cache.
const FILE_BYTES: u64 = 64 << 20;
/// Depth of the reduced job: a deeper queue costs cache misses, which depend on the device's order
/// of completion.
const DEPTH_MAX: u32 = 64;
/// Largest buffer that is filled: all of a queue are filled before the first op.
const BUFFER_BYTES_MAX: u32 = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_setup::fixture::FakeFiles;
    use fathom_setup::translate::translate;

    fn setups(words: &str) -> Vec<JobSetup> {
        let plan = crate::testing::plan(words);
        translate(&plan, &FakeFiles::default(), &mut || 0).setups
    }

    fn costs(words: &str) -> Vec<Option<f64>> {
        let costs = own_costs(&setups(words), &Clock::calibrated());
        costs.into_iter().map(|cost| cost.loop_ns_per_op).collect()
    }

    /// Jobs whose ops wait, end early or share state when they run.
    #[test]
    fn every_kind_of_job_is_calibrated() {
        for words in [
            "--rw=randread",
            "--rw=write --ioengine=null",
            "--rw=randrw --ioengine=libaio --iodepth=64 --iodepth_batch=8",
            "--rw=randwrite --verify=crc32c --refill_buffers=1",
            "--rw=read --rate_iops=10 --startdelay=9 --ramp_time=9",
            "--rw=randread --thinktime=1s --runtime=1 --number_ios=1",
            "--rw=write --fsync=1 --loops=2 --io_size=4k",
            "--rw=randread --bs=512k --nrfiles=20",
            "--rw=randtrim --ioengine=null --iodepth=4",
            "--rw=randread --random_distribution=zoned:50/10:50/90",
        ] {
            let costs = costs(&format!("--name=t --size=1g {words}"));
            assert!(costs[0].is_some_and(|ns| ns > 0.0), "{words}: {costs:?}");
        }
    }

    #[test]
    fn a_job_is_calibrated_though_the_span_is_over_before_its_first_op() {
        let setups = setups("--name=t --size=1g --rw=randrw --ioengine=libaio --iodepth=64");
        let dry = DryRun::of(&setups[0]).unwrap();
        let cost = dry.ns_per_op(&Clock::calibrated(), Nanos::ZERO);
        assert!(cost.is_some_and(|ns| ns > 0.0), "{cost:?}");
    }

    #[test]
    fn clones_share_a_calibration() {
        let costs = costs("--name=a --size=1m --rw=randread --numjobs=300");
        assert_eq!(costs.len(), 300);
        // Floats of one measurement: equal to the last bit.
        assert!(costs.iter().all(|cost| cost == &costs[0]), "{costs:?}");
    }

    #[test]
    fn jobs_that_differ_in_files_and_seeds_have_one_path() {
        let paths = |words: &str| -> Vec<String> {
            let setups = setups(&format!("--name=a --size=1m --rw=randread {words}"));
            let dry = setups.iter().filter_map(DryRun::of);
            dry.map(|dry| dry.path()).collect()
        };
        let same = paths("--name=b --size=1m --rw=randread --randseed=9 --offset=1m");
        assert!(same.len() == 2 && same[0] == same[1], "{same:?}");
        let other = paths("--name=b --size=1m --rw=randread --bs=8k");
        assert!(other.len() == 2 && other[0] != other[1], "{other:?}");
    }

    #[test]
    fn a_dry_run_leaves_the_job_as_it_is() {
        let setups = setups("--name=t --size=1g --rw=randwrite --flow=1 --verify=md5");
        let before = format!("{:?}", setups[0].worker);
        let _measured = own_costs(&setups, &Clock::calibrated());
        assert_eq!(format!("{:?}", setups[0].worker), before);
    }
}

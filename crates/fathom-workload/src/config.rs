//! Worker configuration, fully resolved: no option names, no defaults left to apply.
//!
//! The setup of a run translates a plan into these types; the loop and the patterns read nothing
//! else.

mod content;
mod pattern;

use std::sync::Arc;

use fathom_core::{FileIndex, Nanos, PerDirection};

use crate::limit_config::LimitConfig;
use crate::replay::ReplayConfig;
use crate::source::used_directions;
use crate::timeline::GroupTimeline;
use crate::verify::{GenerationMap, MapLayout, Verifier, map_layout};
use crate::zones::ZoneAccess;

pub use content::{
    BufferConfig, BufferFill, Compressible, Dedupe, Repeated, TrimRule, VerifyBacklog,
    VerifyConfig, VerifyMethod,
};
pub use pattern::{
    AccessShare, BlockSequence, Distribution, FileRange, FileService, MapMode, Mix, PartLength,
    PatternConfig, Preconditioning, RandomGenerator, Sequencer, SizeChoice, Zones,
};

/// Configuration of one worker.
#[derive(Clone, Debug)]
pub struct WorkerConfig {
    /// Offsets, sizes and directions of ops.
    pub pattern: PatternConfig,
    /// Queue depth: number of slots, ≥ 1.
    pub depth: u32,
    /// Batching of submissions and completions.
    pub batching: Batching,
    /// Ranges that a trim has at most, ≥ 1; more only if all ops are trims.
    pub trim_ranges: u32,
    /// Bytes to issue in one pass; the pattern starts over if it ends earlier.
    /// [`WHOLE_PATTERN`](Self::WHOLE_PATTERN) for passes that only the pattern ends.
    pub bytes_per_pass: u64,
    /// Passes to make; ignored when `time_based`.
    pub loops: u32,
    /// Bytes to issue over all passes; the last pass ends with them. The job ends earlier if it has
    /// made `loops` passes and issued this number divided by `loops`.
    pub bytes_in_all: Option<u64>,
    /// Upper bound of the measured time.
    pub runtime: Option<Nanos>,
    /// Start over until `runtime` has passed.
    pub time_based: bool,
    /// Ramp time: ops run but are not counted.
    pub ramp: Nanos,
    /// Delay before the first op.
    pub start_delay: Nanos,
    /// Pace of each direction.
    pub rate: PerDirection<Option<Rate>>,
    /// Lower bounds on pace, checked every `rate_cycle`.
    pub rate_min: PerDirection<Option<Pace>>,
    /// Interval of the `rate_min` check.
    pub rate_cycle: Nanos,
    /// Pauses between ops.
    pub think: Option<Think>,
    /// An op that overlaps one in flight waits for it, if either of them writes or trims.
    pub serialize_overlap: bool,
    /// A write that fails for lack of space ends the job without an error.
    pub fill: bool,
    /// Syncs during and after the job.
    pub sync: SyncRules,
    /// Files whose file systems are synced at the end of the job; not counted.
    pub sync_filesystems: Vec<FileIndex>,
    /// Files are removed and created again before each pass but the first.
    pub recreate_each_pass: bool,
    /// Errors that do not end the job.
    pub tolerate: Tolerate,
    /// Verification of written data.
    pub verify: Option<VerifyConfig>,
    /// Draw the ops without issuing them, then read back what they would have left in the files.
    pub is_dry_run: bool,
    /// Maps of the latest writes to the files that other jobs share, in the order of the files;
    /// empty for a job whose files no other job writes.
    pub generations: Vec<Option<Arc<GenerationMap>>>,
    /// Contents of written buffers.
    pub buffers: BufferConfig,
    /// Measurements to take.
    pub measure: Measure,
    /// Timeline of the job's group.
    pub timeline: Option<Arc<GroupTimeline>>,
    /// Choice of ops with an I/O priority of their own; `None` if there are none.
    pub priorities: Option<PerDirection<PriorityChoice>>,
    /// Drop the page cache of each file when a time-based job starts over.
    pub invalidate: bool,
    /// Bytes of a block whose life is followed: its trims until an error.
    pub block_lives: Option<u32>,
    /// Zones of the files, which writes follow.
    pub zoned: Option<ZoneAccess>,
    /// Limits that end the job early or hold ops back.
    pub limits: LimitConfig,
    /// Recorded ops instead of those of the pattern, of which the files alone count.
    pub replay: Option<ReplayConfig>,
    /// Issued ops are recorded, to be replayed.
    pub records: bool,
}

impl WorkerConfig {
    /// More bytes than any pass issues; the sum over two directions cannot overflow.
    pub const WHOLE_PATTERN: u64 = u64::MAX / 4;

    /// Returns the directions of the job's ops.
    pub(crate) const fn used_directions(&self) -> PerDirection<bool> {
        match &self.replay {
            _ if self.is_dry_run => used_directions(Mix::Read),
            Some(replay) => replay.used,
            None => used_directions(self.pattern.mix),
        }
    }

    /// Returns the sizes of the blocks that the job verifies: of its writes, or else of its reads.
    pub(crate) const fn verified_sizes(&self) -> &SizeChoice {
        // A dry run reads back as a job that writes.
        match self.used_directions().write || self.is_dry_run {
            true => &self.pattern.sizes.write,
            false => &self.pattern.sizes.read,
        }
    }

    /// Returns the bytes from the header of one verified block to the next; 0 without verification.
    #[must_use]
    pub fn verify_interval(&self) -> u32 {
        let verify = self.verify.as_ref();
        let verifier =
            verify.map(|verify| Verifier::new(verify, self.verified_sizes(), self.pattern.seed));
        verifier.map_or(0, |verifier| {
            verifier.map_or(0, |verifier| verifier.interval())
        })
    }

    /// Returns the map that the job's writes and trims to one of its files need, if they are
    /// stamped every `interval` bytes; 0 if they are not.
    ///
    /// # Panics
    /// The job has no such file.
    #[must_use]
    pub fn map_layout(&self, file: usize, interval: u32) -> MapLayout {
        let layout = map_layout(&self.pattern, file, interval);
        let zones = self.zoned.as_ref().and_then(|zoned| zoned.sets.get(file));
        zones.map_or(layout, |zones| layout.in_zones(zones))
    }

    /// Returns the layouts of a dry run's maps, by file; none for other jobs.
    #[must_use]
    pub fn dry_run_layouts(&self) -> Vec<MapLayout> {
        let pattern = &self.pattern;
        let verify = self.verify.as_ref().filter(|_| self.is_dry_run);
        let verifier = verify
            .map(|verify| Verifier::new(verify, &pattern.sizes.write, pattern.seed))
            .and_then(Result::ok);
        let layouts = verifier.iter().flat_map(|verifier| {
            let files = 0..pattern.files.len();
            files.map(|file| self.map_layout(file, verifier.interval()))
        });
        layouts.collect()
    }

    /// Returns the directions of the ops that are recorded, those of verification included.
    pub(crate) fn recorded_directions(&self) -> PerDirection<bool> {
        let mut used = self.used_directions();
        let verify = self.verify.as_ref();
        used.read |= verify.is_some_and(|verify| verify.read_back);
        used.trim |= verify.is_some_and(|verify| verify.trims.is_some());
        used
    }

    /// Returns the directions whose ops have due times.
    pub(crate) fn timed_directions(&self) -> PerDirection<bool> {
        let timed = self.replay.is_some_and(|replay| replay.timed);
        self.rate.map(|rate| timed || rate.is_some())
    }
}

/// Choice of a direction's ops with an I/O priority of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PriorityChoice {
    /// None: all ops have the thread's priority.
    Own,
    /// A share of all ops.
    Share(PriorityShare),
    /// Shares by op size in bytes, ascending; those of one size add up to at most 100 percent.
    BySize(Vec<(u32, PriorityShare)>),
}

/// A share of ops and their I/O priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriorityShare {
    /// Percent, 0–100.
    pub percent: u8,
    /// Priority as the kernel encodes it; 0 for the thread's own.
    pub priority: u16,
}

/// Batching of submissions and completions (fio's `iodepth_*` options).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batching {
    /// Ops per submission, 1..=depth.
    pub submit: u32,
    /// Completions to wait for when the queue is full; 0 polls.
    pub complete_min: u32,
    /// Completions per reap, ≥ 1 and ≥ `complete_min`.
    pub complete_max: u32,
    /// Low watermark: a full queue is refilled once no more than this many ops are in flight,
    /// 1..=depth.
    pub low: u32,
}

/// Pace of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Target pace.
    pub pace: Pace,
    /// Spacing of due times.
    pub process: RateProcess,
}

/// Bytes or ops per second; ≥ 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Bytes per second.
    Bytes(u64),
    /// Ops per second.
    Ops(u64),
}

impl Pace {
    /// Returns whether no op would ever be due.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        matches!(self, Self::Bytes(0) | Self::Ops(0))
    }
}

/// Spacing of due times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateProcess {
    /// Even spacing.
    Linear,
    /// Poisson process: exponential gaps.
    Poisson,
}

/// Think time: pauses between ops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Think {
    /// Length of a pause.
    pub time: Nanos,
    /// First part of the pause, spent spinning.
    pub spin: Nanos,
    /// Number of ops between pauses, ≥ 1.
    pub blocks: u32,
    /// Count ops at issue rather than at completion.
    pub count_issues: bool,
    /// I/O time after which to pause as well; 0 for never.
    pub io_time: Nanos,
    /// Shift due times by the pause; otherwise ops due during it are caught up on.
    pub moves_schedule: bool,
}

/// Syncs during and after the job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncRules {
    /// Number of writes between syncs of data and metadata; 0 for none.
    pub full_every: u32,
    /// Number of writes between syncs of data alone, unless both are due; 0 for none.
    pub data_every: u32,
    /// Syncs of the range written since the last one, unless another sync is due.
    pub range: Option<RangeSync>,
    /// Sync at the end of the job, not counted.
    pub at_end: bool,
    /// Sync before each file is closed, not counted.
    pub on_close: bool,
    /// The engine's writes are synced when they complete.
    pub each_write: bool,
}

impl SyncRules {
    /// Returns whether writes must be counted.
    pub(crate) const fn watches_writes(&self) -> bool {
        self.full_every > 0 || self.data_every > 0 || self.range.is_some()
    }
}

/// Calls of `sync_file_range(2)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeSync {
    /// Number of writes between calls, ≥ 1.
    pub every: u32,
    /// Flags of the call.
    pub flags: u8,
}

/// Errors that do not end the job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tolerate {
    /// Failed reads.
    pub read: bool,
    /// Failed writes and trims.
    pub write: bool,
    /// Failed verification.
    pub verify: bool,
    /// Tolerated errnos of each of the three; empty for EIO and EILSEQ.
    pub listed: [Vec<u32>; 3],
}

/// Measurements to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measure {
    /// Submission latency (asynchronous engines only).
    pub slat: bool,
    /// Completion latency.
    pub clat: bool,
    /// Total latency.
    pub lat: bool,
    /// Bandwidth and IOPS samples.
    pub bandwidth: bool,
    /// Histogram of slat.
    pub slat_histogram: bool,
    /// Histogram of clat.
    pub clat_histogram: bool,
    /// Histogram of lat.
    pub lat_histogram: bool,
    /// Length of one bandwidth sample.
    pub bandwidth_sample: Nanos,
    /// Length of one IOPS sample.
    pub iops_sample: Nanos,
}

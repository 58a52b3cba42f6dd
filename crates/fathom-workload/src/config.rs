//! Worker configuration, fully resolved: no option names, no defaults left to apply.
//!
//! The setup of a run translates a plan into these types; the loop and the patterns read nothing
//! else.

use std::sync::Arc;

use fathom_checksum::{Checksum, HeaderLayout};
use fathom_core::{FileIndex, Nanos, PerDirection};

use crate::limit_config::LimitConfig;
use crate::replay::ReplayConfig;
use crate::source::used_directions;
use crate::verify::GenerationMap;

/// Configuration of one worker.
#[derive(Clone, Debug)]
pub struct WorkerConfig {
    /// Offsets, sizes and directions of ops.
    pub pattern: PatternConfig,
    /// Queue depth: number of slots, ≥ 1.
    pub depth: u32,
    /// Batching of submissions and completions.
    pub batching: Batching,
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
    /// Maps of the latest writes to the files that other jobs share, in the order of the files;
    /// empty for a job whose files nobody else writes.
    pub generations: Vec<Option<Arc<GenerationMap>>>,
    /// Contents of written buffers.
    pub buffers: BufferConfig,
    /// Measurements to take.
    pub measure: Measure,
    /// Choice of ops with an I/O priority of their own; `None` if there are none.
    pub priorities: Option<PerDirection<PriorityChoice>>,
    /// Drop the page cache of each file when a time-based job starts over.
    pub invalidate: bool,
    /// Bytes of a block whose life is followed: its trims until an error.
    pub block_lives: Option<u32>,
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
            Some(replay) => replay.used,
            None => used_directions(self.pattern.mix),
        }
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

/// Configuration of a pattern: offsets, sizes and directions of ops.
#[derive(Clone, Debug)]
pub struct PatternConfig {
    /// Directions and their shares.
    pub mix: Mix,
    /// Random offsets rather than sequential ones.
    pub random: bool,
    /// Suffix of `rw`.
    pub sequencer: Sequencer,
    /// The files; at least one.
    pub files: Vec<FileRange>,
    /// Choice of the next op's file.
    pub service: FileService,
    /// Number of files served at a time, ≥ 1; another one is opened when one is finished.
    pub open_files: u32,
    /// Op sizes by direction.
    pub sizes: PerDirection<SizeChoice>,
    /// Random offsets are multiples of this, bytes; ≥ 1 (`blockalign`; by default the smallest
    /// size).
    pub align: PerDirection<u64>,
    /// Tracking of visited blocks.
    pub map: MapMode,
    /// Generator of random offsets.
    pub generator: RandomGenerator,
    /// Distribution of random offsets.
    pub distribution: Distribution,
    /// Parts of the range with their shares of the random ops; not with a map.
    pub shares: Option<PerDirection<Vec<AccessShare>>>,
    /// Blocks to visit in this order, and no others; not with a map.
    pub sequence: Option<BlockSequence>,
    /// Zones to work through one after the other.
    pub zones: Option<Zones>,
    /// Writes that leave an SSD as a long random workload would, instead of drawn ones; for one
    /// file, one size and random writes alone.
    pub preconditioning: Option<Preconditioning>,
    /// Sequential ops take the sizes of reads, random ops those of writes.
    pub sizes_by_order: bool,
    /// Chance in percent, 0–100, that an op of a random job is random and not sequential.
    pub percentage_random: PerDirection<u8>,
    /// Seed of all random streams: the same seed gives the same ops on every host and version.
    pub seed: u64,
}

/// Writes of the physical capacity that outdate the blocks of an SSD as in the steady state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Preconditioning {
    /// Number of regions with a share of outdated blocks of their own, ≥ 2.
    pub regions: u32,
    /// Physical capacity beyond the logical one, as a share of the latter, 0–1.
    pub over_provisioning: f64,
}

/// Choice of the next op's file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FileService {
    /// Round robin with this number of ops per turn, ≥ 1; finished files are skipped.
    RoundRobin(u32),
    /// A random unfinished file, with this number of ops per turn, ≥ 1.
    Random(u32),
    /// Files drawn from a distribution; a finished file starts over.
    Spread(Distribution),
}

/// Part of one file that a job works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileRange {
    /// First byte.
    pub offset: u64,
    /// Length in bytes. Ops start and end within; only a sequential op of fixed size may end after
    /// it, if the file continues.
    pub length: u64,
    /// Size of the whole file, at least up to the end of the range; used for gaps and the last
    /// sequential op.
    pub file: u64,
}

/// Directions and their shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Reads only.
    Read,
    /// Writes only.
    Write,
    /// Trims only.
    Trim,
    /// Reads and writes, with the percentage of reads, 0–100.
    ReadWrite {
        /// Percent, 0–100.
        read: u8,
    },
    /// Pairs of a trim and a write of the same block.
    TrimWrite,
}

/// Suffix of `rw` (`rw=…:N`): ops between random offsets, or the gap after sequential ops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sequencer {
    /// No suffix.
    None,
    /// Sequential: this many bytes are added after each op (negative: backwards).
    ///
    /// A gap that leads as far from the start of the range as the file is long makes the next op
    /// start over. The pass ends if the gap leaves no space in the range, or if an op ended with
    /// the file.
    Skip(i64),
    /// Random: a new offset every this many ops, ≥ 1; sequential in between.
    Every(u32),
    /// Random: a new offset every this many ops, ≥ 1; the same one in between.
    Repeat(u32),
}

/// Op sizes of one direction, bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SizeChoice {
    /// Fixed size.
    Fixed(u32),
    /// Uniform between the two, in multiples of the smaller.
    Range {
        /// Smallest.
        min: u32,
        /// Largest.
        max: u32,
    },
    /// Uniform between the two, in bytes.
    Unaligned {
        /// Smallest.
        min: u32,
        /// Largest.
        max: u32,
    },
    /// Sizes with their shares in percent, which add up to 100.
    Split(Vec<(u32, u8)>),
}

/// Tracking of visited blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapMode {
    /// Every block is visited exactly once per pass.
    On,
    /// As `On`, but without the map if memory is short.
    Soft,
    /// Blocks may repeat.
    Off,
}

/// Generator of random offsets (`random_generator`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RandomGenerator {
    /// 32-bit combined Tausworthe; 64-bit when there are more than 2³² blocks, unless `explicit`.
    Tausworthe {
        /// Selected by the user.
        explicit: bool,
    },
    /// 64-bit combined Tausworthe.
    Tausworthe64,
    /// Linear feedback shift register: visits each block once without a map.
    Lfsr,
}

/// Distribution of random offsets (`random_distribution`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Uniform.
    Uniform,
    /// Zipf with exponent `theta` (≠ 1; 0 is uniform, and below it the last ranks are the popular
    /// ones); popular blocks are scattered unless `center` (0–1) is given.
    Zipf {
        /// Exponent.
        theta: f64,
        /// Position of the most popular block, as a share of the range.
        center: Option<f64>,
    },
    /// Pareto with power `h`, 0 < h < 1.
    Pareto {
        /// Power.
        h: f64,
        /// As for Zipf.
        center: Option<f64>,
    },
    /// Normal around the middle; `deviation` in percent of the range, 0–100.
    Normal {
        /// Percent of the range.
        deviation: f64,
        /// As for Zipf.
        center: Option<f64>,
    },
}

/// Part of the range with a share of the random ops; it starts at the end of the previous part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessShare {
    /// Percent of the ops; those of a list add up to 100.
    pub percent: u8,
    /// Length of the part.
    pub part: PartLength,
}

/// Blocks to visit in a given order, repeatedly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockSequence {
    /// Block numbers in units of the alignment, not empty; numbers beyond the range wrap around.
    pub blocks: Vec<u64>,
    /// Each repetition is shifted by as many blocks as there are numbers.
    pub stride: bool,
}

/// Length of a part of the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartLength {
    /// Percent of the range.
    Percent(u8),
    /// Bytes.
    Bytes(u64),
}

/// Zones: ops stay in one zone until enough bytes were moved there, then move to the next.
///
/// ```text
/// │◄── range ──►│◄ skip ►│◄── range ──►│◄ skip ►│ …   after the last one, the first again
///   size bytes             size bytes
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zones {
    /// Bytes to move in a zone before the next one, ≥ 1.
    pub size: u64,
    /// Bytes of a zone in which ops may start, ≥ 1.
    pub range: u64,
    /// Bytes between two zones.
    pub skip: u64,
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

/// Verification: written blocks are stamped, read back and compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyConfig {
    /// Check of the payload.
    pub method: VerifyMethod,
    /// Pattern of the payload, if given; not empty.
    pub pattern: Option<Vec<u8>>,
    /// Positions in the pattern that hold the block's file offset, eight bytes each.
    pub pattern_offsets: Vec<usize>,
    /// The pattern begins anew with each interval, not with each block.
    pub pattern_per_interval: bool,
    /// Layout of written headers; all layouts are read.
    pub layout: HeaderLayout,
    /// Bytes from one header to the next; `None`: the blocks.
    pub interval: Option<u32>,
    /// Place of header and checksum in each interval.
    pub header_offset: u32,
    /// Compare the numbers of writes, where they are known.
    pub checks_sequence: bool,
    /// Compare the seeds of payloads, where they are known.
    pub checks_seed: bool,
    /// The first mismatch ends the job, even if it tolerates failed verification.
    pub is_fatal: bool,
    /// Keep the blocks of mismatches.
    pub dumps: bool,
    /// The maps are those of an earlier run; blocks that it did not write may hold anything.
    pub has_state: bool,
    /// Read back after the writes of each pass.
    pub read_back: bool,
    /// Trimmed blocks read as zeros, and are checked for it.
    pub zeros_after_trim: bool,
    /// Read back while the job runs, too.
    pub backlog: Option<VerifyBacklog>,
    /// Trim written blocks.
    pub trims: Option<TrimRule>,
    /// Number of the job in the block header, from 1.
    pub thread: u16,
}

impl VerifyConfig {
    /// Returns the configuration of job number 1 that differs from fio's defaults by its method
    /// alone.
    #[must_use]
    pub const fn new(method: VerifyMethod) -> Self {
        Self {
            method,
            pattern: None,
            pattern_offsets: Vec::new(),
            pattern_per_interval: false,
            layout: HeaderLayout::Fio3_42,
            interval: None,
            header_offset: 0,
            checks_sequence: true,
            checks_seed: true,
            is_fatal: false,
            dumps: false,
            has_state: false,
            read_back: true,
            zeros_after_trim: true,
            backlog: None,
            trims: None,
            thread: 1,
        }
    }
}

/// Readback in between: after a number of writes, a number of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifyBacklog {
    /// Number of writes, ≥ 1.
    pub writes: u64,
    /// Number of reads that follow, ≥ 1.
    pub reads: u64,
}

/// Trims of written blocks, before they are read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrimRule {
    /// Share of the writes whose blocks are trimmed, percent, 0–100.
    pub percent: u8,
    /// Number of writes between batches of trims, ≥ 1; `None` for trims at the end of a pass alone.
    pub writes: Option<u64>,
    /// Number of trims in a batch, ≥ 1.
    pub batch: u64,
}

/// Checked content of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifyMethod {
    /// Header and checksum of the payload.
    Checksum(&'static Checksum),
    /// Header, and every other byte is the pattern.
    PatternHeader,
    /// No header: every byte is the pattern.
    Pattern,
    /// Nothing.
    Null,
}

impl VerifyMethod {
    /// Returns whether bytes are compared with a pattern.
    #[must_use]
    pub const fn compares_pattern(self) -> bool {
        matches!(self, Self::Pattern | Self::PatternHeader)
    }
}

/// Contents of written buffers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferConfig {
    /// Fill before the job starts.
    pub fill: BufferFill,
    /// Refill before every write.
    pub refill: bool,
    /// Change a few bytes of each sector before every write.
    pub scramble: bool,
    /// Compressible part of each buffer.
    pub compress: Option<Compressible>,
    /// Buffers that repeat earlier ones.
    pub dedupe: Option<Dedupe>,
}

/// Compressible content: random bytes alternate with the pattern or zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compressible {
    /// Compressible percentage of each chunk, 0–100.
    pub percent: u8,
    /// Chunk size in bytes; 0 for the whole op.
    pub chunk: u32,
}

/// Repeated buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dedupe {
    /// Percentage of buffers that repeat an earlier one, 0–100.
    pub percent: u8,
    /// Repeated buffer.
    pub of: Repeated,
}

/// Choice of the buffer to repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeated {
    /// The last new buffer.
    Last,
    /// A random member of a set, which is the same for all jobs with this seed.
    Set {
        /// Seed of the set.
        seed: u64,
        /// Number of members, ≥ 1.
        count: u64,
    },
}

/// Fill of buffers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BufferFill {
    /// Random bytes.
    Random,
    /// Zeros.
    Zero,
    /// A repeated pattern, not empty.
    Pattern(Vec<u8>),
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

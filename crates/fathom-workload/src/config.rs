//! What a worker is told to do: no option names, no defaults, every value final.
//!
//! `fathom-run` translates a plan into these; the loop and the patterns read nothing else.

use fathom_core::{FileIndex, Nanos, PerDirection};

use crate::job_limits::LimitConfig;

/// Everything one worker needs to know.
#[derive(Clone, Debug)]
pub struct WorkerConfig {
    /// Where ops go and how large they are.
    pub pattern: PatternConfig,
    /// Slots: ops in flight at most, ≥ 1.
    pub depth: u32,
    /// How ops are grouped on their way in and out.
    pub batching: Batching,
    /// Bytes to issue in one pass; the pattern starts over if it ends earlier.
    /// [`WHOLE_PATTERN`](Self::WHOLE_PATTERN) for passes that only the pattern ends.
    pub bytes_per_pass: u64,
    /// Passes to make; ignored when `time_based`.
    pub loops: u32,
    /// Bytes to issue in all passes: the last pass ends where they do. The job ends before them
    /// where it has made `loops` passes and issued this number divided by `loops`.
    pub bytes_in_all: Option<u64>,
    /// Upper bound of the measured time.
    pub runtime: Option<Nanos>,
    /// Start over until `runtime` has passed.
    pub time_based: bool,
    /// Ops run but nothing is counted for this long.
    pub ramp: Nanos,
    /// Nothing happens for this long.
    pub start_delay: Nanos,
    /// Pace of each direction.
    pub rate: PerDirection<Option<Rate>>,
    /// Lower bounds on pace, checked every `rate_cycle`.
    pub rate_min: PerDirection<Option<Pace>>,
    /// How often `rate_min` is checked.
    pub rate_cycle: Nanos,
    /// Pauses between ops.
    pub think: Option<Think>,
    /// An op that overlaps one in flight waits for it, if either of them writes or trims.
    pub serialize_overlap: bool,
    /// A write that finds no room left ends the job, and is no error.
    pub fill: bool,
    /// Syncs during and after the job.
    pub sync: SyncRules,
    /// At the end of the job, the whole file systems of these files; not counted.
    pub sync_filesystems: Vec<FileIndex>,
    /// Files are removed and made anew before each pass but the first.
    pub recreate_each_pass: bool,
    /// Errors that do not end the job.
    pub tolerate: Tolerate,
    /// Write a header into what is written, read it back and compare.
    pub verify: Option<VerifyConfig>,
    /// What written buffers hold.
    pub buffers: BufferConfig,
    /// What is counted.
    pub measure: Measure,
    /// Which ops get an I/O priority of their own; `None` where none does.
    pub priorities: Option<PerDirection<PriorityChoice>>,
    /// Drop the page cache of each file when a time-based job starts over.
    pub invalidate: bool,
    /// What ends it early, or holds it back.
    pub limits: LimitConfig,
}

impl WorkerConfig {
    /// More bytes than any pass issues. Sums of two directions do not overflow.
    pub const WHOLE_PATTERN: u64 = u64::MAX / 4;
}

/// Which ops of a direction get an I/O priority of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PriorityChoice {
    /// None: all have the thread's.
    Own,
    /// A share of all.
    Share(PriorityShare),
    /// By op size in bytes, ascending; shares of one size add up to at most 100 percent.
    BySize(Vec<(u32, PriorityShare)>),
}

/// A share of ops and their I/O priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriorityShare {
    /// Percent, 0–100.
    pub percent: u8,
    /// The kernel's number; 0 for the thread's own.
    pub priority: u16,
}

/// Where ops go and how large they are.
#[derive(Clone, Debug)]
pub struct PatternConfig {
    /// Directions and their shares.
    pub mix: Mix,
    /// Random offsets (else sequential).
    pub random: bool,
    /// `rw=…:N`.
    pub sequencer: Sequencer,
    /// The files; at least one.
    pub files: Vec<FileRange>,
    /// Which of them the next op goes to.
    pub service: FileService,
    /// Work on so many files at a time, and on another only when one is finished; ≥ 1.
    pub open_files: u32,
    /// Op sizes by direction.
    pub sizes: PerDirection<SizeChoice>,
    /// Random offsets are multiples of this, bytes; ≥ 1 (`blockalign`; by default the smallest
    /// size).
    pub align: PerDirection<u64>,
    /// Whether each block is visited once per pass.
    pub map: MapMode,
    /// The generator of random offsets.
    pub generator: RandomGenerator,
    /// How random offsets are spread.
    pub distribution: Distribution,
    /// Parts of the range, each with its share of the random ops; without a map.
    pub shares: Option<PerDirection<Vec<AccessShare>>>,
    /// These blocks, one after the other, and no others; without a map.
    pub sequence: Option<BlockSequence>,
    /// Work through the range zone by zone.
    pub zones: Option<Zones>,
    /// Sequential ops have the sizes of reads, random ones those of writes.
    pub sizes_by_order: bool,
    /// Chance in percent, 0–100, that an op of a random job is random and not sequential.
    pub percentage_random: PerDirection<u8>,
    /// All random streams derive from it: same seed, same ops, on every host and version.
    pub seed: u64,
}

/// Which file the next op goes to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FileService {
    /// Each in turn, so many ops at a time; ≥ 1. A finished file is not visited again in a pass.
    RoundRobin(u32),
    /// Any that is not finished, so many ops at a time; ≥ 1.
    Random(u32),
    /// Some more often than others; a finished file begins again.
    Spread(Distribution),
}

/// The part of one file that a job works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileRange {
    /// First byte.
    pub offset: u64,
    /// Bytes. Ops begin inside and end inside; a sequential op of a size that all have may end
    /// behind it, where the file goes on.
    pub length: u64,
    /// Bytes of the whole file, at least up to the range's end; gaps and the last sequential op
    /// look at it.
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
    /// Reads and writes; the chance of a read in percent, 0–100.
    ReadWrite {
        /// Percent, 0–100.
        read: u8,
    },
    /// A trim, then a write of the same block, and so on.
    TrimWrite,
}

/// `rw=…:N`: what happens between random offsets, or after each sequential op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sequencer {
    /// No suffix.
    None,
    /// Sequential: this many bytes are added after each op (negative: backwards).
    ///
    /// Where a gap leads as far from the range's start as the whole file is long, the next op
    /// begins at the start again; where it does not but leaves no room in the range, or where an
    /// op has ended with the file, the pass ends.
    Skip(i64),
    /// Random: a new offset every so many ops, sequential in between; ≥ 1.
    Every(u32),
    /// Random: a new offset every so many ops, the same one in between; ≥ 1.
    Repeat(u32),
}

/// Op sizes of one direction, bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SizeChoice {
    /// Always this.
    Fixed(u32),
    /// Between the two, in multiples of the smaller.
    Range {
        /// Smallest.
        min: u32,
        /// Largest.
        max: u32,
    },
    /// Between the two, any number of bytes.
    Unaligned {
        /// Smallest.
        min: u32,
        /// Largest.
        max: u32,
    },
    /// Each size with its share in percent; the shares add up to 100.
    Split(Vec<(u32, u8)>),
}

/// Whether each block is visited once per pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapMode {
    /// Every block exactly once.
    On,
    /// As `On`, but without the map where there is no memory for it.
    Soft,
    /// Blocks may repeat.
    Off,
}

/// `random_generator`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RandomGenerator {
    /// 32-bit combined Tausworthe; 64-bit when there are more than 2³² blocks, unless `explicit`.
    Tausworthe {
        /// The user named it.
        explicit: bool,
    },
    /// 64-bit combined Tausworthe.
    Tausworthe64,
    /// Linear feedback shift register: each block once without a map.
    Lfsr,
}

/// `random_distribution`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Uniform.
    Uniform,
    /// Zipf with exponent `theta` (> 0, ≠ 1); popular blocks are scattered unless `center` (0–1) is
    /// given.
    Zipf {
        /// Exponent.
        theta: f64,
        /// Where the most popular block lies, as a share of the range.
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

/// A part of the range that gets a share of the random ops; it begins where the one before ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessShare {
    /// Percent of the ops; those of a list add up to 100.
    pub percent: u8,
    /// How long the part is.
    pub part: PartLength,
}

/// Blocks in a given order, over and over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockSequence {
    /// Their numbers, counted in units of alignment; not empty. Those beyond the range's end are
    /// counted from its start again.
    pub blocks: Vec<u64>,
    /// Each time round, all of them lie further on by as many blocks as there are numbers.
    pub stride: bool,
}

/// How long a part of a range is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartLength {
    /// Percent of the range.
    Percent(u8),
    /// Bytes.
    Bytes(u64),
}

/// Zones: ops stay in one until enough bytes were moved there, then in the next.
///
/// ```text
/// │◄── range ──►│◄ skip ►│◄── range ──►│◄ skip ►│ …   after the last one, the first again
///   size bytes             size bytes
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zones {
    /// Bytes to move in a zone before the next one comes; ≥ 1.
    pub size: u64,
    /// Where in a zone ops may begin, bytes from its start; ≥ 1.
    pub range: u64,
    /// Bytes between two zones.
    pub skip: u64,
}

/// How ops are grouped on their way in and out (fio's `iodepth_*` family).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batching {
    /// Ops handed over per submission, 1..=depth.
    pub submit: u32,
    /// Completions to wait for when the queue is full; 0 polls.
    pub complete_min: u32,
    /// Completions taken at once, ≥ 1 and ≥ `complete_min`.
    pub complete_max: u32,
    /// Refill starts when no more than this many are in flight, 1..=depth.
    pub low: u32,
}

/// Pace of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The pace.
    pub pace: Pace,
    /// How due times are spaced.
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
    /// Whether nothing would ever be due.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        matches!(self, Self::Bytes(0) | Self::Ops(0))
    }
}

/// How due times are spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateProcess {
    /// Evenly.
    Linear,
    /// As a Poisson process: exponential gaps.
    Poisson,
}

/// Pauses between ops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Think {
    /// How long.
    pub time: Nanos,
    /// How much of it burns the processor, first.
    pub spin: Nanos,
    /// After how many ops, ≥ 1.
    pub blocks: u32,
    /// Count ops when they are issued (else when they complete).
    pub count_issues: bool,
    /// Also pause whenever this much time was spent in I/O; zero: never.
    pub io_time: Nanos,
    /// Due times move on by the pause; else what was due in it is made up for.
    pub moves_schedule: bool,
}

/// Syncs during and after the job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncRules {
    /// Data and metadata after every so many writes; 0 never.
    pub full_every: u32,
    /// Data alone after every so many writes, unless both are due; 0 never.
    pub data_every: u32,
    /// What was written to the file since the last of these, after every so many writes, unless
    /// another is due.
    pub range: Option<RangeSync>,
    /// One at the end of the job, not counted.
    pub at_end: bool,
    /// One before each file is closed, not counted.
    pub on_close: bool,
}

impl SyncRules {
    /// Whether writes are to be counted.
    pub(crate) const fn watches_writes(&self) -> bool {
        self.full_every > 0 || self.data_every > 0 || self.range.is_some()
    }
}

/// `sync_file_range(2)` after every so many writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeSync {
    /// How many; ≥ 1.
    pub every: u32,
    /// The call's flags.
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
    /// The errnos of each of the three; empty for EIO and EILSEQ.
    pub listed: [Vec<u32>; 3],
}

/// Write a header into what is written, read it back and compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyConfig {
    /// What is checked.
    pub method: VerifyMethod,
    /// The pattern of the payload, if the user gave one; not empty.
    pub pattern: Option<Vec<u8>>,
    /// Where in the pattern eight bytes are the offset of the block in its file.
    pub pattern_offsets: Vec<usize>,
    /// Read back after the writes of each pass.
    pub read_back: bool,
    /// The job's number, 1-based, as in the block header.
    pub thread: u16,
}

/// What is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifyMethod {
    /// Header and CRC-32C of the payload.
    Crc32c,
    /// Header and MD5 of the payload.
    Md5,
    /// No header: every byte is the pattern.
    Pattern,
}

/// What written buffers hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferConfig {
    /// How they are filled before the job starts.
    pub fill: BufferFill,
    /// Fill anew before every write.
    pub refill: bool,
    /// Change a few bytes of each 512 before every write.
    pub scramble: bool,
    /// A part of each buffer compresses.
    pub compress: Option<Compressible>,
    /// Some buffers repeat an earlier one.
    pub dedupe: Option<Dedupe>,
}

/// Content that compresses: random bytes, then the pattern or zeros, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compressible {
    /// How much of each chunk is no random bytes, percent, 0–100.
    pub percent: u8,
    /// Bytes of a chunk; 0 for the whole op.
    pub chunk: u32,
}

/// Buffers that are the same as others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dedupe {
    /// How many of all buffers repeat one, percent, 0–100.
    pub percent: u8,
    /// Which one.
    pub of: Repeated,
}

/// Which buffers come again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeated {
    /// The last one that was new.
    Last,
    /// Any of so many, the same for all jobs with this seed.
    Set {
        /// What they are made from.
        seed: u64,
        /// How many; ≥ 1.
        count: u64,
    },
}

/// How buffers are filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BufferFill {
    /// Random bytes.
    Random,
    /// Zeros.
    Zero,
    /// A repeated pattern, not empty.
    Pattern(Vec<u8>),
}

/// What is counted.
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

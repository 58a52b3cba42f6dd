//! Configuration of contents: written data, and their verification.

use fathom_checksum::{Checksum, HeaderLayout};

/// Verification: written blocks are stamped, read back and compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyConfig {
    /// Check of the payload.
    pub method: VerifyMethod,
    /// Pattern of the payload, if given; not empty.
    pub pattern: Option<Vec<u8>>,
    /// Positions in the pattern that hold the block's file offset, eight bytes each.
    pub pattern_offsets: Vec<usize>,
    /// Bytes of a block after which the pattern starts over; 0: only at the next block.
    pub pattern_interval: u32,
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
    /// The device compares what is read back, instead of returning it; with
    /// [`VerifyMethod::Pattern`] alone.
    pub on_device: bool,
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
            pattern_interval: 0,
            layout: HeaderLayout::Fio3_42,
            interval: None,
            header_offset: 0,
            checks_sequence: true,
            checks_seed: true,
            is_fatal: false,
            dumps: false,
            has_state: false,
            read_back: true,
            on_device: false,
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

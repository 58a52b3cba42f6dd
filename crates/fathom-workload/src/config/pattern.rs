//! Configuration of patterns: offsets, sizes, directions and files of ops.

use fathom_core::PerDirection;

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
    /// Random ops keep their sizes where they reach into visited blocks, which are visited again.
    pub keeps_sizes: bool,
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

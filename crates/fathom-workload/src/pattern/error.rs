//! Errors in a pattern's configuration.

use std::fmt;

use fathom_core::Direction;

/// Error in a pattern's configuration.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PatternError {
    /// The list of files is empty.
    NoFiles,
    /// A file's range ends past the last byte that an offset can name.
    RangeOverflow {
        /// Index of the file in the list.
        file: usize,
    },
    /// An op of no bytes.
    NoSize {
        /// Direction.
        direction: Direction,
    },
    /// The smallest size is larger than the largest.
    SizesReversed {
        /// Direction.
        direction: Direction,
        /// The smallest.
        min: u32,
        /// The largest.
        max: u32,
    },
    /// The shares of the sizes do not add up to 100.
    Shares {
        /// Direction.
        direction: Direction,
        /// Their sum.
        sum: u32,
    },
    /// The shares of a range's parts do not add up to 100.
    AccessShares {
        /// Direction.
        direction: Direction,
        /// Their sum.
        sum: u32,
    },
    /// A zone of no bytes.
    EmptyZone,
    /// An alignment of 0.
    NoAlignment {
        /// Direction.
        direction: Direction,
    },
    /// A percentage over 100.
    Percent {
        /// Quantity of which it is the share.
        what: &'static str,
        /// The value.
        value: u8,
    },
    /// No op fits into the range of any file.
    TooSmall {
        /// Direction.
        direction: Direction,
        /// The smallest op, bytes.
        size: u32,
        /// The longest range, bytes.
        length: u64,
    },
    /// A sequencer of the other kind: a skip for random offsets, or a repeat for sequential ones.
    WrongSequencer {
        /// The job is random.
        random: bool,
    },
    /// A sequencer with 0 ops per offset.
    NoRepeat,
    /// A parameter of the random distribution is out of its range.
    Distribution {
        /// The parameter.
        what: &'static str,
        /// Its value.
        value: f64,
        /// Allowed range.
        allowed: &'static str,
    },
    /// Not enough memory for the random map.
    NoMemory {
        /// Requested bytes.
        bytes: u64,
    },
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFiles => write!(f, "no files to work on"),
            Self::RangeOverflow { file } => {
                write!(
                    f,
                    "file {file}: offset and size add up to more than 2^64 bytes"
                )
            }
            Self::NoSize { direction } => write!(f, "block size of {}s is 0", direction.name()),
            Self::SizesReversed {
                direction,
                min,
                max,
            } => write!(
                f,
                "block sizes of {}s: the smallest, {min} B, is larger than the largest, {max} B",
                direction.name()
            ),
            Self::Shares { direction, sum } => write!(
                f,
                "block sizes of {}s: the shares add up to {sum} % and not to 100 %",
                direction.name()
            ),
            Self::AccessShares { direction, sum } => write!(
                f,
                "parts of the range: the shares of {}s add up to {sum} % and not to 100 %",
                direction.name()
            ),
            Self::EmptyZone => write!(f, "a zone of no bytes"),
            Self::NoAlignment { direction } => {
                write!(f, "block alignment of {}s is 0", direction.name())
            }
            Self::Percent { what, value } => write!(f, "{what}: {value} % is more than 100 %"),
            Self::TooSmall {
                direction,
                size,
                length,
            } => write!(
                f,
                "block size {size} B of {}s is larger than the range to work on, {length} B",
                direction.name()
            ),
            Self::WrongSequencer { random: true } => {
                write!(
                    f,
                    "a gap in bytes is for sequential jobs, and this one is random"
                )
            }
            Self::WrongSequencer { random: false } => {
                write!(
                    f,
                    "a count of ops per random offset is for random jobs only"
                )
            }
            Self::NoRepeat => write!(f, "a new random offset every 0 ops"),
            Self::Distribution {
                what,
                value,
                allowed,
            } => {
                write!(f, "random distribution: {what} {value} is not {allowed}")
            }
            Self::NoMemory { bytes } => write!(
                f,
                "no memory for the random map: {bytes} bytes (norandommap or lfsr needs none)"
            ),
        }
    }
}

impl std::error::Error for PatternError {}

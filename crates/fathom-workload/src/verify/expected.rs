//! Expected content of a block that is read.

use super::generation::Generation;
use super::header::Header;

/// Content that a block must have, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Nothing is known: a write was in flight beside the read, failed, or covered only a part of
    /// the block.
    Anything,
    /// Not written in this run, or last by a job without verification: a block that is valid by
    /// itself.
    Valid,
    /// Zeros.
    Zeros,
    /// The job's own write of this number.
    Write(u64),
    /// A block of this write.
    Latest {
        /// Generation of the write.
        generation: Generation,
        /// Number of the write in its job, if it is this job's.
        sequence: Option<u64>,
    },
    /// A block of one of these writes, which were in flight together.
    OneOf(Vec<Generation>),
}

impl Expected {
    /// Returns whether a valid block may have this header.
    pub(crate) fn allows(&self, header: &Header) -> bool {
        let found = Generation::new(header.time_ns, header.sequence, header.thread);
        match self {
            Self::Latest { generation, .. } => *generation == found,
            Self::OneOf(generations) => generations.contains(&found),
            Self::Anything | Self::Valid | Self::Zeros | Self::Write(_) => true,
        }
    }

    /// Returns the number of the write in this job, if it is known.
    pub(crate) const fn sequence(&self) -> Option<u64> {
        match self {
            Self::Latest { sequence, .. } => *sequence,
            Self::Write(sequence) => Some(*sequence),
            _ => None,
        }
    }
}

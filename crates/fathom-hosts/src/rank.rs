//! Numbers of ranks, waves and files.

use std::fmt;

/// Number of a rank, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank(u32);

impl Rank {
    /// Creates the rank of this number.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Returns the number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Number of a wave: the sections between two `stonewall`s. Ranks go through them in order, and
/// may lack some.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wave(u32);

impl Wave {
    /// Creates the wave of this number.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Returns the number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Wave {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Identity of a file, or of a job's files: equal where two ranks name the same storage.
///
/// A digest of the path, and of the host where the file system cannot be shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileKey(u64);

impl FileKey {
    /// Creates a key from a digest.
    #[must_use]
    pub const fn new(digest: u64) -> Self {
        Self(digest)
    }

    /// Returns the digest.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// Most ranks of a run: beyond, the list of a launcher is more likely wrong than the cluster large.
pub const RANKS_MAX: u32 = 65_536;

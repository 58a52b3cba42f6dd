//! Events of a log, in the form common to all formats.

use std::fmt;

use fathom_core::{Direction, Nanos, SyncKind};

/// One recorded action on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Time since the start of the recording; never less than that of the event before.
    pub time: Nanos,
    /// File.
    pub file: LogFile,
    /// Action.
    pub action: Action,
}

/// Action of an [`Event`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The file is opened; only an open file has other actions.
    Open,
    /// The file is closed.
    Close,
    /// Moves or discards data; never empty, and `offset + length` is at most `i64::MAX`.
    Data {
        /// Direction.
        direction: Direction,
        /// Byte offset in the file.
        offset: u64,
        /// Bytes.
        length: u32,
    },
    /// Makes earlier writes durable.
    Sync(SyncKind),
}

/// Index of a file among the names of a log, in the order of their first appearance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogFile(pub(crate) u32);

impl LogFile {
    /// Creates the index of the file with this number, counted from 0.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Returns the index in a table of files.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Name of a file in a log.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogFileName {
    /// Path, as written in the log.
    Path(String),
    /// Block device, by the numbers that it had where the log was recorded.
    Device {
        /// Major number.
        major: u32,
        /// Minor number.
        minor: u32,
    },
}

impl fmt::Display for LogFileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => f.write_str(path),
            Self::Device { major, minor } => write!(f, "device {major}:{minor}"),
        }
    }
}

//! One operation, and what came of it.

use crate::{Direction, SyncKind};

/// An op's place in its worker's fixed table of `iodepth` places; carries the op's buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u32);

impl Slot {
    /// The slot with this number, counted from 0.
    #[must_use]
    #[inline]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The slot's number.
    #[must_use]
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The slot's number, to index a table with.
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A file's place in its job's list of files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileIndex(u32);

impl FileIndex {
    /// The file with this number, counted from 0.
    #[must_use]
    #[inline]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The file's number.
    #[must_use]
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The file's number, to index a table with.
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What an op does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpKind {
    /// Moves or discards data.
    Data(Direction),
    /// Makes the file's earlier writes durable; `offset` and `length` are zero but for
    /// [`SyncKind::Range`].
    Sync(SyncKind),
}

/// What an engine is asked to do.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    /// Its place, and so its buffer.
    pub slot: Slot,
    /// What it does.
    pub kind: OpKind,
    /// The kernel's I/O priority, [`IoPriority::to_raw`](crate::IoPriority::to_raw); 0 for the
    /// thread's own.
    pub priority: u16,
    /// The file it works on.
    pub file: FileIndex,
    /// Bytes to move or discard.
    pub length: u32,
    /// Where in the slot's buffer the data begin: not 0 only for the rest of a short transfer.
    pub buffer_offset: u32,
    /// Byte offset in the file.
    pub offset: u64,
    /// Issue order within the job, counted from 0. The rest of a short transfer need not tell it.
    pub sequence: u64,
}

/// What came of an op: as the kernel says it, bytes moved (≥ 0) or a negated errno.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// The op's slot; free for the next op once this is handed out.
    pub slot: Slot,
    /// Bytes moved, or a negated errno.
    pub result: i32,
}

impl Completion {
    /// The most bytes that a result can tell of: a read or write moves fewer in one call of the
    /// kernel's, but a longer trim is done whole and has this result.
    pub const BYTES_MAX: u32 = i32::MAX.unsigned_abs();

    /// The result told apart.
    #[must_use]
    #[inline]
    pub const fn outcome(self) -> Outcome {
        if self.result >= 0 {
            Outcome::Moved(self.result.unsigned_abs())
        } else {
            Outcome::Failed(self.result.unsigned_abs())
        }
    }
}

/// A completion's result, told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// This many bytes were moved; fewer than asked for is a short transfer.
    Moved(u32),
    /// The errno.
    Failed(u32),
}

//! Ops and their completions.

use crate::{Direction, SyncKind};

/// One of a worker's `iodepth` fixed places for ops in flight, each with a buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u32);

impl Slot {
    /// Creates the slot with this number, counted from 0.
    #[must_use]
    #[inline]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Returns the slot's number.
    #[must_use]
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Returns the slot's number as a table index.
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Index of a file in its job's list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileIndex(u32);

impl FileIndex {
    /// Creates the index of the file with this number, counted from 0.
    #[must_use]
    #[inline]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Returns the file's number.
    #[must_use]
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Returns the file's number as a table index.
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Kind of an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpKind {
    /// Moves or discards data.
    Data(Direction),
    /// Makes the file's earlier writes durable; `offset` and `length` are zero except for
    /// [`SyncKind::Range`].
    Sync(SyncKind),
}

/// One operation of a job, as passed to an engine.
///
/// A plain value: the buffer is the slot's, and the retry state the worker's.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    /// Slot, which determines the buffer.
    pub slot: Slot,
    /// Kind.
    pub kind: OpKind,
    /// I/O priority as in [`IoPriority::to_raw`](crate::IoPriority::to_raw); 0: the thread's.
    pub priority: u16,
    /// File to access.
    pub file: FileIndex,
    /// Bytes to move or discard.
    pub length: u32,
    /// Offset of the data in the slot's buffer; non-zero only for the rest of a short transfer.
    pub buffer_offset: u32,
    /// Byte offset in the file.
    pub offset: u64,
    /// Issue order within the job, counted from 0; unspecified for the rest of a short transfer.
    pub sequence: u64,
}

/// Bytes that a trim discards: one range of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrimRange {
    /// Byte offset in the file.
    pub offset: u64,
    /// Bytes to discard.
    pub length: u32,
}

/// Result of an op, in the kernel's form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// Slot of the op, free for the next op once the completion is reaped.
    pub slot: Slot,
    /// Bytes moved (≥ 0), or a negated errno.
    pub result: i32,
}

impl Completion {
    /// Largest result. A read or write moves fewer bytes in one system call; a longer trim is
    /// performed whole and has this result.
    pub const BYTES_MAX: u32 = i32::MAX.unsigned_abs();

    /// Result of an op that did not happen and will not: the peer or the program that it depends on
    /// has ended in order, or the engine was cancelled ([`Engine::cancel`](crate::Engine::cancel)).
    /// The job counts no such op and ends without an error.
    pub const ENDED: i32 = i32::MIN;

    /// Returns the decoded result.
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

/// Decoded result of a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Bytes moved; fewer than requested is a short transfer.
    Moved(u32),
    /// Errno.
    Failed(u32),
}

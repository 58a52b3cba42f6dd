//! An op on its way to a worker, and what came of it: words that any thread may touch, so that no
//! lock is needed. Whose they are is told by the lists.

use fathom_core::{Direction, FileIndex, Op, OpKind, Slot, SyncKind, Tick};

use super::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// One slot's op; a cache line of its own, so that neighbours do not meet.
///
/// All loads and stores are Relaxed: the run list and the completion list publish them.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Cell {
    /// Kind, its argument, priority and file.
    what: AtomicU64,
    /// Length, and where in the buffer.
    extent: AtomicU64,
    offset: AtomicU64,
    sequence: AtomicU64,
    /// When a worker began with it.
    begun: AtomicU64,
    result: AtomicI32,
}

impl Cell {
    /// Puts an op down.
    pub(crate) fn put(&self, op: &Op) {
        let (kind, argument) = code_of(op.kind);
        let what = u64::from(kind)
            | u64::from(argument) << 8
            | u64::from(op.priority) << 16
            | u64::from(op.file.get()) << 32;
        self.what.store(what, Ordering::Relaxed);
        let extent = u64::from(op.length) | u64::from(op.buffer_offset) << 32;
        self.extent.store(extent, Ordering::Relaxed);
        self.offset.store(op.offset, Ordering::Relaxed);
        self.sequence.store(op.sequence, Ordering::Relaxed);
    }

    /// The op that was put down, in this slot.
    #[expect(clippy::cast_possible_truncation, reason = "words are taken apart")]
    pub(crate) fn op(&self, slot: Slot) -> Op {
        let what = self.what.load(Ordering::Relaxed);
        let extent = self.extent.load(Ordering::Relaxed);
        Op {
            slot,
            kind: kind_of(what as u8, (what >> 8) as u8),
            priority: (what >> 16) as u16,
            file: FileIndex::new((what >> 32) as u32),
            length: extent as u32,
            buffer_offset: (extent >> 32) as u32,
            offset: self.offset.load(Ordering::Relaxed),
            sequence: self.sequence.load(Ordering::Relaxed),
        }
    }

    /// A worker begins with it.
    pub(crate) fn begin(&self, now: Tick) {
        self.begun.store(now.get(), Ordering::Relaxed);
    }

    /// When a worker began with it.
    pub(crate) fn begun(&self) -> Tick {
        Tick::new(self.begun.load(Ordering::Relaxed))
    }

    /// Stores the result of the op.
    pub(crate) fn finish(&self, result: i32) {
        self.result.store(result, Ordering::Relaxed);
    }

    /// Returns the result of the op.
    pub(crate) fn result(&self) -> i32 {
        self.result.load(Ordering::Relaxed)
    }
}

const fn code_of(kind: OpKind) -> (u8, u8) {
    match kind {
        OpKind::Data(Direction::Read) => (0, 0),
        OpKind::Data(Direction::Write) => (1, 0),
        OpKind::Data(Direction::Trim) => (2, 0),
        OpKind::Sync(SyncKind::Full) => (3, 0),
        OpKind::Sync(SyncKind::Data) => (4, 0),
        OpKind::Sync(SyncKind::Range(flags)) => (5, flags),
        OpKind::Sync(SyncKind::FileSystem) => (6, 0),
    }
}

const fn kind_of(code: u8, argument: u8) -> OpKind {
    match code {
        0 => OpKind::Data(Direction::Read),
        1 => OpKind::Data(Direction::Write),
        2 => OpKind::Data(Direction::Trim),
        4 => OpKind::Sync(SyncKind::Data),
        5 => OpKind::Sync(SyncKind::Range(argument)),
        6 => OpKind::Sync(SyncKind::FileSystem),
        _ => OpKind::Sync(SyncKind::Full),
    }
}

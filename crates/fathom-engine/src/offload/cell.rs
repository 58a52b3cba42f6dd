//! An op on its way to a worker, and its result, in atomic words: any thread may access them
//! without a lock. The run list and the completion list decide which thread owns them.

use fathom_core::{Direction, FileIndex, Op, OpKind, Slot, SyncKind, Tick};

use super::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// Op of one slot, alone on its cache line so that slots do not share one (false sharing).
///
/// All loads and stores are Relaxed: the run list publishes an op to its worker, the completion
/// list its result to the submitter. A mutex per slot was rejected: it would add atomic
/// read-modify-writes to each op on both sides, and protect nothing that the lists do not.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct OpCell {
    /// Kind, its argument, priority and file.
    what: AtomicU64,
    /// Length and buffer offset.
    extent: AtomicU64,
    offset: AtomicU64,
    sequence: AtomicU64,
    /// Time at which a worker started it.
    started_at: AtomicU64,
    result: AtomicI32,
}

impl OpCell {
    /// Stores an op.
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

    /// Returns the stored op, which belongs to `slot`.
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

    /// Stores the time at which a worker starts the op.
    pub(crate) fn start(&self, now: Tick) {
        self.started_at.store(now.get(), Ordering::Relaxed);
    }

    /// Returns the time at which a worker started the op.
    pub(crate) fn started_at(&self) -> Tick {
        Tick::new(self.started_at.load(Ordering::Relaxed))
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

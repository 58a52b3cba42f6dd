//! Syncs: those that come after every so many writes, and the op that any of them is.
//!
//! As fio has it, a sync is due before an op is chosen, whenever the writes issued so far are a
//! multiple of its interval and the op before was no sync. So in a mix of reads and writes it is
//! made again after each read, until the next write; and where `fsync` and `fdatasync` are due at
//! once, only the `fsync` is made.

use fathom_core::{Engine, FileIndex, OpKind, SyncKind, Tick};

use crate::config::{Mix, SyncRules, WorkerConfig};
use crate::issue::IssueStatus;
use crate::pattern::Target;
use crate::results::JobError;
use crate::worker::{Stage, Worker};

/// Where the job stands with its syncs.
#[derive(Clone, Debug)]
pub(crate) struct SyncState {
    /// Whether any is made while the job runs.
    pub(crate) watches: bool,
    /// The last op was a sync: another comes first.
    pub(crate) gave_way: bool,
    /// Writes issued.
    writes: u64,
    /// The file last written.
    file: FileIndex,
    /// What was written to each file since the last sync of a range; empty where there is none.
    written: Box<[Extent]>,
    /// What the worker's `sequence` was at the last sync at a pass's end.
    pub(crate) synced_at: u64,
}

impl SyncState {
    pub(crate) fn new(config: &WorkerConfig) -> Self {
        // A trim and the write of the same block are one thing: fio puts no sync between them, nor
        // behind them.
        let pairs = matches!(config.pattern.mix, Mix::TrimWrite);
        Self {
            watches: config.sync.watches_writes() && !pairs,
            gave_way: false,
            writes: 0,
            file: FileIndex::new(0),
            written: match config.sync.range {
                Some(_) => vec![Extent::NONE; config.pattern.files.len()].into_boxed_slice(),
                None => Box::default(),
            },
            synced_at: 0,
        }
    }

    /// A write was issued.
    pub(crate) fn wrote(&mut self, target: &Target) {
        self.file = target.file;
        self.writes += 1;
        if let Some(extent) = self.written.get_mut(target.file.index()) {
            extent.start = extent.start.min(target.offset);
            extent.end = extent.end.max(target.offset + u64::from(target.length));
        }
    }

    /// What these rules want after the writes so far.
    const fn wanted(&self, rules: &SyncRules) -> Option<SyncKind> {
        if self.writes == 0 || self.gave_way {
            None
        } else if is_multiple(self.writes, rules.full_every) {
            Some(SyncKind::Full)
        } else if is_multiple(self.writes, rules.data_every) {
            Some(SyncKind::Data)
        } else {
            match rules.range {
                Some(range) if is_multiple(self.writes, range.every) => {
                    Some(SyncKind::Range(range.flags))
                }
                _ => None,
            }
        }
    }
}

/// A part of a file.
#[derive(Clone, Copy, Debug)]
struct Extent {
    start: u64,
    end: u64,
}

impl Extent {
    /// Nothing of it.
    const NONE: Self = Self {
        start: u64::MAX,
        end: 0,
    };
}

const fn is_multiple(writes: u64, every: u32) -> bool {
    every > 0 && writes.is_multiple_of(every as u64)
}

impl Worker {
    /// The sync that comes before the next op. None at the job's end, nor while reading back.
    pub(crate) fn sync_due(&self) -> Option<SyncKind> {
        let pass = &self.source.pass;
        let goes_on = pass.remaining > 0 || !pass.is_last(&self.config) && !self.config.time_based;
        if self.stage != Stage::Running || self.source.held.is_some() || !goes_on {
            return None;
        }
        self.sync.wanted(&self.config.sync)
    }

    /// Issues a sync of the file last written; one that cannot be queued waits until it is alone.
    pub(crate) fn issue_sync<E: Engine>(
        &mut self,
        engine: &mut E,
        now: Tick,
        kind: SyncKind,
    ) -> IssueStatus {
        if !self.engine.queued_sync {
            if !self.queue.is_drained() {
                return IssueStatus::NeedsDrain;
            }
            self.queue.exclusive = true;
        }
        self.sync.gave_way = true;
        self.prepare_sync(engine, now, self.sync.file, kind);
        IssueStatus::Ready
    }

    /// The sync at a pass's or the job's end that comes at `place`, and the place after it: first
    /// the files, where they are asked for, then the file systems.
    pub(crate) fn next_final_sync(
        &self,
        place: FileIndex,
    ) -> Option<(FileIndex, SyncKind, FileIndex)> {
        let files = self.config.pattern.files.len();
        let first = if self.syncs_each_file() { 0 } else { files };
        let place = place.index().max(first);
        let next = FileIndex::new(u32::try_from(place + 1).unwrap_or(u32::MAX));
        if place < files {
            let file = FileIndex::new(u32::try_from(place).unwrap_or(u32::MAX));
            return Some((file, SyncKind::Full, next));
        }
        let file = *self.config.sync_filesystems.get(place - files)?;
        Some((file, SyncKind::FileSystem, next))
    }

    /// Whether each file is synced at the end.
    pub(crate) const fn syncs_each_file(&self) -> bool {
        self.config.sync.at_end || self.config.sync.on_close
    }

    /// Closes every file and opens it again, which makes it anew.
    #[cold]
    pub(crate) fn renew_files<E: Engine>(&mut self, engine: &mut E) {
        self.source.pass.recreate = false;
        for number in 0..self.config.pattern.files.len() {
            let file = FileIndex::new(u32::try_from(number).unwrap_or(u32::MAX));
            let renewed = engine.close(file).and_then(|()| engine.open(file));
            if let Err(error) = renewed {
                return self.fail(JobError {
                    errno: error.errno.unsigned_abs(),
                    what: "open",
                    file,
                    offset: 0,
                    length: 0,
                    detail: Some(error.to_string()),
                });
            }
        }
    }

    /// Prepares a sync of `file`; there must be a free slot.
    pub(crate) fn prepare_sync<E: Engine>(
        &mut self,
        engine: &mut E,
        now: Tick,
        file: FileIndex,
        kind: SyncKind,
    ) {
        let Some(slot) = self.queue.slots.take() else {
            unreachable!("callers see to it that a slot is free");
        };
        let state = self.queue.slots.state(slot);
        state.due = now;
        state.start = now;
        state.op.kind = OpKind::Sync(kind);
        state.op.priority = 0;
        state.op.file = file;
        state.op.length = 0;
        state.op.buffer_offset = 0;
        state.op.offset = 0;
        if let (SyncKind::Range(_), Some(extent)) = (kind, self.sync.written.get_mut(file.index()))
        {
            let Extent { start, end } = std::mem::replace(extent, Extent::NONE);
            state.op.offset = start.min(end);
            // What is too long for an op goes on to the file's end.
            state.op.length = u32::try_from(end - state.op.offset).unwrap_or(0);
        }
        state.op.sequence = self.source.sequence;
        engine.prepare(&state.op);
        self.queue.prepared.push(slot);
    }
}

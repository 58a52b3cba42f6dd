//! Syncs after a number of writes and at the end of passes, and the ops they are made of.
//!
//! A sync is due once after each write whose number is a multiple of the interval, as in fio 3.41;
//! fio 3.33 repeats it in a mix after each read until the next write, and makes none after the
//! writes of `trimwrite`. If `fsync` and `fdatasync` are due together, only the `fsync` is made.

use fathom_core::{Engine, Errno, FileIndex, OpKind, SyncKind, Tick};

use crate::config::{SyncRules, WorkerConfig};
use crate::issue::IssueStatus;
use crate::pattern::OpTarget;
use crate::results::{JobActivity, JobError};
use crate::worker::{Stage, Worker};

/// State of a job's syncs.
#[derive(Clone, Debug)]
pub(crate) struct SyncState {
    /// Syncs are made while the job runs.
    pub(crate) watches: bool,
    /// No sync has been made since the last write.
    is_open: bool,
    /// Number of writes issued.
    writes: u64,
    /// File of the last write.
    file: FileIndex,
    /// Range written to each file since its last range sync; empty without range syncs.
    written: Box<[Extent]>,
    /// `sequence` of the worker at the last sync at the end of a pass.
    pub(crate) synced_at: u64,
}

impl SyncState {
    pub(crate) fn new(config: &WorkerConfig) -> Self {
        Self {
            watches: config.sync.watches_writes(),
            is_open: false,
            writes: 0,
            file: FileIndex::new(0),
            written: match config.sync.range {
                Some(_) => vec![Extent::NONE; config.pattern.files.len()].into_boxed_slice(),
                None => Box::default(),
            },
            synced_at: 0,
        }
    }

    /// Counts an issued write.
    pub(crate) fn wrote(&mut self, target: &OpTarget) {
        self.file = target.file;
        self.writes += 1;
        self.is_open = true;
        if let Some(extent) = self.written.get_mut(target.file.index()) {
            extent.start = extent.start.min(target.offset);
            extent.end = extent.end.max(target.offset + u64::from(target.length));
        }
    }

    /// Returns the sync due after the writes so far.
    const fn wanted(&self, rules: &SyncRules) -> Option<SyncKind> {
        if !self.is_open {
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

/// Part of a file.
#[derive(Clone, Copy, Debug)]
struct Extent {
    start: u64,
    end: u64,
}

impl Extent {
    /// Empty extent.
    const NONE: Self = Self {
        start: u64::MAX,
        end: 0,
    };
}

const fn is_multiple(writes: u64, every: u32) -> bool {
    every > 0 && writes.is_multiple_of(every as u64)
}

impl Worker {
    /// Returns the sync due before the next op; `None` at the end of the job and during readback.
    pub(crate) fn sync_due(&self) -> Option<SyncKind> {
        let pass = &self.source.pass;
        let goes_on = pass.remaining > 0
            || self.source.pairs.owes_writes()
            || !pass.is_last(&self.config) && !self.config.time_based;
        if self.stage != Stage::Running || self.source.held.is_some() || !goes_on {
            return None;
        }
        self.sync.wanted(&self.config.sync)
    }

    /// Issues a sync of the file last written, unless the engine cannot take it now.
    pub(crate) fn issue_sync<E: Engine>(
        &mut self,
        engine: &mut E,
        now: Tick,
        kind: SyncKind,
    ) -> IssueStatus {
        if !self.queue.admits(self.engine.syncs) {
            return IssueStatus::NeedsDrain;
        }
        self.queue.last = self.engine.syncs;
        self.sync.is_open = false;
        self.prepare_sync(engine, now, self.sync.file, kind);
        IssueStatus::Ready
    }

    /// Returns the final sync number `place` of a pass or the job, and the next number: first the
    /// files, if requested, then the file systems.
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

    /// Returns whether each file is synced at the end.
    pub(crate) const fn syncs_each_file(&self) -> bool {
        self.config.sync.at_end || self.config.sync.on_close
    }

    /// Closes and opens every file, which creates it again.
    #[cold]
    pub(crate) fn renew_files<E: Engine>(&mut self, engine: &mut E) {
        self.source.pass.recreate = false;
        for number in 0..self.config.pattern.files.len() {
            let file = FileIndex::new(u32::try_from(number).unwrap_or(u32::MAX));
            let renewed = engine.close(file).and_then(|()| engine.open(file));
            if let Err(error) = renewed {
                return self.fail(JobError {
                    errno: error.errno.unwrap_or(Errno::EIO),
                    activity: JobActivity::Reopen,
                    file,
                    offset: 0,
                    length: 0,
                    detail: Some(error.to_string()),
                });
            }
        }
        if let Some(tracking) = &self.tracking {
            tracking.clear();
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
            // A range too long for an op is synced to the end of the file.
            state.op.length = u32::try_from(end - state.op.offset).unwrap_or(0);
        }
        state.op.sequence = self.source.sequence;
        engine.prepare(&state.op);
        if let Some(tracking) = &mut self.tracking {
            tracking.begin_sync(slot, file, kind);
        }
        self.queue.prepared.push(slot);
        self.record_sync(file, kind, now);
    }
}

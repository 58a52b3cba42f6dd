//! Recording of the ops that a job issues, to be replayed later.

use std::fmt;

use fathom_core::{Errno, FileIndex, SyncKind, Tick};

use crate::pattern::OpTarget;
use crate::replay::{ReplayKind, ReplayOp};
use crate::results::{JobActivity, JobError};
use crate::worker::Worker;

/// Receiver of recorded ops.
pub trait RecordingSink: fmt::Debug + Send {
    /// Takes the ops and leaves an empty vector in their place. Called once per chunk, not per op;
    /// it may block, so that no op is lost.
    ///
    /// # Errors
    /// The ops cannot be kept; the job ends, and the sink is not called again.
    fn take(&mut self, ops: &mut Vec<ReplayOp>) -> Result<(), RecordingError>;
}

/// Reason for which ops cannot be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingError {
    /// Errno of the system call that failed.
    pub errno: Errno,
    /// Message: what failed, where, why.
    pub text: String,
}

/// Recording of one job. Its last ops are passed on when it is dropped.
#[derive(Debug)]
pub(crate) struct Recording {
    sink: Box<dyn RecordingSink>,
    ops: Vec<ReplayOp>,
    start: Tick,
}

impl Recording {
    /// Sets the start of the job, from which times count.
    pub(crate) const fn begin(&mut self, now: Tick) {
        self.start = now;
    }

    /// Adds an op, and passes on a full chunk.
    fn add(
        &mut self,
        kind: ReplayKind,
        file: FileIndex,
        (offset, length): (u64, u32),
        now: Tick,
    ) -> Result<(), RecordingError> {
        self.ops.push(ReplayOp {
            due: now - self.start,
            kind,
            file,
            offset,
            length,
        });
        match self.ops.len() < RECORDING_CHUNK_OPS {
            true => Ok(()),
            false => self.sink.take(&mut self.ops),
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if !self.ops.is_empty() {
            // The driver asks whoever keeps the ops whether all are kept.
            let _refused = self.sink.take(&mut self.ops);
        }
    }
}

impl Worker {
    /// Records issued ops in `sink`, if the configuration says so. Call before the first turn.
    pub fn record_to(&mut self, sink: Box<dyn RecordingSink>) {
        self.source.recording = self.config.records.then(|| {
            Box::new(Recording {
                sink,
                ops: Vec::with_capacity(RECORDING_CHUNK_OPS),
                start: Tick::ZERO,
            })
        });
    }

    /// Records an op with data.
    #[inline]
    pub(crate) fn record_op(&mut self, target: &OpTarget, now: Tick) {
        if self.source.recording.is_some() {
            let kind = ReplayKind::Data(target.direction);
            self.record(kind, target.file, (target.offset, target.length), now);
        }
    }

    /// Records a sync. Those of ranges and of file systems have no form in a log.
    pub(crate) fn record_sync(&mut self, file: FileIndex, kind: SyncKind, now: Tick) {
        if matches!(kind, SyncKind::Full | SyncKind::Data) {
            self.record(ReplayKind::Sync(kind), file, (0, 0), now);
        }
    }

    /// Records an op; a recording that cannot go on ends the job.
    fn record(&mut self, kind: ReplayKind, file: FileIndex, place: (u64, u32), now: Tick) {
        let Some(recording) = &mut self.source.recording else {
            return;
        };
        if let Err(error) = recording.add(kind, file, place, now) {
            recording.ops.clear();
            self.source.recording = None;
            self.fail(JobError {
                errno: error.errno,
                activity: JobActivity::Record,
                file,
                offset: 0,
                length: 0,
                detail: Some(error.text),
            });
        }
    }
}

/// Ops per chunk of a recording: 40 KiB.
pub const RECORDING_CHUNK_OPS: usize = 1024;

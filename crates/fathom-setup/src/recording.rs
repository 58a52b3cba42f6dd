//! Recording of a job's ops (`write_iolog`): names and text of the log.

use std::io::{self, Write};

use fathom_core::Nanos;
use fathom_iolog::{Action, write_action, write_add, write_header};
use fathom_workload::{ReplayKind, ReplayOp};

use crate::translate::JobSetup;

/// Recording that a job asks for.
#[derive(Clone, Debug)]
pub struct RecordingSpec {
    /// Path of the log.
    pub path: String,
    /// Names of the job's files, by index.
    names: Vec<String>,
}

impl RecordingSpec {
    /// Returns the recording of a job, if it has one.
    #[must_use]
    pub fn of(setup: &JobSetup) -> Option<Self> {
        let path = setup.job.options.replay.record.as_ref();
        let path = path.filter(|_| setup.worker.records)?;
        Some(Self {
            path: path.clone(),
            names: setup.files.iter().map(|file| file.path.clone()).collect(),
        })
    }
}

/// Text of a recording, written as the ops come.
///
/// Every file of the job is opened at the start and closed at the end, whatever the job does in
/// between: a log needs that, and replays have the same ops.
#[derive(Debug)]
pub struct RecordingText<W> {
    out: W,
    names: Vec<String>,
    last: Nanos,
}

impl<W: Write> RecordingText<W> {
    /// Begins a recording.
    ///
    /// # Errors
    /// Those of `out`, here and below.
    pub fn begin(mut out: W, spec: &RecordingSpec) -> io::Result<Self> {
        write_header(&mut out)?;
        for name in &spec.names {
            write_add(&mut out, name)?;
        }
        for name in &spec.names {
            write_action(&mut out, Nanos::ZERO, name, &Action::Open)?;
        }
        Ok(Self {
            out,
            names: spec.names.clone(),
            last: Nanos::ZERO,
        })
    }

    /// Writes the next ops.
    ///
    /// # Errors
    /// Those of the output.
    pub fn write(&mut self, ops: &[ReplayOp]) -> io::Result<()> {
        for op in ops {
            self.last = op.due;
            let name = &self.names[op.file.index()];
            write_action(&mut self.out, op.due, name, &action(op))?;
        }
        Ok(())
    }

    /// Ends the recording and returns its output.
    ///
    /// # Errors
    /// Those of the output.
    pub fn end(mut self) -> io::Result<W> {
        for name in &self.names {
            write_action(&mut self.out, self.last, name, &Action::Close)?;
        }
        Ok(self.out)
    }
}

const fn action(op: &ReplayOp) -> Action {
    match op.kind {
        ReplayKind::Data(direction) => Action::Data {
            direction,
            offset: op.offset,
            length: op.length,
        },
        ReplayKind::Sync(kind) => Action::Sync(kind),
        ReplayKind::Open => Action::Open,
        ReplayKind::Close => Action::Close,
    }
}

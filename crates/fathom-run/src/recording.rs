//! Thread that writes the recording of one job (`write_iolog`).
//!
//! ```text
//! job ─► full chunks, of which there are few ─► writer ─► temporary file, renamed at the end
//!  ▲                                               │
//!  └──────────────── empty chunks ◄────────────────┘
//! ```
//!
//! A job that finds no empty chunk waits for one, so that no op is lost and memory is bounded. If
//! the log cannot be written, the job ends.

use std::fmt;
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::{Builder, JoinHandle};

use fathom_core::Errno;
use fathom_host::output_file::{self, OutputFile, Stop};
use fathom_setup::outcome::JobFailure;
use fathom_setup::recording::{RecordingSpec, RecordingText};
use fathom_setup::translate::JobSetup;
use fathom_setup::{ProblemKind, RunProblem};
use fathom_workload::{RECORDING_CHUNK_OPS, RecordingError, RecordingSink, ReplayOp};

/// Recording that a job's thread is to start.
#[derive(Clone, Debug)]
pub(crate) struct Recording {
    spec: RecordingSpec,
    /// Ends a wait for the reader of a pipe.
    stop: Stop,
}

impl Recording {
    /// Returns the recording of a job, if it has one.
    pub(crate) fn of(setup: &JobSetup, stop: &Stop) -> Option<Self> {
        let spec = RecordingSpec::of(setup)?;
        let stop = stop.clone();
        Some(Self { spec, stop })
    }

    /// Returns a problem for each log that cannot be written. Nothing is created.
    pub(crate) fn check(setups: &[JobSetup]) -> Vec<RunProblem> {
        let all = setups.iter();
        let specs = all.filter_map(|setup| Some((setup, RecordingSpec::of(setup)?)));
        let problems = specs.filter_map(|(setup, spec)| {
            let error = output_file::check(Path::new(&spec.path)).err()?;
            let message = format!("cannot record the job: {}: {error}", spec.path);
            let problem = RunProblem::new(ProblemKind::LogNotWritable, message);
            let hint = "name a file in an existing directory that can be written to";
            Some(problem.hint(hint).at(&setup.job, "write_iolog"))
        });
        problems.collect()
    }

    /// Starts the writer; returns it with the job's end.
    pub(crate) fn start(self) -> Result<(RecordingWriter, Box<dyn RecordingSink>), JobFailure> {
        let (full, full_out) = sync_channel(CHUNKS);
        let (empty_in, empty) = sync_channel(CHUNKS);
        for _ in 0..CHUNKS {
            // Cannot fail: there is room, and the receiver is here.
            let _sent = empty_in.try_send(Vec::with_capacity(RECORDING_CHUNK_OPS));
        }
        let (keep, kept) = sync_channel(1);
        let failed = Arc::<OnceLock<Errno>>::default();
        let path = self.spec.path.clone();
        let told = Arc::clone(&failed);
        let thread = Builder::new().name("record".into()).spawn(move || {
            let written = self.write_all(&full_out, &empty_in, &kept);
            // Set before the channels close, from which the job learns that there is an error.
            written.inspect_err(|error| {
                told.get_or_init(|| errno(error));
            })
        });
        let thread = thread.map_err(|error| failure(&path, &error))?;
        let chunks = Chunks {
            full,
            empty,
            failed,
            path: path.clone(),
        };
        let writer = RecordingWriter {
            path,
            thread: Some((thread, keep)),
        };
        Ok((writer, Box::new(chunks)))
    }

    /// Writes chunks until the job drops its end, then gives the log its name if it is `kept`.
    fn write_all(
        self,
        full: &Receiver<Vec<ReplayOp>>,
        empty: &SyncSender<Vec<ReplayOp>>,
        kept: &Receiver<()>,
    ) -> io::Result<()> {
        let output = OutputFile::create(Path::new(&self.spec.path), &self.stop);
        let out = BufWriter::with_capacity(BUFFER_BYTES, output?);
        let mut text = RecordingText::begin(out, &self.spec)?;
        for mut ops in full {
            text.write(&ops)?;
            ops.clear();
            // The job may have ended; otherwise there is room for all chunks.
            let _unused = empty.try_send(ops);
        }
        if kept.recv().is_err() {
            return Ok(());
        }
        text.end()?
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?
            .finish()
    }
}

/// Writer of a recording, which ends when the job's end of it is dropped.
pub(crate) struct RecordingWriter {
    path: String,
    /// Thread, and the order to keep the log; `None` once joined.
    thread: Option<(JoinHandle<io::Result<()>>, SyncSender<()>)>,
}

impl RecordingWriter {
    /// Waits until the log is complete.
    pub(crate) fn finish(mut self) -> Result<(), JobFailure> {
        let Some((thread, keep)) = self.thread.take() else {
            return Ok(());
        };
        // A writer that has failed does not wait for it.
        let _failed = keep.send(());
        let died = || Err(io::Error::other("its writer has died"));
        let written = thread.join().unwrap_or_else(|_| died());
        written.map_err(|error| failure(&self.path, &error))
    }
}

/// Gives the recording up: the job has not run, or has panicked, and an earlier log stays.
impl Drop for RecordingWriter {
    fn drop(&mut self) {
        if let Some((thread, keep)) = self.thread.take() {
            drop(keep);
            let _unwritten = thread.join();
        }
    }
}

/// Job's end of a writer.
struct Chunks {
    full: SyncSender<Vec<ReplayOp>>,
    empty: Receiver<Vec<ReplayOp>>,
    /// Errno of the error with which the writer has ended.
    failed: Arc<OnceLock<Errno>>,
    path: String,
}

impl RecordingSink for Chunks {
    fn take(&mut self, ops: &mut Vec<ReplayOp>) -> Result<(), RecordingError> {
        let next = self.empty.recv().ok();
        let sent = next.and_then(|next| self.full.send(std::mem::replace(ops, next)).ok());
        sent.ok_or_else(|| RecordingError {
            errno: self.failed.get().copied().unwrap_or(Errno::EIO),
            text: format!("cannot write {}", self.path),
        })
    }
}

impl fmt::Debug for Chunks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Chunks").field(&self.path).finish()
    }
}

fn failure(path: &str, error: &io::Error) -> JobFailure {
    let text = format!("cannot write {path}: {error}");
    JobFailure::new(errno(error), text).hint("make room, or name another file")
}

fn errno(error: &io::Error) -> Errno {
    Errno::of(error).unwrap_or(Errno::EIO)
}

/// Chunks between job and writer: some 60,000 ops, 2.5 MiB.
const CHUNKS: usize = 64;

/// Bytes per write to the log.
const BUFFER_BYTES: usize = 1 << 18;

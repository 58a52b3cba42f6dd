//! Log files of a run: opened before the layout, truncated when the jobs begin.
//!
//! They are written in place, unlike other output files, which are renamed when complete: logs are
//! read while they grow, an incomplete one is still useful, and an earlier log and a new one might
//! not fit on a disk together.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fathom_host::output_file::{Destination, OutputStream};
use fathom_setup::{ProblemKind, RunProblem};
use fathom_sys::files;

use super::plan::LogFile;

/// An open log file with its earlier content.
///
/// [`begin`](Self::begin) truncates it. Dropping it instead removes a file that was created for it.
#[derive(Debug)]
pub struct OpenLog {
    /// `None` once begun.
    to: Option<LogDestination>,
    append: bool,
    /// Path and metadata of a file created for it.
    made: Option<(PathBuf, Metadata)>,
}

/// Destination of a log.
#[derive(Debug)]
pub enum LogDestination {
    /// A regular file.
    File(File),
    /// A pipe or a device.
    Stream(OutputStream),
}

impl OpenLog {
    /// Opens a log to be truncated or, with `append`, continued. Waits for the reader of a pipe
    /// until `stop` returns true.
    ///
    /// # Errors
    /// The reason why it cannot be written; no file was created then.
    pub fn open(path: &Path, append: bool, stop: &dyn Fn() -> bool) -> io::Result<Self> {
        let missing = match Destination::of(path)? {
            Destination::Stream => {
                let stream = OutputStream::open(path, stop)?;
                return Ok(Self {
                    to: Some(LogDestination::Stream(stream)),
                    append,
                    made: None,
                });
            }
            Destination::Missing(target) => Some(target),
            Destination::Regular(..) | Destination::Descriptor => None,
        };
        let file = OpenOptions::new()
            .create(true)
            .append(append)
            .write(true)
            .truncate(false)
            .open(path)?;
        let made = match missing {
            Some(target) => Some((target, file.metadata()?)),
            None => None,
        };
        Ok(Self {
            to: Some(LogDestination::File(file)),
            append,
            made,
        })
    }

    /// Truncates the file, unless it is appended to.
    ///
    /// # Errors
    /// The errno of `ftruncate(2)`.
    pub fn begin(mut self) -> io::Result<LogDestination> {
        let Some(to) = self.to.take() else {
            return Err(io::ErrorKind::Other.into()); // only this takes it, and once
        };
        if let (LogDestination::File(file), false) = (&to, self.append) {
            file.set_len(0)?;
        }
        self.made = None;
        Ok(to)
    }
}

impl Drop for OpenLog {
    fn drop(&mut self) {
        let Some((path, made)) = self.made.take() else {
            return;
        };
        // Another run may have written to it meanwhile, or replaced it.
        let is_ours = fs::symlink_metadata(&path).is_ok_and(|found| {
            (found.dev(), found.ino()) == (made.dev(), made.ino()) && found.len() == 0
        });
        if is_ours {
            // Best effort: an empty file does no harm.
            let _left = fs::remove_file(path);
        }
    }
}

impl LogDestination {
    /// Writes as much as possible without waiting for a pipe's reader; returns the number of bytes.
    pub fn write_now(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.write_all(bytes).map(|()| bytes.len()),
            Self::Stream(stream) => stream.write_now(bytes),
        }
    }

    /// Writes everything; waits for a pipe's reader until `stop` returns true.
    pub fn write_all(&mut self, bytes: &[u8], stop: &dyn Fn() -> bool) -> io::Result<()> {
        match self {
            Self::File(file) => file.write_all(bytes),
            Self::Stream(stream) => Ok(stream.write_all(bytes, stop)?),
        }
    }
}

/// Opens every log file of a run.
///
/// # Errors
/// Every file that cannot be written; no file was created then.
pub(super) fn open_all(
    files: &[LogFile],
    stop: &dyn Fn() -> bool,
) -> Result<Vec<OpenLog>, Vec<RunProblem>> {
    let (mut opened, mut problems) = (Vec::new(), Vec::new());
    for file in files {
        match OpenLog::open(Path::new(&file.path), file.append, stop) {
            Ok(log) => opened.push(log),
            Err(error) => {
                let problem = not_writable("cannot write the log", &file.path, &error);
                problems.push(problem.at(&file.job, file.option));
                // The remaining files would fail in the same way.
                if files::lacks_descriptors(&error) || stop() {
                    break;
                }
            }
        }
    }
    if problems.is_empty() {
        Ok(opened)
    } else {
        Err(problems)
    }
}

/// Returns the problem of a log that cannot be opened, with a remedy.
pub fn not_writable(what: &str, path: &str, error: &io::Error) -> RunProblem {
    if files::lacks_descriptors(error) {
        let limit = fathom_sys::system::open_files_limit();
        let limit = limit.map_or_else(String::new, |limit| {
            format!(" (this process may open {limit} at once)")
        });
        let message = format!("{what} {path}: too many open files{limit}");
        let hint = "raise the hard limit of open files (`ulimit -Hn`, `LimitNOFILE=`), or have the \
                    jobs share their logs (`per_job_logs=0`)";
        return RunProblem::new(ProblemKind::TooManyLogs, message).hint(hint);
    }
    let problem = RunProblem::new(
        ProblemKind::LogNotWritable,
        format!("{what} {path}: {error}"),
    );
    match error.kind() {
        // Interrupted while waiting for a reader.
        io::ErrorKind::Other => problem,
        // Not a file that can be written, such as a directory or a socket.
        io::ErrorKind::InvalidInput => problem.hint("name another file"),
        _ => problem.hint("name an existing directory that can be written to"),
    }
}

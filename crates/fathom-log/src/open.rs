//! Log files of a run, opened before anything is laid out and begun when the jobs are.
//!
//! They are written in place, unlike other output files: they are read while they grow, one that
//! breaks off is still of use, and an earlier log and a new one might not fit on a disk together.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fathom_host::output_file::{Destination, Stream};
use fathom_setup::{ProblemKind, RunProblem};
use fathom_sys::files;

use super::plan::LogFile;

/// A log file that is open, and still holds what it held before.
///
/// If it is dropped before it is begun, a file that was made for it is removed.
#[derive(Debug)]
pub struct OpenLog {
    /// `None` once it has begun.
    to: Option<LogTo>,
    append: bool,
    /// The file that was made: its name and identity.
    made: Option<(PathBuf, Metadata)>,
}

/// The file behind a log's name.
#[derive(Debug)]
pub enum LogTo {
    /// A regular file.
    File(File),
    /// A pipe or a device.
    Stream(Stream),
}

impl OpenLog {
    /// Opens a log that is begun anew, or added to; waits for the reader of a pipe, unless `stop`
    /// says to give up.
    ///
    /// # Errors
    /// Why it cannot be written; nothing was made then.
    pub fn open(path: &Path, append: bool, stop: &dyn Fn() -> bool) -> io::Result<Self> {
        let missing = match Destination::of(path)? {
            Destination::Stream => {
                let stream = Stream::open(path, stop)?;
                return Ok(Self {
                    to: Some(LogTo::Stream(stream)),
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
            to: Some(LogTo::File(file)),
            append,
            made,
        })
    }

    /// Empties an earlier log that is not added to.
    ///
    /// # Errors
    /// The errno of `ftruncate(2)`.
    pub fn begin(mut self) -> io::Result<LogTo> {
        let Some(to) = self.to.take() else {
            return Err(io::ErrorKind::Other.into()); // only this takes it, and once
        };
        if let (LogTo::File(file), false) = (&to, self.append) {
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
        // Another run may have begun it meanwhile, or its owner have put another file there.
        let is_ours = fs::symlink_metadata(&path).is_ok_and(|found| {
            (found.dev(), found.ino()) == (made.dev(), made.ino()) && found.len() == 0
        });
        if is_ours {
            // It is empty; if it cannot be removed, no harm is done.
            let _left = fs::remove_file(path);
        }
    }
}

impl LogTo {
    /// Writes what can be written without waiting for the other end of a pipe; returns how much.
    pub fn write_now(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.write_all(bytes).map(|()| bytes.len()),
            Self::Stream(stream) => stream.write_now(bytes),
        }
    }

    /// Writes all; waits for the other end of a pipe, unless `stop` says to give up.
    pub fn write_all(&mut self, bytes: &[u8], stop: &dyn Fn() -> bool) -> io::Result<()> {
        match self {
            Self::File(file) => file.write_all(bytes),
            Self::Stream(stream) => stream.write_all(bytes, stop),
        }
    }
}

/// Opens every log file of a run.
///
/// # Errors
/// Every file that cannot be written; nothing was made then.
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
                // The others would have no other end.
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

/// The reason why a log cannot be opened, and what helps.
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
        // Interrupted while it was waited for.
        io::ErrorKind::Other => problem,
        // Of the wrong kind.
        io::ErrorKind::InvalidInput => problem.hint("name another file"),
        _ => problem.hint("name a directory that is there and may be written"),
    }
}

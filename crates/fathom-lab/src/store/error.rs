//! Errors of the history.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use rusqlite::ffi::ErrorCode;

/// Failure to read or write a history: the file, and the reason.
#[derive(Debug)]
pub struct HistoryError {
    path: PathBuf,
    problem: HistoryProblem,
}

/// Reason of a [`HistoryError`].
#[derive(Debug)]
#[non_exhaustive]
pub enum HistoryProblem {
    /// Neither `FATHOM_HISTORY`, `XDG_DATA_HOME` nor `HOME` says where it lies.
    NoPlace,
    /// There is no history.
    Missing,
    /// There is a file already where a copy is to be.
    Exists,
    /// The file or its directory cannot be created or read.
    Folder(io::Error),
    /// The path is that of a device, a directory or a pipe.
    NotAFile,
    /// The file is not a SQLite database.
    NotADatabase,
    /// The database is not a history.
    OfAnotherProgram,
    /// A later version of this program wrote it; the version of its tables.
    Newer(i64),
    /// An earlier version of this program wrote it, and it is opened for reading.
    Older(i64),
    /// The file or its directory cannot be written.
    ReadOnly,
    /// The directory is read-only, and a part of the history is in the write-ahead log.
    LogUnreadable,
    /// The file was moved, removed or replaced since it was opened.
    Moved,
    /// Another process has held a lock for 5 s.
    Locked,
    /// The disk is full.
    Full,
    /// The file is truncated or damaged.
    Damaged(String),
    /// The user's query is wrong.
    Query(String),
    /// Something that was asked for is not in it.
    NotFound(String),
    /// A stored record cannot be read.
    Record(String),
    /// Another failure of SQLite.
    Sqlite(rusqlite::Error),
}

impl HistoryError {
    pub(super) fn new(path: &Path, problem: HistoryProblem) -> Self {
        let path = path.to_owned();
        Self { path, problem }
    }

    /// Returns the conversion of SQLite's errors for a file.
    pub(super) fn at(path: &Path) -> impl Fn(rusqlite::Error) -> Self + '_ {
        move |error| Self::new(path, problem_of(path, error))
    }

    /// Returns the reason.
    #[must_use]
    pub const fn problem(&self) -> &HistoryProblem {
        &self.problem
    }

    /// Returns a remedy, in the imperative, if one is known.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        Some(match &self.problem {
            HistoryProblem::Query(why) if why.starts_with("no such ") => {
                "`fathom history sql 'SELECT sql FROM sqlite_schema'` lists tables and columns"
            }
            HistoryProblem::NoPlace | HistoryProblem::NotAFile => {
                "set FATHOM_HISTORY to the path of a file"
            }
            HistoryProblem::Missing => {
                "record a run with `fathom run --history`, or set FATHOM_HISTORY"
            }
            HistoryProblem::NotADatabase | HistoryProblem::OfAnotherProgram => {
                "name another file in FATHOM_HISTORY; this one was not changed"
            }
            HistoryProblem::Newer(_) => "use that version of fathom; the file was not changed",
            HistoryProblem::Older(_) => "open it for writing once: it is copied, then migrated",
            HistoryProblem::ReadOnly => "make file and directory writable, or set FATHOM_HISTORY",
            HistoryProblem::LogUnreadable => {
                "copy the files history.db* elsewhere, and set FATHOM_HISTORY to the copy"
            }
            HistoryProblem::Locked => "wait for the other process, and try again",
            HistoryProblem::Full => "free some space on its disk",
            HistoryProblem::Damaged(_) => {
                "restore a copy of `fathom history backup`, or move the file away"
            }
            _ => return None,
        })
    }
}

/// Returns whether another process has the lock.
pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}

fn problem_of(path: &Path, error: rusqlite::Error) -> HistoryProblem {
    let text = || match &error {
        rusqlite::Error::SqliteFailure(_, Some(text)) => text.clone(),
        other => other.to_string(),
    };
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => HistoryProblem::Locked,
        Some(ErrorCode::DiskFull) => HistoryProblem::Full,
        // SQLite calls it that for its log's index, too, which it extends before anything else.
        Some(ErrorCode::SystemIoFailure) if is_full(path) => HistoryProblem::Full,
        // The file was read before, so it is one beside it that cannot be created.
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen) => HistoryProblem::ReadOnly,
        Some(ErrorCode::NotADatabase) => HistoryProblem::NotADatabase,
        Some(ErrorCode::DatabaseCorrupt) => HistoryProblem::Damaged(text()),
        _ => HistoryProblem::Sqlite(error),
    }
}

/// Returns whether the file's disk has no room for the index of the write-ahead log.
fn is_full(file: &Path) -> bool {
    const INDEX_BYTES: u64 = 32 * 1024;
    fathom_sys::files::space(file).is_ok_and(|space| space.available_bytes < INDEX_BYTES)
}

impl fmt::Display for HistoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.problem {
            HistoryProblem::NoPlace => {
                f.write_str("history: no place for it: neither XDG_DATA_HOME nor HOME is set")
            }
            HistoryProblem::NotFound(what) => write!(f, "history: {what}"),
            HistoryProblem::Query(why) => write!(f, "history: query: {why}"),
            problem => write!(f, "history: {path}: {problem}"),
        }
    }
}

impl fmt::Display for HistoryProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPlace => f.write_str("no place"),
            Self::Missing => f.write_str("there is no history"),
            Self::Exists => f.write_str("there is such a file already"),
            Self::Folder(error) => error.fmt(f),
            Self::NotAFile => f.write_str("not a regular file"),
            Self::NotADatabase => f.write_str("not a SQLite database, or a truncated one"),
            Self::OfAnotherProgram => f.write_str("a database of another program"),
            Self::Newer(version) => write!(
                f,
                "version {version} of the tables, written by a later version of fathom"
            ),
            Self::Older(version) => write!(
                f,
                "version {version} of the tables, written by an earlier version of fathom"
            ),
            Self::ReadOnly => f.write_str("the file or its directory is read-only"),
            Self::LogUnreadable => f.write_str(
                "its directory is read-only, and the last runs are in its write-ahead log",
            ),
            Self::Moved => f.write_str("moved, removed or replaced since it was opened"),
            Self::Locked => f.write_str("still locked by another process after 5 s"),
            Self::Full => f.write_str("no space left on device"),
            Self::Damaged(why) => write!(f, "truncated or damaged: {why}"),
            Self::Query(why) | Self::NotFound(why) | Self::Record(why) => f.write_str(why),
            Self::Sqlite(error) => error.fmt(f),
        }
    }
}

// The cause is part of the message.
impl std::error::Error for HistoryError {}

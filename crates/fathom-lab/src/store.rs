//! History of runs: a SQLite database on this machine.
//!
//! | table | a row is |
//! |---|---|
//! | `plan` | the text of a job or a lab file, known by its SHA-256 |
//! | `machine` | the hardware and the file systems under a run, known by their SHA-256 |
//! | `lab`, `cell` | an experiment, and one combination of its axes |
//! | `run` | one execution: planned → running → done, failed or cut |
//! | `measure`, `record` | its numbers, and everything from which they can be computed again |
//! | `tag`, `verdict` | the user's labels of a run, the outcome of a lab |
//! | `last_number` | the largest number of a run, a plan or a machine ever; none is given twice |
//!
//! Plan and machine say which runs are comparable. The *subject* (kernel, program, firmware, tags)
//! is what may change between them. All SQL of the workspace is in this module.
//!
//! A commit survives the end of the process by any signal. After a loss of power the last few may
//! be missing, as whole transactions: a lab runs them again.

mod error;
mod export_runs;
mod kept_labs;
mod labs;
mod place;
mod query;
mod runs;
mod schema;
mod series;
mod sql;
mod upkeep;

use std::fs::{self, File};
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_sys::files::FileId;
use rusqlite::{Connection, OpenFlags};

use crate::finished::FinishedRun;
pub use error::{HistoryError, HistoryProblem};
pub use export_runs::{StoredMetric, StoredRun, StoredRuns};
pub use kept_labs::LabEntry;
pub use labs::{LabId, LabRow, LabRun, LabStart, PlannedRun, RunId, RunState, VerdictRow};
pub use place::default_path;
pub use query::{RunRow, RunSelection};
pub(crate) use runs::sha256;
pub use series::{RunSeries, SeriesKey, SeriesPoint, SeriesSelection};
pub use sql::SqlAnswer;
pub use upkeep::{Prune, Pruned};

/// An open history.
///
/// [`open`](Self::open) creates the file if there is none and migrates an older one, after a copy.
/// Several processes may use it at once: each write waits up to [`BUSY_TIMEOUT`] for the others.
#[derive(Debug)]
pub struct History {
    connection: Connection,
    path: PathBuf,
    /// The file that was opened for writing.
    opened: Option<FileId>,
    notes: Vec<String>,
}

impl History {
    /// Opens a history for reading and writing; creates it, with its directory, if there is none.
    ///
    /// # Errors
    /// The file is not a history, was written by a later version of this program, is damaged,
    /// read-only or in use. It is unchanged then.
    pub fn open(path: &Path) -> Result<Self, HistoryError> {
        let problem = |problem| HistoryError::new(path, problem);
        if let Some(folder) = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
        {
            fs::create_dir_all(folder)
                .map_err(|error| HistoryError::new(folder, HistoryProblem::Folder(error)))?;
        }
        check_header(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(place::plain(path)?, flags)
            .map_err(HistoryError::at(path))?;
        let mut history = Self {
            connection,
            path: path.to_owned(),
            opened: place::identity(path),
            notes: Vec::new(),
        };
        history.prepare()?;
        if history
            .connection
            .is_readonly("main")
            .map_err(HistoryError::at(path))?
        {
            return Err(problem(HistoryProblem::ReadOnly));
        }
        // Before anything is written: a later version's file stays as it is.
        schema::check(&history.connection, path)?;
        history.set_journal()?;
        schema::migrate(&mut history.connection, path, &schema::MIGRATIONS)?;
        Ok(history)
    }

    /// Opens an existing history for reading.
    ///
    /// # Errors
    /// As [`open`](Self::open), or there is no such file, or the directory is read-only and the
    /// last runs are still in the write-ahead log.
    pub fn open_read_only(path: &Path) -> Result<Self, HistoryError> {
        if !path.exists() {
            return Err(HistoryError::new(path, HistoryProblem::Missing));
        }
        check_header(path)?;
        let file = place::without_links(path)?;
        let is_on_read_only = place::is_on_read_only(&file);
        // A log without a frame adds nothing, but SQLite would retry for seconds to make an index
        // for it, which it cannot do there.
        if is_on_read_only && !place::has_logged(&file) {
            return Self::open_immutable(path, &file);
        }
        match Self::open_with(path, &place::plain(path)?, OpenFlags::empty()) {
            // Readers, too, have a file beside the database, through which they tell of themselves.
            // It cannot be created there; one that is there serves, if its log is sound.
            Err(error)
                if is_on_read_only || matches!(error.problem(), HistoryProblem::ReadOnly) =>
            {
                Self::open_immutable(path, &file)
            }
            opened => opened,
        }
    }

    /// Opens a history in a read-only directory, as a file that does not change; `file` is its path
    /// without links.
    fn open_immutable(path: &Path, file: &Path) -> Result<Self, HistoryError> {
        if place::has_logged(file) {
            return Err(HistoryError::new(path, HistoryProblem::LogUnreadable));
        }
        let uri = place::immutable_uri(file);
        let mut history = Self::open_with(path, Path::new(&uri), OpenFlags::SQLITE_OPEN_URI)?;
        history.notes.push(format!(
            "the history {} is read-only: it is read as it is",
            path.display()
        ));
        Ok(history)
    }

    /// Opens a database for reading under a name that SQLite knows it by.
    fn open_with(path: &Path, name: &Path, flags: OpenFlags) -> Result<Self, HistoryError> {
        let flags = flags | OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection =
            Connection::open_with_flags(name, flags).map_err(HistoryError::at(path))?;
        let history = Self {
            connection,
            path: path.to_owned(),
            opened: None,
            notes: Vec::new(),
        };
        history.prepare()?;
        match schema::check(&history.connection, path)? {
            schema::READABLE..=schema::MIGRATED => Ok(history),
            0 => Err(HistoryError::new(path, HistoryProblem::Missing)),
            older => Err(HistoryError::new(path, HistoryProblem::Older(older))),
        }
    }

    /// Returns the file's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Checks that the path still leads to the file that was opened for writing: what is written
    /// to another one is lost to readers of the path.
    ///
    /// # Errors
    /// The file was moved, removed or replaced.
    pub fn check_place(&self) -> Result<(), HistoryError> {
        match self.opened.is_some() && place::identity(&self.path) != self.opened {
            true => Err(HistoryError::new(&self.path, HistoryProblem::Moved)),
            false => Ok(()),
        }
    }

    /// Returns what the user should know about this file, a sentence each.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    fn prepare(&self) -> Result<(), HistoryError> {
        let at = HistoryError::at(&self.path);
        self.connection.busy_timeout(BUSY_TIMEOUT).map_err(at)?;
        let settings = "PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF;";
        let at = HistoryError::at(&self.path);
        self.connection.execute_batch(settings).map_err(at)
    }

    /// Selects the write-ahead log, with which readers and a writer do not wait for each other.
    /// It needs memory that all processes share: on a network file system they may not.
    fn set_journal(&mut self) -> Result<(), HistoryError> {
        let mode = if place::is_on_network(&self.path) {
            self.notes.push(format!(
                "the history {} is on a network file system: use it from one host at a time",
                self.path.display()
            ));
            "DELETE"
        } else {
            "WAL"
        };
        let set = format!("PRAGMA journal_mode = {mode}; PRAGMA synchronous = NORMAL;");
        // The change of the mode does not wait for others by itself.
        for _ in 0..JOURNAL_TRIES {
            match self.connection.execute_batch(&set) {
                Err(error) if error::is_busy(&error) => std::thread::park_timeout(JOURNAL_PAUSE),
                done => return done.map_err(HistoryError::at(&self.path)),
            }
        }
        Err(HistoryError::new(&self.path, HistoryProblem::Locked))
    }

    /// Wraps a failure of SQLite.
    fn failed(&self) -> impl Fn(rusqlite::Error) -> HistoryError + '_ {
        HistoryError::at(&self.path)
    }
}

/// Reads the file's header without SQLite, which may change a file that it opens: it plays back a
/// journal.
fn check_header(path: &Path) -> Result<(), HistoryError> {
    // Not asked of the open file: opening a FIFO would wait for its writer. Beside a device SQLite
    // would leave a journal.
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(HistoryError::new(path, HistoryProblem::NotAFile));
    }
    let mut header = Vec::new();
    match File::open(path) {
        Ok(file) => {
            let read = file.take(HEADER_BYTES).read_to_end(&mut header);
            read.map_err(|error| HistoryError::new(path, HistoryProblem::Folder(error)))?;
        }
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(HistoryError::new(path, HistoryProblem::Folder(error))),
    }
    if header.is_empty() {
        return Ok(());
    }
    if header.len() < 100 || !header.starts_with(b"SQLite format 3\0") {
        return Err(HistoryError::new(path, HistoryProblem::NotADatabase));
    }
    let number = |at: usize| {
        i64::from(i32::from_be_bytes([
            header[at],
            header[at + 1],
            header[at + 2],
            header[at + 3],
        ]))
    };
    // "Database header format" in SQLite's documentation: offsets 60 and 68.
    schema::check_numbers(path, number(68), number(60)).map(drop)
}

/// Time to wait for another process's transaction.
pub const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Attempts to select the journal; with the pauses, as long as [`BUSY_TIMEOUT`].
const JOURNAL_TRIES: u32 = 500;

const JOURNAL_PAUSE: Duration = Duration::from_millis(10);

/// Size of the header of a SQLite file.
const HEADER_BYTES: u64 = 100;

#[cfg(test)]
mod migration_tests;
#[cfg(test)]
mod reading_tests;
#[cfg(test)]
mod tests;

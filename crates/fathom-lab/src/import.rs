//! Runs from files: records, exported runs, and fio's reports as JSON or JSON+.
//!
//! fio writes notes before the first brace, several documents into one file, and words that are no
//! JSON (`-nan`). All of these are read; what a file leaves out is said with each run.

pub(crate) mod documents;
pub(crate) mod exported;
mod fio;
mod fio_2;
mod interim;
mod page_run;
mod reported;
mod waves;

use std::fmt;

use fathom_record::{Record, RecordError};
use serde_json::Value;

use crate::finished::FinishedRun;
use interim::Traces;

pub use page_run::{PageRun, ReportedPercentiles, page_run};

/// A run that was read from a file or a history.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedRun {
    /// Identity in the history that exported it.
    pub uuid: Option<String>,
    /// Wall clock when it began; `None` if it is not known.
    pub begun_ms: Option<u64>,
    /// Lab and repeat of a run in this machine's history.
    pub repeat: Option<(i64, u32)>,
    /// The run.
    pub run: FinishedRun,
    /// Omissions of the file, a sentence each.
    pub notes: Vec<String>,
}

/// Reason why a text has no runs.
#[derive(Debug)]
#[non_exhaustive]
pub enum ImportError {
    /// No `{` begins a line.
    NoDocument,
    /// A document is not JSON.
    Json {
        /// Line on which the document begins, from 1.
        line: usize,
        /// The parser's error.
        source: serde_json::Error,
    },
    /// A document is JSON, but none that is known.
    Unknown {
        /// Line on which the document begins, from 1.
        line: usize,
    },
    /// An exported run of a layout that this program does not know; its version.
    Version(u64),
    /// A record cannot be read.
    Record(RecordError),
    /// One run is wanted, and there are this many.
    Several(usize),
    /// The run left no record, or its report has no job.
    Empty,
}

/// Reads all runs of a file's text. Of the interim reports of one run only the last is taken.
///
/// # Errors
/// The text has no document, or one that is none of the known.
pub fn import(text: &str) -> Result<Vec<ImportedRun>, ImportError> {
    let mut runs: Vec<ImportedRun> = Vec::new();
    for_each_run(text, &mut |read| {
        let run = match read {
            ReadRun::Record(record) => of_record(&record),
            ReadRun::Exported(run) => *run,
            ReadRun::Fio { report, is_newer } => {
                let mut run = fio::imported(&report);
                if is_newer {
                    runs.pop();
                    run.notes.push(INTERIM.into());
                }
                run
            }
        };
        runs.push(run);
    })?;
    match runs.is_empty() {
        true => Err(ImportError::NoDocument),
        false => Ok(runs),
    }
}

/// Run of a document.
enum ReadRun {
    Record(Box<Record>),
    Exported(Box<ImportedRun>),
    Fio {
        report: Value,
        /// A later report of the run before it.
        is_newer: bool,
    },
}

/// Reads the documents of a text, one after the other.
fn for_each_run(text: &str, take: &mut dyn FnMut(ReadRun)) -> Result<(), ImportError> {
    let mut last_fio: Option<Traces> = None;
    for document in documents::documents(text) {
        let line = document.line;
        // Records first: they are large, and need no `Value`.
        let record = match Record::if_known(&document.json) {
            Some(record) => Some(record),
            None if Record::is_in(&document.json) => {
                Some(Record::from_json(&document.json).map_err(ImportError::Record)?)
            }
            None => None,
        };
        if let Some(record) = record {
            last_fio = None;
            take(ReadRun::Record(Box::new(record)));
            continue;
        }
        let parsed = serde_json::from_str::<Value>(&document.json);
        let mut report = parsed.map_err(|source| ImportError::Json { line, source })?;
        if fio::is_report(&report) {
            fio_2::convert(&mut report);
            let traces = Traces::of(&report, last_fio.as_ref());
            let is_newer = traces.is_later();
            last_fio = Some(traces);
            take(ReadRun::Fio { report, is_newer });
            continue;
        }
        last_fio = None;
        if let Some(version) = exported::unknown_version(&report) {
            return Err(ImportError::Version(version));
        }
        let run = exported::from_value(&report).ok_or(ImportError::Unknown { line })?;
        take(ReadRun::Exported(Box::new(run)));
    }
    Ok(())
}

/// Note on the reports that fio writes while a run goes on.
const INTERIM: &str = "interim reports: only the last one is taken";

/// Takes a run from its record, whose program is not known.
fn of_record(record: &Record) -> ImportedRun {
    let starts = record.jobs.iter().map(|job| job.start_ms);
    let begun_ms = starts.filter(|&start| start > 0).min();
    ImportedRun {
        uuid: None,
        begun_ms: begun_ms.or(Some(record.timestamp_ms)),
        repeat: None,
        run: FinishedRun::of_record(record, "fathom", None),
        notes: Vec::new(),
    }
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDocument => f.write_str("no JSON document"),
            Self::Json { line, source } if source.is_eof() => write!(
                f,
                "line {line}: not valid JSON: the text ends within the document that begins there"
            ),
            Self::Json { line, source } => {
                // The parser counts the lines of the document.
                let line = line + source.line().saturating_sub(1);
                let why = source.to_string();
                let why = why
                    .rsplit_once(" at line ")
                    .map_or(why.as_str(), |(why, _)| why);
                write!(f, "line {line}: not valid JSON: {why}")
            }
            Self::Unknown { line } => write!(
                f,
                "the document at line {line} is neither a record, nor an exported run, nor a \
                 report of fio"
            ),
            Self::Version(version) => write!(
                f,
                "exported run of version {version}: this program reads version {}",
                exported::VERSION
            ),
            Self::Record(error) => error.fmt(f),
            Self::Several(runs) => write!(f, "{runs} runs, where one is wanted"),
            Self::Empty => f.write_str("the run left no record, or its report has no job"),
        }
    }
}

// The cause is part of the message.
impl std::error::Error for ImportError {}

#[cfg(test)]
mod tests;

//! Runs from files: records, exported runs, and fio's reports as JSON or JSON+.
//!
//! fio writes notes before the first brace, several documents into one file, and words that are no
//! JSON (`-nan`). All of these are read; what a file leaves out is said with each run.

pub(crate) mod documents;
pub(crate) mod exported;
mod fio;

use std::fmt;

use fathom_record::{Record, RecordError};
use serde_json::Value;

use crate::finished::FinishedRun;

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
    /// A record cannot be read.
    Record(RecordError),
}

/// Reads all runs of a file's text. Of the interim reports of one run only the last is taken.
///
/// # Errors
/// The text has no document, or one that is none of the known.
pub fn import(text: &str) -> Result<Vec<ImportedRun>, ImportError> {
    let mut runs: Vec<ImportedRun> = Vec::new();
    let mut last_fio: Option<Value> = None;
    for document in documents::documents(text) {
        let line = document.line;
        // Records first: they are large, and need no `Value`.
        if let Some(record) = Record::if_known(&document.json) {
            last_fio = None;
            runs.push(of_record(&record));
            continue;
        }
        if Record::is_in(&document.json) {
            let record = Record::from_json(&document.json).map_err(ImportError::Record)?;
            last_fio = None;
            runs.push(of_record(&record));
            continue;
        }
        let parsed = serde_json::from_str::<Value>(&document.json);
        let value = parsed.map_err(|source| ImportError::Json { line, source })?;
        if fio::is_report(&value) {
            let mut run = fio::imported(&value);
            if last_fio
                .as_ref()
                .is_some_and(|last| fio::is_same_run(last, &value))
            {
                runs.pop();
                run.notes
                    .push("interim reports: only the last one is taken".into());
            }
            last_fio = Some(value);
            runs.push(run);
            continue;
        }
        last_fio = None;
        let exported = exported::from_value(&value);
        runs.push(exported.ok_or(ImportError::Unknown { line })?);
    }
    match runs.is_empty() {
        true => Err(ImportError::NoDocument),
        false => Ok(runs),
    }
}

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
            Self::Json { line, source } => {
                write!(f, "the document at line {line} is not JSON: {source}")
            }
            Self::Unknown { line } => write!(
                f,
                "the document at line {line} is neither a record, nor an exported run, nor a \
                 report of fio"
            ),
            Self::Record(error) => error.fmt(f),
        }
    }
}

// The cause is part of the message.
impl std::error::Error for ImportError {}

#[cfg(test)]
mod tests;

//! Subjects of `fathom report`: what the words after the command name.
//!
//! ```text
//! a file of that name ─► the run in it
//! a number            ─► the run of the history
//! ```

use std::path::Path;

use anyhow::{Context, Result, bail};
use fathom_lab::{ImportError, PageRun, page_run};
use fathom_record::Record;

use crate::failure::with_hint;
use crate::saved_runs;

/// Subject of a page.
pub(crate) enum Subject {
    /// One run.
    Run(Box<PageRun>),
}

/// Finds the subject that the user names.
pub(crate) fn resolve(what: &str) -> Result<Subject> {
    let path = Path::new(what);
    let is_number = !what.is_empty() && what.bytes().all(|byte| byte.is_ascii_digit());
    if is_number && !path.exists() {
        return of_history(what);
    }
    if path.is_dir() {
        bail!("{what}: a directory\nhint: name one of its files");
    }
    let run = page_run(&saved_runs::text(path)?);
    let run = run.map_err(|error| with_hint(format!("{what}: {error}"), hint(&error)))?;
    Ok(Subject::Run(Box::new(run)))
}

/// Returns the title of a page about something: the name of its file, or the words.
pub(crate) fn title(what: &str) -> String {
    let name = Path::new(what).file_name();
    name.map_or_else(|| what.to_owned(), |name| name.to_string_lossy().into())
}

const fn hint(error: &ImportError) -> Option<&'static str> {
    match error {
        ImportError::Several(_) => Some("give each run a file of its own"),
        ImportError::NoDocument | ImportError::Unknown { .. } => {
            Some("`fathom run --record FILE` makes a record, `fio --output-format=json+` a report")
        }
        _ => None,
    }
}

#[cfg(not(feature = "history"))]
fn of_history(name: &str) -> Result<Subject> {
    let why = format!("{name}: this program was built without the history");
    let hint = "build it with the feature `history`, or name a file";
    Err(with_hint(why, Some(hint)))
}

#[cfg(feature = "history")]
fn of_history(name: &str) -> Result<Subject> {
    use crate::history_keep::{reader, with_its_hint};
    use fathom_lab::RunId;

    let run: i64 = name.parse().with_context(|| format!("run {name}"))?;
    let history = reader()?;
    let row = history.show(RunId(run)).map_err(with_its_hint)?;
    let text = history.record_of(row.id).map_err(with_its_hint)?;
    let text = text.with_context(|| format!("run {name} has no record"))?;
    let record = Record::from_json(&text).with_context(|| format!("run {name}"))?;
    Ok(Subject::Run(Box::new(PageRun {
        record,
        percentiles: Vec::new(),
    })))
}

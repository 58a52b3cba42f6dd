//! Failures that leave a command without a report.

use std::fmt::Display;

use anyhow::{Result, anyhow};
use fathom_setup::RunError;

/// Failure that leaves a run without a report.
pub(crate) enum NoReport {
    /// The plan cannot be run; no job has started.
    Refused(RunError),
    /// The report, or something else of the run, could not be written.
    NotReported(anyhow::Error),
}

/// Returns the failures of several writes as one. Each result is there already, so that one failure
/// does not keep the others from being written.
pub(crate) fn joined<const N: usize>(written: [Result<()>; N], program: &str) -> Result<()> {
    let failed = written.into_iter().filter_map(Result::err);
    let failed: Vec<String> = failed.map(|error| format!("{error:#}")).collect();
    match failed.is_empty() {
        true => Ok(()),
        false => Err(anyhow!(failed.join(&format!("\n{program}: ")))),
    }
}

/// Builds an error with the hint on a line of its own.
pub(crate) fn with_hint(message: impl Display, hint: Option<impl Display>) -> anyhow::Error {
    match hint {
        Some(hint) => anyhow::anyhow!("{message}\nhint: {hint}"),
        None => anyhow::anyhow!("{message}"),
    }
}

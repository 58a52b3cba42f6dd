//! Failures that leave a command without a report.

use std::fmt::Display;

use fathom_setup::RunError;

/// Failure that leaves a run without a report.
pub(crate) enum NoReport {
    /// The plan cannot be run; no job has started.
    Refused(RunError),
    /// The report, or something else of the run, could not be written.
    NotReported(anyhow::Error),
}

/// Builds an error with the hint on a line of its own.
pub(crate) fn with_hint(message: impl Display, hint: Option<impl Display>) -> anyhow::Error {
    match hint {
        Some(hint) => anyhow::anyhow!("{message}\nhint: {hint}"),
        None => anyhow::anyhow!("{message}"),
    }
}

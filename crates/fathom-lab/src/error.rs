//! Errors of experiments.

use std::path::PathBuf;
use std::{fmt, io};

use fathom_run::SchedulerError;

/// Reason why an experiment has no table.
#[derive(Debug)]
#[non_exhaustive]
pub enum LabError {
    /// The target cannot be opened, or is neither a file nor a block device.
    TargetNotReadable {
        /// The target as given.
        target: PathBuf,
        /// Error of the attempt to open it.
        source: io::Error,
    },
    /// The directory for what the runs write cannot be created.
    FolderNotCreated {
        /// Parent of the directory.
        parent: PathBuf,
        /// Error of the attempt to create it.
        source: io::Error,
    },
    /// The experiment cannot run at all, or none of its runs succeeded.
    Lab(String),
    /// The I/O scheduler of the target cannot be set.
    Scheduler(SchedulerError),
    /// A run that the table cannot do without failed.
    Run {
        /// Name of the run.
        name: &'static str,
        /// Failure of its program.
        source: CommandError,
    },
}

/// Failure of a program that an experiment runs.
#[derive(Debug)]
#[non_exhaustive]
pub enum CommandError {
    /// It could not be started or waited for.
    System(io::Error),
    /// The user interrupted it.
    Interrupted,
    /// It exited with an error; the first line of its standard error.
    Failed(String),
    /// Its output is not JSON.
    NotJson(serde_json::Error),
}

impl LabError {
    /// Returns a remedy, in the imperative, if one is known.
    #[must_use]
    pub const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Scheduler(error) => Some(error.hint()),
            _ => None,
        }
    }
}

impl From<SchedulerError> for LabError {
    fn from(error: SchedulerError) -> Self {
        Self::Scheduler(error)
    }
}

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TargetNotReadable { target, source } => {
                write!(f, "{}: {source}", target.display())
            }
            Self::FolderNotCreated { parent, source } => {
                let parent = parent.display();
                write!(
                    f,
                    "cannot create a directory for the runs: {parent}: {source}"
                )
            }
            Self::Lab(why) => f.write_str(why),
            Self::Scheduler(error) => error.fmt(f),
            Self::Run { name, source } => write!(f, "{name}: {source}"),
        }
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(error) => error.fmt(f),
            Self::Interrupted => f.write_str("interrupted"),
            Self::Failed(line) => f.write_str(line),
            Self::NotJson(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LabError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::TargetNotReadable { source, .. } | Self::FolderNotCreated { source, .. } => {
                Some(source)
            }
            Self::Lab(_) => None,
            Self::Scheduler(error) => error.source(),
            Self::Run { source: error, .. } => Some(error),
        }
    }
}

impl std::error::Error for CommandError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::System(error) => Some(error),
            Self::NotJson(error) => Some(error),
            Self::Interrupted | Self::Failed(_) => None,
        }
    }
}

//! Errors of files that the program writes for its user.

use std::{fmt, io};

use crate::safety::Refusal;

/// Reason why an output file cannot be written.
#[derive(Debug)]
#[non_exhaustive]
pub enum HostError {
    /// Writing there would do harm.
    Refused(Refusal),
    /// Its name refers to an object that takes no output: a directory, a socket, a block device,
    /// a database.
    Unsuitable(&'static str),
    /// Its name is a cycle of symbolic links.
    LinkCycle,
    /// The run was stopped while no process read the pipe.
    NoReader,
    /// A system call failed.
    System(io::Error),
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Unsuitable(what) => f.write_str(what),
            Self::LinkCycle => f.write_str("too many levels of symbolic links"),
            Self::NoReader => f.write_str("interrupted: no process reads it"),
            Self::System(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for HostError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // Transparent: the text of the error is its own.
            Self::System(error) => error.source(),
            Self::Refused(_) | Self::Unsuitable(_) | Self::LinkCycle | Self::NoReader => None,
        }
    }
}

impl From<io::Error> for HostError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// For [`io::Write`], which has no errors but these.
impl From<HostError> for io::Error {
    fn from(error: HostError) -> Self {
        match error {
            HostError::System(error) => error,
            HostError::Unsuitable(_) => Self::new(io::ErrorKind::InvalidInput, error),
            // Never `Interrupted`, on which `write_all` would retry.
            HostError::Refused(_) | HostError::LinkCycle | HostError::NoReader => {
                Self::other(error)
            }
        }
    }
}

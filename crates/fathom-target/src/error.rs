//! Errors of a target's devices.

use std::fmt;
use std::io;
use std::path::PathBuf;

use fathom_core::EngineError;

/// Error of opening or claiming a device.
#[derive(Debug)]
#[non_exhaustive]
pub enum DeviceError {
    /// The engine could not open it.
    Engine(EngineError),
    /// A system call on its file failed.
    File {
        /// Operation: `open`, `create`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Reason.
        source: io::Error,
    },
    /// Another process serves or uses it.
    Claimed {
        /// The file.
        path: PathBuf,
    },
}

impl DeviceError {
    /// Returns the remedy, in the imperative; may be empty.
    #[must_use]
    pub fn hint(&self) -> &str {
        match self {
            Self::Engine(error) => &error.hint,
            Self::File { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                "change its permissions, or run as its owner"
            }
            Self::File { .. } => "",
            Self::Claimed { .. } => "choose a file or device that is not in use",
        }
    }
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Engine(error) => write!(f, "{error}"),
            Self::File { what, path, source } => {
                write!(f, "cannot {what} {}: {source}", path.display())
            }
            Self::Claimed { path } => {
                write!(f, "{}: in use by another process", path.display())
            }
        }
    }
}

impl std::error::Error for DeviceError {}

//! Errors of converting a log.

use std::error::Error;
use std::path::PathBuf;
use std::{fmt, io};

/// Reason why a log was not converted. `Display` begins with the path in question.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConvertError {
    /// Source and destination are the same file.
    SameFile(PathBuf),
    /// The source is a directory, a pipe or a device.
    NotAFile(PathBuf),
    /// The destination's name does not say in which format to write.
    NoSuchFormat(PathBuf),
    /// The destination's format has no column for what the source holds.
    MissingColumn {
        /// The destination.
        path: PathBuf,
        /// Its format.
        format: &'static str,
        /// The column.
        column: &'static str,
    },
    /// The source cannot be read, or is not a log.
    Read {
        /// The source.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The destination cannot be written.
    Write {
        /// The destination.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The user interrupted it; the destination is unchanged.
    Interrupted(PathBuf),
}

impl fmt::Display for ConvertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SameFile(path) => {
                write!(f, "{}: it would be replaced by itself", path.display())
            }
            Self::NotAFile(path) => write!(f, "{}: is not a regular file", path.display()),
            Self::NoSuchFormat(path) => write!(
                f,
                "{}: the extension does not name a format: use .log, .fz, .csv or .parquet",
                path.display()
            ),
            Self::MissingColumn {
                path,
                format,
                column,
            } => {
                let path = path.display();
                write!(f, "{path}: a {format} log has no column for {column}")
            }
            Self::Read { path, source } | Self::Write { path, source } => {
                write!(f, "{}: {source}", path.display())
            }
            Self::Interrupted(path) => write!(f, "{}: interrupted", path.display()),
        }
    }
}

impl Error for ConvertError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Read { source, .. } | Self::Write { source, .. } => Some(source),
            Self::SameFile(_)
            | Self::NotAFile(_)
            | Self::NoSuchFormat(_)
            | Self::MissingColumn { .. }
            | Self::Interrupted(_) => None,
        }
    }
}

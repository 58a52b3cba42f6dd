//! Errors of a measurement of the maximum.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use fathom_core::{EngineError, EngineStep};
use fathom_host::probe::permission_hint;
use fathom_host::safety::Refusal;

use crate::limits::is_polled_option;

/// Reason why nothing was measured, or not to the end.
///
/// `Display` is the whole message, its cause included; [`hint`](Self::hint) is what helps.
#[derive(Debug)]
#[non_exhaustive]
pub enum PeakError {
    /// The configuration asks for what cannot be had.
    Config {
        /// The option and what is wrong with it.
        message: String,
        /// The remedy; empty if none is known.
        hint: String,
    },
    /// A target must not be touched.
    Refused(Refusal),
    /// A target cannot be examined.
    Missing {
        /// The path as given.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// A target cannot be opened.
    Open {
        /// The path as given.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// A target is not of a kind that can be measured.
    Unsuitable {
        /// The path as given.
        path: PathBuf,
        /// The objection: `is a directory`.
        why: String,
        /// The remedy.
        hint: &'static str,
    },
    /// An engine did not start, or failed as a whole.
    Engine {
        /// The engine's name in job files.
        engine: &'static str,
        /// The remedy; empty if none is known.
        hint: String,
        /// The error.
        source: EngineError,
    },
    /// An op failed.
    Op {
        /// `read` or `write`.
        verb: &'static str,
        /// The target, or `no-op`.
        target: String,
        /// The remedy; empty if none is known.
        hint: &'static str,
        /// The error.
        source: io::Error,
    },
    /// An op moved fewer bytes than a block has.
    Short {
        /// `read` or `write`.
        verb: &'static str,
        /// The target.
        target: String,
        /// Bytes moved.
        moved_bytes: u32,
        /// Bytes of a block.
        block_bytes: u32,
    },
    /// A thread could not be started.
    Thread {
        /// The error.
        source: io::Error,
    },
    /// A measuring thread panicked.
    Panicked,
}

impl PeakError {
    /// Returns the remedy, in the imperative, if one is known.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let hint: &str = match self {
            Self::Config { hint, .. } | Self::Engine { hint, .. } => hint,
            Self::Unsuitable { hint, .. } | Self::Op { hint, .. } => hint,
            // Jobs can be told to do it anyway; a measurement of a maximum cannot.
            Self::Refused(Refusal::InUse { .. }) => {
                "choose a device or file that is not in use, or leave out --write"
            }
            Self::Refused(refusal) => refusal.hint(),
            Self::Missing { .. } => "name an existing file, or a block device",
            Self::Short { .. } => "leave the file alone while it is measured",
            Self::Open { path, source } if source.kind() == io::ErrorKind::PermissionDenied => {
                permission_hint(path)
            }
            Self::Open { .. } | Self::Thread { .. } | Self::Panicked => "",
        };
        (!hint.is_empty()).then(|| hint.to_owned())
    }
}

impl fmt::Display for PeakError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config { message, .. } => f.write_str(message),
            Self::Refused(refusal) => write!(f, "target: {refusal}"),
            Self::Missing { path, source } => write!(f, "target: {}: {source}", path.display()),
            Self::Open { path, source } => write!(f, "open: {}: {source}", path.display()),
            Self::Unsuitable { path, why, .. } => write!(f, "target: {}: {why}", path.display()),
            Self::Engine { source, .. } if is_polled_option(source.step) => {
                // The engine names the option of job files.
                let step = EngineStep::Option("--polled");
                let own = EngineError {
                    step,
                    ..source.clone()
                };
                own.fmt(f)
            }
            Self::Engine { engine, source, .. } => {
                write!(f, "cannot start engine `{engine}`: {source}")
            }
            Self::Op {
                verb,
                target,
                source,
                ..
            } => write!(f, "{verb}: {target}: {source}"),
            Self::Short {
                verb,
                target,
                moved_bytes,
                block_bytes,
            } => write!(
                f,
                "{verb}: {target}: {moved_bytes} of {block_bytes} B: the end of the file came \
                 early"
            ),
            Self::Thread { source } => write!(f, "start thread: {source}"),
            Self::Panicked => f.write_str("internal error in a measuring thread"),
        }
    }
}

impl Error for PeakError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Refused(source) => Some(source),
            Self::Missing { source, .. }
            | Self::Open { source, .. }
            | Self::Op { source, .. }
            | Self::Thread { source } => Some(source),
            Self::Engine { source, .. } => Some(source),
            Self::Config { .. } | Self::Unsuitable { .. } | Self::Short { .. } | Self::Panicked => {
                None
            }
        }
    }
}

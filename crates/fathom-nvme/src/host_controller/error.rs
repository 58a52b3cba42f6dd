//! Failures of a controller.

use std::fmt;

use crate::completion::Status;
use crate::identify::NamespaceFault;

/// Failure of a controller to become or to stay usable.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ControllerError {
    /// A command failed.
    Refused {
        /// Name of the command.
        command: &'static str,
        /// Status.
        status: Status,
        /// Result, which for Connect names the parameter.
        result: u64,
    },
    /// A command was not answered in time.
    Silent {
        /// Name of the command.
        command: &'static str,
    },
    /// It did not become ready in the time that it claims to need.
    NotReady,
    /// It reports a fatal status.
    Fatal,
    /// It has no such namespace.
    NoNamespace {
        /// Namespace identifier.
        nsid: u32,
    },
    /// A namespace that no host can use.
    Namespace {
        /// Namespace identifier.
        nsid: u32,
        /// Its property.
        fault: NamespaceFault,
    },
    /// It requires something that this host does not support.
    Unsupported(&'static str),
}

impl fmt::Display for ControllerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused {
                command,
                status,
                result,
            } => {
                write!(f, "{command}: {status}")?;
                let is_parameter = status.type_and_code() == INVALID_PARAMETERS;
                match is_parameter.then(|| parameter(*result)).flatten() {
                    Some(parameter) => write!(f, ": {parameter}"),
                    None => Ok(()),
                }
            }
            Self::Silent { command } => write!(f, "{command}: no answer in time"),
            Self::NotReady => f.write_str("the controller did not become ready in time"),
            Self::Fatal => f.write_str("the controller reports a fatal error"),
            Self::NoNamespace { nsid } => write!(f, "no namespace {nsid}"),
            Self::Namespace { nsid, fault } => write!(f, "namespace {nsid}: {fault}"),
            Self::Unsupported(what) => write!(f, "the controller requires {what}"),
        }
    }
}

impl std::error::Error for ControllerError {}

/// Returns the parameter of Connect that the result of its refusal names.
fn parameter(result: u64) -> Option<&'static str> {
    Some(match result & 0x1_ffff {
        42 => "queue identifier",
        44 => "queue size",
        0x1_0010 => "controller identifier",
        0x1_0100 => "subsystem NQN",
        0x1_0200 => "host NQN",
        _ => return None,
    })
}

const INVALID_PARAMETERS: (u8, u8) = (1, 0x82);

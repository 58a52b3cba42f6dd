//! Words that a queue pair and its owner exchange.

use std::fmt;

use crate::completion::Completion;
use crate::pdu::{Digests, ReadyToTransfer, TermReq};

/// Data of a command.
#[derive(Clone, Copy, Debug)]
pub enum CommandData<'a> {
    /// None.
    None,
    /// So many bytes from the controller.
    Read(u32),
    /// These, from the offset of the command on, to the controller.
    Write(&'a [u8]),
    /// These, copied into the queue, which sends them in the capsule.
    Inline(&'a [u8]),
}

/// Event of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostEvent<'a> {
    /// The connection is initialized: Connect may be sent.
    Initialized,
    /// Data of a read, to be copied.
    Data {
        /// Tag of the command.
        tag: u32,
        /// Offset in the buffer.
        offset: u32,
        /// Bytes.
        bytes: &'a [u8],
    },
    /// The controller asks for data of a write, which the owner passes to
    /// [`transfer`](super::HostQueue::transfer).
    Wanted(Wanted),
    /// A command is completed.
    Completed {
        /// Its tag.
        tag: u32,
        /// Its completion. One that the controller left out is all zeros.
        completion: Completion,
    },
}

/// Part of a write's data that the controller asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Tag of the command.
    pub tag: u32,
    /// Offset in the buffer.
    pub offset: u32,
    /// Bytes.
    pub length: u32,
    pub(super) request: ReadyToTransfer,
}

/// Reason for the end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueueError {
    /// The controller broke a rule, which a termination request reports to it.
    Violation(TermReq),
    /// The controller ended the connection.
    Terminated(TermReq),
    /// The controller does not agree to the digests requested.
    Digests {
        /// Digests requested.
        wanted: Digests,
        /// Digests granted.
        granted: Digests,
    },
}

impl fmt::Display for QueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Violation(fault) => write!(f, "the controller broke the protocol: {fault}"),
            Self::Terminated(fault) => write!(f, "the controller ended the connection: {fault}"),
            Self::Digests { wanted, granted } => {
                let kind = match (wanted.header != granted.header, wanted.data != granted.data) {
                    (true, true) => "header and data digests",
                    (true, false) => "header digests",
                    (false, _) => "data digests",
                };
                let is_missing = wanted.header & !granted.header | wanted.data & !granted.data;
                match is_missing {
                    true => write!(f, "the controller does not support {kind}"),
                    false => write!(f, "the controller insists on {kind}"),
                }
            }
        }
    }
}

impl std::error::Error for QueueError {}

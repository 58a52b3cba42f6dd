//! Carriers of messages between ranks.

use std::error::Error;
use std::fmt;

use crate::Rank;

/// Non-blocking carrier of messages between the ranks of a run.
///
/// A message arrives whole or not at all, at most once. Messages from one rank to another arrive in
/// the order in which they were sent, if they arrive; nothing relies on it. One is at most
/// [`MESSAGE_BYTES_MAX`](crate::MESSAGE_BYTES_MAX) long.
///
/// The methods are called on one thread, the one that watches the jobs, some tens of times a second
/// while jobs run. They must neither wait nor spin: either would disturb the measurement.
pub trait Link {
    /// Queues a message to another rank. The implementation copies what it cannot send at once, and
    /// sends it during later calls of this method and of [`receive`](Self::receive).
    ///
    /// # Errors
    /// The message can never be delivered.
    fn send(&mut self, to: Rank, message: &[u8]) -> Result<(), LinkError>;

    /// Takes the next message that has arrived, with its sender; `None` if there is none now.
    ///
    /// # Errors
    /// A rank is gone, which is reported once, or the carrier itself has failed.
    fn receive(&mut self) -> Result<Option<(Rank, Vec<u8>)>, LinkError>;

    /// Returns the rank of this process.
    fn rank(&self) -> Rank;

    /// Returns the number of ranks.
    fn ranks(&self) -> u32;
}

/// Error of a [`Link`].
#[derive(Debug)]
#[non_exhaustive]
pub enum LinkError {
    /// This rank cannot be reached any more: its process has ended, or its connection is cut for
    /// good. The others can.
    Gone(Rank),
    /// The carrier has failed, for all ranks.
    Failed(Box<dyn Error + Send + Sync>),
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone(rank) => write!(f, "rank {rank} cannot be reached any more"),
            Self::Failed(why) => write!(f, "messages between ranks: {why}"),
        }
    }
}

impl Error for LinkError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Gone(_) => None,
            Self::Failed(why) => Some(&**why),
        }
    }
}

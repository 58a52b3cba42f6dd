//! Outputs of the conductor: orders to send, and events to report.

use fathom_core::{Nanos, Tick};

use crate::messages::{Order, StopReason};
use crate::{MessageError, Rank, Refusal, Text, Wave};

/// Order to be sent, or event to be told.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Output {
    /// Order to a rank.
    Send {
        /// Receiver.
        to: Rank,
        /// Order.
        order: Order,
    },
    /// Event for the user.
    Tell(Event),
}

/// Event of a run on many hosts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event {
    /// All hosts find the plan sound.
    Sound,
    /// The plan was refused.
    Refused {
        /// Reasons of all hosts.
        refusals: Vec<Refusal>,
        /// Number of further reasons.
        left_out: u64,
    },
    /// A wave starts.
    WaveStarts {
        /// Wave.
        wave: Wave,
        /// Time of the start, on the common clock.
        at: Tick,
        /// Number of ranks that start it.
        ranks: u32,
        /// Largest error of the start on a rank.
        bound: Nanos,
    },
    /// The run of a rank has failed.
    RankFailed {
        /// Rank.
        rank: Rank,
        /// Reason.
        reason: Text,
    },
    /// A rank is lost.
    RankLost {
        /// Rank.
        rank: Rank,
        /// Time since its last report.
        silent: Nanos,
    },
    /// A lost rank has been heard of again; its record counts, but nothing starts on it.
    RankReturned(Rank),
    /// All stop.
    Stopping {
        /// Reason.
        reason: StopReason,
        /// Rank that asked for it, or is lost.
        rank: Rank,
    },
    /// All ranks are through or lost: the records can be gathered.
    AllThrough,
    /// A message cannot be read. The first one of a process is told.
    BadMessage {
        /// Sender.
        rank: Rank,
        /// Its defect.
        error: MessageError,
    },
    /// The link has failed: this rank no longer receives or sends anything.
    LinkFailed(Text),
}

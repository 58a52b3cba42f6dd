//! State of a running target, as `fathom target stats` reports it.

use serde::{Deserialize, Serialize};

use crate::stored::{RecordError, read_versioned};

/// State of a target at one time. Counters count from its start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TargetRecord {
    /// Version of the layout; see [`TARGET_VERSION`].
    pub version: u32,
    /// Time of the snapshot: milliseconds since 1970-01-01 UTC.
    pub timestamp_ms: u64,
    /// Time since the start.
    pub uptime_ns: u64,
    /// Process of the target.
    pub pid: u32,
    /// Addresses that it listens on.
    pub listen: Vec<String>,
    /// Bytes received from the sockets of all connections, past ones included.
    pub received_bytes: u64,
    /// Bytes sent to them, likewise.
    pub sent_bytes: u64,
    /// Data commands of all connections, past ones included.
    pub commands: CommandsRecord,
    /// Data buffers.
    pub buffers: BuffersRecord,
    /// Connections accepted, refused and ended.
    pub events: EventsRecord,
    /// Threads, by number.
    pub threads: Vec<ThreadRecord>,
    /// Namespaces, by subsystem and identifier.
    pub namespaces: Vec<NamespaceRecord>,
    /// Connections at this time, by thread.
    pub connections: Vec<ConnectionRecord>,
}

/// Current version of the layout of [`TargetRecord`].
pub const TARGET_VERSION: u32 = 1;

/// Data buffers of a target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BuffersRecord {
    /// Number of buffers; `None`: unlimited.
    pub count: Option<u32>,
    /// Bytes of each.
    pub buffer_bytes: u32,
    /// Buffers that requests hold.
    pub in_use: u32,
    /// Requests that wait for a buffer or for the pacer.
    pub pending: u32,
    /// Pacing policy.
    pub policy: String,
}

/// Counters of connections accepted, refused and ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventsRecord {
    /// Connections accepted.
    pub accepted: u64,
    /// Connections turned away at a limit.
    pub turned_away: u64,
    /// Connect commands that succeeded.
    pub connected: u64,
    /// Connect commands refused with a status.
    pub refused: u64,
    /// Connections ended by a timer: no Connect, half a PDU, no keep-alive.
    pub expired: u64,
    /// Connections ended because the peer broke the protocol.
    pub terminated: u64,
}

/// Counters of data commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandsRecord {
    /// Reads completed.
    pub reads: u64,
    /// Bytes that they returned.
    pub read_bytes: u64,
    /// Writes completed.
    pub writes: u64,
    /// Bytes that they stored.
    pub written_bytes: u64,
    /// Other commands completed: flush, write zeroes, dataset management, compare.
    pub others: u64,
    /// Commands completed with an error status.
    pub errors: u64,
    /// Data received with a wrong digest.
    pub digest_errors: u64,
}

/// A thread of a target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadRecord {
    /// Number, from 0.
    pub thread: u32,
    /// CPU that it is bound to.
    pub cpu: Option<u32>,
    /// Connections that it serves.
    pub connections: u32,
    /// Turns of its loop.
    pub turns: u64,
    /// Turns that found nothing to do.
    pub idle_turns: u64,
    /// Receives from sockets: system calls.
    pub receives: u64,
    /// Sends to sockets: system calls.
    pub sends: u64,
    /// Data commands.
    pub commands: CommandsRecord,
    /// Buffers that requests hold.
    pub buffers_in_use: u32,
    /// Bytes that these requests move.
    pub in_use_bytes: u64,
    /// Requests that got a buffer.
    pub granted: u64,
    /// Sum of the bytes in use as each of these requests found them; divided by `granted` it is the
    /// mean in flight.
    pub in_use_bytes_sum: u64,
    /// Buffers in its cache.
    pub buffers_cached: u32,
    /// Requests that wait for a buffer or for the pacer.
    pub pending: u32,
    /// Requests that had to wait.
    pub pending_total: u64,
    /// Buffers taken from its cache.
    pub cache_hits: u64,
    /// Buffers taken from the shared pool.
    pub pool_hits: u64,
    /// Pacer; `None` where the policy has none.
    pub pacer: Option<PacerRecord>,
}

/// The pacer of a thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PacerRecord {
    /// Times that credit was added.
    pub polls: u64,
    /// Periods that passed while requests waited.
    pub periods: u64,
    /// Requests let go.
    pub grants: u64,
    /// Bytes of these.
    pub granted_bytes: u64,
    /// Period in force, as configured or as a tuner has set it.
    pub period_ns: u64,
    /// Time in which a credit of bytes was let go, on average while requests waited.
    pub period_measured_ns: u64,
    /// Bytes in flight that it allows a thread, of devices that are not slow; `None`: no limit of
    /// its own.
    pub limit_bytes: Option<u64>,
    /// Evidence for the limit, for people; empty for a policy that searches none.
    pub evidence: String,
}

/// A namespace of a target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NamespaceRecord {
    /// NQN of the subsystem.
    pub nqn: String,
    /// Identifier.
    pub nsid: u32,
    /// Description of the device.
    pub device: String,
    /// Data commands.
    pub commands: CommandsRecord,
}

/// A connection of a target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConnectionRecord {
    /// Thread that serves it.
    pub thread: u32,
    /// Address of the peer.
    pub peer: String,
    /// NQN of the subsystem; empty before the Connect command.
    pub nqn: String,
    /// NQN of the host; empty before the Connect command, and for hosts without one.
    pub host_nqn: String,
    /// Controller; `None` before the Connect command.
    pub cntlid: Option<u16>,
    /// Queue; 0 is the admin queue.
    pub qid: Option<u16>,
    /// Requests in flight.
    pub in_flight: u32,
    /// Data commands.
    pub commands: CommandsRecord,
    /// Commands of the admin queue.
    pub admin_commands: u64,
    /// Bytes received from the socket.
    pub received_bytes: u64,
    /// Bytes sent to the socket.
    pub sent_bytes: u64,
}

impl TargetRecord {
    /// Serialises the record as JSON on one line.
    ///
    /// # Errors
    /// None for a record made by this program.
    pub fn to_json(&self) -> Result<String, RecordError> {
        serde_json::to_string(self).map_err(|error| RecordError::json(DOCUMENT, error))
    }

    /// Reads a record of this version of the layout or an earlier one.
    ///
    /// # Errors
    /// The text is not a record, or its version is later.
    pub fn from_json(text: &str) -> Result<Self, RecordError> {
        read_versioned(text, DOCUMENT, TARGET_VERSION)
    }
}

impl CommandsRecord {
    /// Adds the counts of another.
    pub const fn merge(&mut self, other: &Self) {
        self.reads += other.reads;
        self.read_bytes += other.read_bytes;
        self.writes += other.writes;
        self.written_bytes += other.written_bytes;
        self.others += other.others;
        self.errors += other.errors;
        self.digest_errors += other.digest_errors;
    }

    /// Returns the number of commands.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.reads + self.writes + self.others
    }

    /// Returns the bytes moved.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.read_bytes + self.written_bytes
    }
}

const DOCUMENT: &str = "the state of a target";

//! Counters of a target, as plain data.

use std::net::SocketAddr;

use fathom_block::AdmissionStatistics;
use fathom_core::Direction;

/// Counters of a target at one time.
///
/// Each thread copies its own when it is asked: counting costs the data path an addition.
#[derive(Clone, Debug, Default)]
pub struct TargetStatistics {
    /// By thread.
    pub threads: Vec<ThreadStatistics>,
    /// By namespace, summed over the threads, in the order of the configuration.
    pub namespaces: Vec<NamespaceStatistics>,
    /// Data buffers that requests hold.
    pub buffers_in_use: u32,
}

/// Counters of one thread.
#[derive(Clone, Debug, Default)]
pub struct ThreadStatistics {
    /// Number of the thread.
    pub thread: u32,
    /// Turns of its loop.
    pub turns: u64,
    /// Turns that found nothing to do.
    pub idle_turns: u64,
    /// Receives from sockets.
    pub receives: u64,
    /// Sends to sockets.
    pub sends: u64,
    /// Bytes received from sockets, over the present and past connections.
    pub received_bytes: u64,
    /// Bytes sent to sockets, likewise.
    pub sent_bytes: u64,
    /// Connections that the thread accepted, for all.
    pub accepted: u64,
    /// Connections that were refused because of a limit.
    pub turned_away: u64,
    /// Connects that were refused.
    pub refused_connects: u64,
    /// Buffers and pacer.
    pub admission: AdmissionStatistics,
    /// By namespace, over the present and past connections.
    pub namespaces: Vec<IoCounters>,
    /// Commands that name no namespace of their subsystem, likewise.
    pub unnamed: IoCounters,
    /// By connection, those that are open.
    pub connections: Vec<ConnectionStatistics>,
}

/// Counters of one connection.
#[derive(Clone, Debug)]
pub struct ConnectionStatistics {
    /// Address of the host.
    pub peer: SocketAddr,
    /// NQN of the host; empty if it gave none, or has not connected.
    pub host_nqn: String,
    /// NQN of the subsystem; empty before Connect.
    pub subsystem_nqn: String,
    /// Controller and queue; `None` before Connect.
    pub queue: Option<(u16, u16)>,
    /// Commands in flight.
    pub in_flight: u32,
    /// I/O commands.
    pub io: IoCounters,
    /// Commands of the admin queue.
    pub admin_commands: u64,
    /// Bytes received from the socket.
    pub received_bytes: u64,
    /// Bytes sent to the socket.
    pub sent_bytes: u64,
}

/// Counters of one namespace.
#[derive(Clone, Debug, Default)]
pub struct NamespaceStatistics {
    /// NQN of the subsystem.
    pub subsystem_nqn: String,
    /// Namespace identifier.
    pub nsid: u32,
    /// Its I/O.
    pub io: IoCounters,
}

/// Counters of I/O commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoCounters {
    /// Reads that have completed.
    pub reads: u64,
    /// Writes that have completed.
    pub writes: u64,
    /// Other commands that have completed.
    pub others: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Commands that failed, counted above as well.
    pub errors: u64,
    /// Data whose digest was wrong.
    pub digest_errors: u64,
}

impl IoCounters {
    /// Counts a command that moved data.
    #[inline]
    pub(crate) fn add(&mut self, direction: Direction, bytes: u32) {
        match direction {
            Direction::Read => {
                self.reads += 1;
                self.read_bytes += u64::from(bytes);
            }
            Direction::Write => {
                self.writes += 1;
                self.written_bytes += u64::from(bytes);
            }
            Direction::Trim => self.others += 1,
        }
    }

    /// Counts a command that failed.
    pub(crate) const fn add_error(&mut self) {
        self.others += 1;
        self.errors += 1;
    }

    /// Adds the counts of another.
    pub fn merge(&mut self, other: &Self) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.others += other.others;
        self.read_bytes += other.read_bytes;
        self.written_bytes += other.written_bytes;
        self.errors += other.errors;
        self.digest_errors += other.digest_errors;
    }

    /// Returns the number of commands that have completed.
    #[must_use]
    pub const fn commands(&self) -> u64 {
        self.reads + self.writes + self.others
    }
}

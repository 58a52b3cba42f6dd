//! Connection of a host: bytes between its socket and its queue.

mod close;
mod receive;
mod send;

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use fathom_core::Tick;
use fathom_nvme::{Controller, TargetQueue, TargetQueueConfig, TermReq};

use super::flight::Flights;
use super::mailbox::ConnectionId;
use super::send_queue::SendQueue;
use super::statistics::{ConnectionStatistics, IoCounters};
use super::subsystem::Served;

/// Connection of a host, served by one thread.
///
/// An idle connection has neither buffers nor bytes of its own: what a socket delivers is decoded
/// in the thread's receive buffer, and kept only while the connection waits for a data buffer.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) id: ConnectionId,
    pub(crate) stream: TcpStream,
    pub(crate) peer: SocketAddr,
    pub(crate) queue: TargetQueue,
    pub(crate) role: Role,
    pub(crate) flights: Flights,
    pub(crate) out: SendQueue,
    pub(crate) state: State,
    /// Bytes received and not decoded, while the connection waits for a buffer.
    leftover: Vec<u8>,
    /// Slot whose in-capsule data come next and have no buffer.
    pub(crate) blocked_by: Option<u16>,
    is_readable: bool,
    pub(crate) is_writable: bool,
    /// The peer has closed its end: only a read of nothing says that all has been read.
    is_closing: bool,
    /// In the list of connections with input.
    pub(crate) is_active: bool,
    /// In the list of connections with output.
    is_dirty: bool,
    /// Bytes of a receive without a place of their own.
    window: usize,
    /// Commands that a device has, or that wait for one.
    pub(crate) in_device: u32,
    /// Bytes of admin commands' data.
    pub(crate) page_bytes: u64,
    pub(crate) opened_at: Tick,
    pub(crate) heard_at: Tick,
    pub(crate) sent_at: Tick,
    pub(crate) counters: Counters,
}

/// Counters of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) io: IoCounters,
    pub(crate) admin_commands: u64,
    pub(crate) received_bytes: u64,
    pub(crate) sent_bytes: u64,
}

/// Use of a connection.
#[derive(Debug)]
pub(crate) enum Role {
    /// No Connect has succeeded.
    Connecting,
    /// Admin queue, which holds its controller.
    Admin(Box<AdminRole>),
    /// I/O queue.
    Io(Box<IoRole>),
}

/// Controller and what other threads know of it.
#[derive(Debug)]
pub(crate) struct AdminRole {
    pub(crate) controller: Controller,
    pub(crate) served: Arc<Served>,
    pub(crate) host_nqn: String,
    /// Number of I/O queues that the registry has.
    pub(crate) queues_published: u16,
}

/// I/O queue of a controller.
#[derive(Debug)]
pub(crate) struct IoRole {
    pub(crate) cntlid: u16,
    pub(crate) qid: u16,
    pub(crate) host_nqn: String,
    pub(crate) served: Arc<Served>,
}

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// In use.
    Open,
    /// A fatal error was reported at this time; the host is to close the connection.
    Terminating(Tick, TermReq),
    /// Closed; devices may still have commands.
    Closed,
}

impl Connection {
    pub(crate) fn new(
        id: ConnectionId,
        (stream, peer): (TcpStream, SocketAddr),
        config: TargetQueueConfig,
        now: Tick,
    ) -> Self {
        Self {
            id,
            stream,
            peer,
            queue: TargetQueue::new(config),
            role: Role::Connecting,
            flights: Flights::default(),
            out: SendQueue::default(),
            state: State::Open,
            leftover: Vec::new(),
            blocked_by: None,
            is_readable: true,
            is_writable: true,
            is_closing: false,
            is_active: false,
            is_dirty: false,
            window: WINDOW_MIN,
            in_device: 0,
            page_bytes: 0,
            opened_at: now,
            heard_at: now,
            sent_at: now,
            counters: Counters::default(),
        }
    }

    /// Returns the number that identifies a request to the admission.
    pub(crate) fn ticket(&self, slot: u16) -> u64 {
        u64::from(self.id.index) << 16 | u64::from(slot)
    }

    /// Returns the controller and the queue, once connected.
    pub(crate) fn queue_name(&self) -> Option<(u16, u16)> {
        match &self.role {
            Role::Connecting => None,
            Role::Admin(admin) => Some((admin.controller.cntlid(), 0)),
            Role::Io(io) => Some((io.cntlid, io.qid)),
        }
    }

    pub(crate) fn statistics(&self) -> ConnectionStatistics {
        let (host_nqn, subsystem_nqn) = match &self.role {
            Role::Connecting => (String::new(), String::new()),
            Role::Admin(admin) => (
                admin.host_nqn.clone(),
                admin.controller.subsystem().nqn.clone(),
            ),
            Role::Io(io) => (io.host_nqn.clone(), io.served.subsystem.nqn.clone()),
        };
        ConnectionStatistics {
            peer: self.peer,
            host_nqn,
            subsystem_nqn,
            queue: self.queue_name(),
            in_flight: u32::try_from(self.queue.in_use()).unwrap_or(u32::MAX),
            io: self.counters.io,
            admin_commands: self.counters.admin_commands,
            received_bytes: self.counters.received_bytes,
            sent_bytes: self.counters.sent_bytes,
        }
    }
}

/// Receive window of a connection that has received little, or data in their place: some hundred
/// commands.
const WINDOW_MIN: usize = 16 << 10;

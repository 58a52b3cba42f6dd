//! Events of a target, for its log.

use std::fmt;
use std::net::SocketAddr;

use fathom_nvme::{Side, Status, TermReq};

/// Receiver of a target's events. Called by the target's threads, a few times per connection: an
/// implementation must not block for long.
pub trait TargetLog: fmt::Debug + Send + Sync {
    /// Takes an event.
    fn event(&self, event: &TargetEvent<'_>);
}

/// Log that drops all events.
#[derive(Clone, Copy, Debug)]
pub struct NoLog;

impl TargetLog for NoLog {
    fn event(&self, _event: &TargetEvent<'_>) {}
}

/// Event of a target.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TargetEvent<'a> {
    /// The target listens.
    Listening {
        /// Address, with the port that was free.
        address: SocketAddr,
    },
    /// A queue has connected.
    Connected {
        /// Address of the host.
        peer: SocketAddr,
        /// NQN of the host; empty if it gave none.
        host_nqn: &'a str,
        /// NQN of the subsystem.
        subsystem_nqn: &'a str,
        /// Controller.
        cntlid: u16,
        /// Queue.
        qid: u16,
        /// Thread that serves it.
        thread: u32,
    },
    /// A connection was refused.
    Refused {
        /// Address of the host.
        peer: SocketAddr,
        /// Reason.
        refusal: Refusal<'a>,
    },
    /// A connection has ended.
    Ended {
        /// Address of the host.
        peer: SocketAddr,
        /// Controller and queue; `None` if it had not connected.
        queue: Option<(u16, u16)>,
        /// Reason.
        reason: Ended,
    },
    /// A thread ends, as it cannot wait for its sockets.
    ThreadFailed {
        /// Thread.
        thread: u32,
        /// Error of `epoll_wait(2)`.
        error: &'a std::io::Error,
    },
    /// Connections cannot be accepted for a moment.
    AcceptFailed {
        /// Error of `accept(2)`.
        error: &'a std::io::Error,
    },
}

/// Reason for the refusal of a connection.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Refusal<'a> {
    /// Connect failed.
    Connect {
        /// Status.
        status: Status,
        /// NQN of the host.
        host_nqn: &'a str,
        /// NQN of the subsystem.
        subsystem_nqn: &'a str,
    },
    /// The target has as many connections as it may have; with the number refused since the last
    /// event of this kind.
    TooMany(u64),
    /// The host's address has as many connections as it may have; with the number refused since the
    /// last event of this kind.
    TooManyOfAddress(u64),
}

/// Reason for the end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// The host closed it.
    Closed,
    /// A read or write of the socket failed.
    Broken(std::io::ErrorKind),
    /// One side found a fatal error.
    Terminated(Side, TermReq),
    /// The host did not connect a queue in time.
    NotInitialized,
    /// The host was silent within a PDU, or before data that were requested.
    Silent,
    /// The host did not receive.
    Stalled,
    /// The keep-alive timer ran out.
    KeepAliveExpired,
    /// The controller was reset, or its admin queue ended.
    ControllerEnded,
    /// The target stops.
    Stopped,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("closed by the host"),
            Self::Broken(kind) => write!(f, "{kind}"),
            Self::Terminated(side, reason) => {
                let side = match side {
                    Side::Host => "host",
                    Side::Controller => "target",
                };
                let TermReq {
                    status,
                    information,
                } = reason;
                write!(
                    f,
                    "terminated by the {side}: {status}, information {information}"
                )
            }
            Self::NotInitialized => f.write_str("no connect in time"),
            Self::Silent => f.write_str("silence within a transfer"),
            Self::Stalled => f.write_str("host does not receive"),
            Self::KeepAliveExpired => f.write_str("keep-alive expired"),
            Self::ControllerEnded => f.write_str("controller ended"),
            Self::Stopped => f.write_str("target stopped"),
        }
    }
}

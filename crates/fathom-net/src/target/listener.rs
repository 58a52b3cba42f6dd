//! Listening sockets, and the spread of connections over the threads.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};

use fathom_core::{Nanos, Tick};
use fathom_sys::sockets;

use super::config::TargetLimits;
use super::log::{Refusal, TargetEvent};
use super::mailbox::Message;
use super::work::Work;

/// Listening sockets. The first thread accepts for all and hands each socket to the thread with the
/// least load.
///
/// One listening socket per thread (`SO_REUSEPORT`) was rejected: the kernel spreads connections by
/// a hash of their addresses, so that of four queues two or three often fall on one thread, which
/// then limits the bandwidth of all.
#[derive(Debug)]
pub(crate) struct Listener {
    sockets: Vec<TcpListener>,
    /// Time of the next attempt after a failure, or of the rest of a long backlog.
    retry_at: Option<Tick>,
    /// Refusals that have not been logged, by limit: of the target, of an address.
    unlogged: [u64; 2],
    logged_at: [Option<Tick>; 2],
    failure_logged_at: Option<Tick>,
}

/// Open connections, counted over all threads.
#[derive(Debug, Default)]
pub(crate) struct Census {
    total: u32,
    by_address: HashMap<IpAddr, u32>,
}

impl Listener {
    pub(crate) fn new(sockets: Vec<TcpListener>) -> Self {
        Self {
            sockets,
            retry_at: None,
            unlogged: [0; 2],
            logged_at: [None; 2],
            failure_logged_at: None,
        }
    }

    pub(crate) fn sockets(&self) -> impl Iterator<Item = &TcpListener> {
        self.sockets.iter()
    }

    /// Returns the time of the next attempt, if one is due without a connection.
    pub(crate) const fn next(&self) -> Option<Tick> {
        self.retry_at
    }

    /// Accepts the connections that wait, up to a limit.
    pub(crate) fn accept(&mut self, work: &mut Work) {
        self.retry_at = None;
        for place in 0..self.sockets.len() {
            let mut accepted = 0;
            loop {
                if accepted == TURN_ACCEPTS {
                    self.retry_at = Some(work.now);
                    break;
                }
                match self.sockets[place].accept() {
                    Ok((stream, peer)) => {
                        accepted += 1;
                        self.admit(stream, peer, work);
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    // The peer was quicker, or a signal.
                    Err(error)
                        if matches!(
                            error.kind(),
                            ErrorKind::ConnectionAborted | ErrorKind::Interrupted
                        ) => {}
                    Err(error) => {
                        self.log_failure(&error, work);
                        self.retry_at = Some(work.now + RETRY);
                        break;
                    }
                }
            }
        }
    }

    /// Hands a connection to a thread, or drops it.
    fn admit(&mut self, stream: TcpStream, peer: SocketAddr, work: &mut Work) {
        let limits = &work.shared.config.limits;
        let refused = work.shared.census().admit(peer, limits);
        if let Some(limit) = refused {
            drop(stream);
            return self.turn_away(limit, peer, work);
        }
        // Responses are sent as soon as there are some; a socket that refuses this is closing.
        let is_ready = stream.set_nodelay(true).and(stream.set_nonblocking(true));
        if is_ready.is_err() {
            return work.shared.forget(peer);
        }
        // Its failure costs speed alone.
        let _unlimited = match peer.ip().to_canonical().is_loopback() {
            true => sockets::set_send_buffer(&stream, LOOPBACK_SEND_BYTES),
            false => Ok(()),
        };
        work.counters.accepted += 1;
        let loads = (0_u32..).zip(&work.shared.mailboxes);
        // The first of several with the same load: the others follow in turn.
        if let Some((thread, mailbox)) = loads.min_by_key(|(_, mailbox)| mailbox.load()) {
            mailbox.add_load();
            work.shared.post(thread, Message::Accepted(stream, peer));
        }
    }

    /// Logs a failure, at most one a second: it is met again with each attempt.
    fn log_failure(&mut self, error: &io::Error, work: &Work) {
        let now = work.now;
        if (self.failure_logged_at).is_none_or(|at| now.since(at) >= LOG_PERIOD) {
            self.failure_logged_at = Some(now);
            work.shared.log.event(&TargetEvent::AcceptFailed { error });
        }
    }

    /// Logs refusals, at most one a second for each limit.
    fn turn_away(&mut self, limit: usize, peer: SocketAddr, work: &mut Work) {
        work.counters.turned_away += 1;
        self.unlogged[limit] += 1;
        let now = work.now;
        if self.logged_at[limit].is_some_and(|at| now.since(at) < LOG_PERIOD) {
            return;
        }
        self.logged_at[limit] = Some(now);
        let count = std::mem::take(&mut self.unlogged[limit]);
        let refusal = match limit {
            OF_TARGET => Refusal::TooMany(count),
            _ => Refusal::TooManyOfAddress(count),
        };
        (work.shared.log).event(&TargetEvent::Refused { peer, refusal });
    }
}

impl Census {
    /// Counts a connection, or returns the limit that it would exceed.
    fn admit(&mut self, peer: SocketAddr, limits: &TargetLimits) -> Option<usize> {
        if self.total >= limits.connections_max {
            return Some(OF_TARGET);
        }
        let of_address = self.by_address.entry(peer.ip()).or_default();
        if *of_address >= limits.connections_per_address_max {
            return Some(OF_ADDRESS);
        }
        *of_address += 1;
        self.total += 1;
        None
    }

    /// Notes the end of a connection.
    pub(crate) fn forget(&mut self, peer: SocketAddr) {
        self.total -= 1;
        if let Some(count) = self.by_address.get_mut(&peer.ip()) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&peer.ip());
            }
        }
    }
}

const OF_TARGET: usize = 0;
const OF_ADDRESS: usize = 1;
/// Connections accepted in a turn, before those that are open have theirs.
const TURN_ACCEPTS: u32 = 64;
/// Send buffer of a connection to this machine, whose kernel would let 4 MiB pile up in cold memory
/// before the peer reads. Measured with reads of 128 KiB at depth 32, a core for each side, in
/// thousand ops/s: kernel's choice 37, 96 KiB 56, 128 KiB 65, 256 KiB 74, 1 MiB 37; a memory
/// namespace with four queues of depth 64: kernel's choice 33, 128 KiB 44, 256 KiB 40. For other
/// peers the kernel adapts the buffer to the bandwidth-delay product, which it must cover.
const LOOPBACK_SEND_BYTES: u32 = 128 << 10;
/// Pause after a failure, such as a lack of descriptors, which passes as connections end.
const RETRY: Nanos = Nanos::from_millis(100);
const LOG_PERIOD: Nanos = Nanos::from_secs(1);

//! `fathom run --serve`: a page about a run in progress, for a browser, and its metrics.
//!
//! ```text
//!  GET /              the page: style and script of its own, nothing from elsewhere
//!  GET /events        the figures, twice a second, as server-sent events
//!  GET /figures.json  the figures once
//!  GET /metrics       the same in OpenMetrics
//! ```
//!
//! `tiny_http` was rejected: it reads headers of any length, has no time limit, and starts a thread
//! for each connection.
//!
//! # Limits
//! [`Crowd::CLIENTS_MAX`] connections, each a thread with a small stack; requests of 8 KiB and one
//! second; no keep-alive. A client of `/events` has no queue: it gets the latest figures when it
//! has read the ones before, and is dropped if it reads nothing for a second.

mod events;
mod metrics;
mod page;

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fathom_target::{
    Client, Crowd, Hosts, REQUEST_BYTES_MAX, Reply, Request, Service, is_whole, turn_away,
};

use crate::live::Hub;

/// Server of a run's page, until it is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    _service: Service,
}

/// State shared by the threads of a server.
#[derive(Debug)]
struct Shared {
    hub: Arc<Hub>,
    clients: Arc<Crowd>,
    /// The server ends.
    ends: AtomicBool,
}

impl Server {
    /// Listens on `address`; port 0 takes a free one.
    ///
    /// # Errors
    /// The error of a system call: `AddrInUse`, `AddrNotAvailable`, `PermissionDenied`.
    pub(crate) fn start(address: SocketAddr, hub: Arc<Hub>) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            hub,
            clients: Arc::default(),
            ends: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&shared);
        let service = Service::start("serve", listener, move |stream| {
            admit(stream, &accepting);
        })?;
        Ok(Self {
            address,
            shared,
            _service: service,
        })
    }

    /// Returns the address that it listens on.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Gives clients a moment to take the last figures, and ends.
    pub(crate) fn finish(self) {
        // Relaxed, here and below: the value guards no other memory.
        self.shared.ends.store(true, Ordering::Relaxed);
        self.shared.clients.wait(FAREWELL);
    }
}

/// Answers a client, or turns it away at the end.
fn admit(stream: TcpStream, shared: &Arc<Shared>) {
    if shared.ends.load(Ordering::Relaxed) {
        return turn_away(&stream);
    }
    let answering = Arc::clone(shared);
    shared.clients.admit("serve", stream, move |client| {
        // A client that has gone, or is too slow, gets no more.
        let _gone = answer(client, &answering);
    });
}

/// Reads a request and answers it.
fn answer(client: &mut Client<TcpStream>, shared: &Shared) -> io::Result<()> {
    let bytes = client.read_until(REQUEST_BYTES_MAX, is_whole)?;
    let request = match Request::parse(&bytes, Hosts::Addresses) {
        Ok(request) => request,
        Err(refusal) => return client.write_all(&Reply::refused(refusal).bytes(true)),
    };
    let wants_body = !request.head_only;
    let (_, figures) = shared.hub.latest();
    let reply = match request.path.as_str() {
        "/" => page::page(),
        "/figures.json" => Reply::ok("application/json", figures.json()),
        "/metrics" => Reply::ok(metrics::CONTENT_TYPE, &metrics::metrics(&figures)),
        "/events" if wants_body => {
            let ends = || shared.ends.load(Ordering::Relaxed);
            return events::send(client, &shared.hub, &ends);
        }
        "/events" => events::head(),
        _ => Reply::not_found("/, /events, /figures.json, /metrics"),
    };
    client.write_all(&reply.bytes(wants_body))
}

/// Wait for clients at the end.
const FAREWELL: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests;

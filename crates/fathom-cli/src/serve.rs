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
//! [`CLIENTS_MAX`] connections, each a thread with a small stack; requests of 8 KiB and one second;
//! no keep-alive. A client of `/events` has no queue: it gets the latest figures when it has read
//! the ones before, and is dropped if it reads nothing for a second.

mod events;
mod metrics;
mod page;

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{Builder, sleep};
use std::time::Duration;

use fathom_sys::signals;
use fathom_target::{Client, Hosts, REQUEST_BYTES_MAX, Reply, Request, Service, is_whole};

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
    /// Connections that are open.
    clients: AtomicUsize,
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
            clients: AtomicUsize::new(0),
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
        // Relaxed, here and below: the values guard no other memory.
        self.shared.ends.store(true, Ordering::Relaxed);
        for _ in 0..FAREWELL_STEPS {
            if self.shared.clients.load(Ordering::Relaxed) == 0 {
                return;
            }
            #[expect(clippy::disallowed_methods, reason = "the run has ended")]
            sleep(FAREWELL_STEP);
        }
    }
}

/// Answers a client on a thread of its own, or turns it away if there are too many.
fn admit(stream: TcpStream, shared: &Arc<Shared>) {
    let Ok(()) = stream.set_nonblocking(true) else {
        return;
    };
    let mut client = Client::new(stream);
    let place = Place::take(shared);
    if place.is_none() || shared.ends.load(Ordering::Relaxed) {
        // What fits into the socket's buffer is enough; this thread does not wait for a reader.
        let _gone = io::Write::write(&mut client.stream(), &Reply::busy().bytes(false));
        return;
    }
    let answering = Arc::clone(shared);
    let thread = Builder::new().name("serve".into()).stack_size(STACK_BYTES);
    let _no_thread = thread.spawn(move || {
        let _place = place;
        // A signal would only end a wait early.
        let _unblocked = signals::block_in_this_thread();
        // A client that has gone, or is too slow, gets no more.
        let _gone = answer(&mut client, &answering);
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

/// Place of a connection among those that are open, until it is dropped.
#[derive(Debug)]
struct Place(Arc<Shared>);

impl Place {
    fn take(shared: &Arc<Shared>) -> Option<Self> {
        let before = shared.clients.fetch_add(1, Ordering::Relaxed);
        let place = Self(Arc::clone(shared));
        (before < CLIENTS_MAX).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.clients.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Connections at a time: a few windows of a browser and a scraper.
const CLIENTS_MAX: usize = 16;
/// A reply is on the heap.
const STACK_BYTES: usize = 256 * 1024;
/// Wait for clients at the end: up to half a second.
const FAREWELL_STEPS: u32 = 50;
const FAREWELL_STEP: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests;

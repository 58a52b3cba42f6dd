//! Clients of a server that are answered at the same time.

use std::io;
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use fathom_sys::signals;

use crate::http::Reply;
use crate::service::Client;

/// Clients of a server, each answered on a thread of its own with a small stack, so that a silent
/// one keeps no other waiting. There are [`CLIENTS_MAX`](Self::CLIENTS_MAX) at a time; others are
/// turned away.
#[derive(Debug, Default)]
pub struct Crowd {
    count: Mutex<usize>,
    one_left: Condvar,
}

impl Crowd {
    /// Clients at a time: a few windows of a browser and a scraper.
    pub const CLIENTS_MAX: usize = 16;

    /// Answers a client on a thread of this name, or turns it away if there are too many.
    pub fn admit(
        self: &Arc<Self>,
        name: &'static str,
        stream: TcpStream,
        answer: impl FnOnce(&mut Client<TcpStream>) + Send + 'static,
    ) {
        let Ok(()) = stream.set_nonblocking(true) else {
            return;
        };
        let Some(place) = Place::take(self) else {
            return turn_away(&stream);
        };
        let mut client = Client::new(stream);
        let thread = Builder::new().name(name.into()).stack_size(STACK_BYTES);
        let _no_thread = thread.spawn(move || {
            // A signal would only end a wait early.
            let _unblocked = signals::block_in_this_thread();
            answer(&mut client);
            drop(client);
            drop(place);
        });
    }

    /// Returns the number of clients that are being answered.
    #[must_use]
    pub fn count(&self) -> usize {
        *self.locked()
    }

    /// Waits until there are no clients, for at most `limit`.
    pub fn wait(&self, limit: Duration) {
        let waited = (self.one_left).wait_timeout_while(self.locked(), limit, |count| *count > 0);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    fn locked(&self) -> MutexGuard<'_, usize> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells a client to come back later. What fits into the socket's buffer is enough: no thread waits
/// for a reader.
pub fn turn_away(mut stream: &TcpStream) {
    let _gone = io::Write::write(&mut stream, &Reply::busy().bytes(false));
}

/// Place of a client among those that are answered, until it is dropped.
#[derive(Debug)]
struct Place(Arc<Crowd>);

impl Place {
    fn take(crowd: &Arc<Crowd>) -> Option<Self> {
        let mut count = crowd.locked();
        (*count < Crowd::CLIENTS_MAX).then(|| {
            *count += 1;
            Self(Arc::clone(crowd))
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        *self.0.locked() -= 1;
        self.0.one_left.notify_all();
    }
}

/// A reply is on the heap.
const STACK_BYTES: usize = 256 * 1024;

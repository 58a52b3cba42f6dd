//! Messages between the threads of a target.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fathom_sys::epoll::Waker;

use super::log::Ended;
use super::statistics::ThreadStatistics;

/// Wakes the threads of a target from elsewhere: a device whose completions come from another
/// thread.
#[derive(Debug)]
pub struct Wakers(Vec<Waker>);

/// Inbox of a thread, and its load as others see it.
#[derive(Debug)]
pub(crate) struct Mailbox {
    /// `None` once the thread has ended.
    messages: Mutex<Option<Vec<Message>>>,
    /// Connections that carry I/O, or may come to: those that have not connected as admin queues.
    load: AtomicU32,
}

/// Message to a thread.
pub(crate) enum Message {
    /// A connection to serve.
    Accepted(TcpStream, SocketAddr),
    /// A connection to close.
    Close(ConnectionId, Ended),
    /// A request for the counters.
    Count(Sender<ThreadStatistics>),
    /// The target stops.
    Stop,
}

/// Identifies a connection over all threads and times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionId {
    pub(crate) thread: u32,
    pub(crate) index: u32,
    /// Differs from that of earlier connections of the same index.
    pub(crate) serial: u64,
}

impl Wakers {
    /// Creates the wakers of `threads` threads.
    ///
    /// # Errors
    /// The error of `eventfd(2)`: `EMFILE` if the process has too many open files.
    pub fn new(threads: u32) -> io::Result<Arc<Self>> {
        let wakers = (0..threads)
            .map(|_| Waker::new())
            .collect::<Result<_, _>>()?;
        Ok(Arc::new(Self(wakers)))
    }

    /// Wakes a thread: its devices are asked for completions.
    pub fn wake(&self, thread: u32) {
        if let Some(waker) = self.0.get(thread as usize) {
            waker.wake();
        }
    }

    pub(crate) fn of(&self, thread: u32) -> &Waker {
        &self.0[thread as usize]
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }
}

impl Mailbox {
    /// Adds a message; its thread is to be woken. One to a thread that has ended is dropped, with
    /// the connection or the way to reply that it carries.
    pub(crate) fn push(&self, message: Message) {
        if let Some(messages) = &mut *self.lock() {
            messages.push(message);
        }
    }

    /// Takes all messages.
    pub(crate) fn take(&self) -> Vec<Message> {
        self.lock().as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Notes that the thread has ended, and drops the messages that it has not taken.
    pub(crate) fn close(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Vec<Message>>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn load(&self) -> u32 {
        // Relaxed: a stale value makes the spread a little uneven.
        self.load.load(Ordering::Relaxed)
    }

    pub(crate) fn add_load(&self) {
        // Relaxed: see `load`.
        self.load.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn subtract_load(&self) {
        // Relaxed: see `load`.
        self.load.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Default for Mailbox {
    fn default() -> Self {
        Self {
            messages: Mutex::new(Some(Vec::new())),
            load: AtomicU32::new(0),
        }
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Accepted(_, peer) => write!(f, "Accepted({peer})"),
            Self::Close(connection, _) => write!(f, "Close({connection:?})"),
            Self::Count(_) => f.write_str("Count"),
            Self::Stop => f.write_str("Stop"),
        }
    }
}

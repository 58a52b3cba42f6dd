//! Small servers beside a target or a run: a thread that accepts, limits on time and size.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::thread::JoinHandle;

use fathom_core::{Nanos, Tick};
use fathom_record::TargetRecord;
use fathom_sys::clock::Clock;
use fathom_sys::epoll::{Epoll, Events, Interest, Waker};
use fathom_sys::files::{wait_readable, wait_writable};
use fathom_sys::{signals, thread};

/// Takes a snapshot of the target.
pub type Snapshot = Arc<dyn Fn() -> TargetRecord + Send + Sync>;

/// Thread that answers the clients of a listener. Dropping it ends the thread; a client that is
/// being answered may delay that by a second.
#[derive(Debug)]
pub struct Service {
    waker: Arc<Waker>,
    thread: Option<JoinHandle<()>>,
}

impl Service {
    /// Starts a thread that accepts clients and calls `answer` with each. A failure to accept, such
    /// as a lack of descriptors, is met again with each attempt until it passes: the thread pauses
    /// after one.
    ///
    /// # Errors
    /// The error of a system call.
    pub fn start<L: Accept + Send + 'static>(
        name: &'static str,
        listener: L,
        mut answer: impl FnMut(L::Stream) + Send + 'static,
    ) -> io::Result<Self> {
        let epoll = Epoll::new()?;
        let waker = Arc::new(Waker::new()?);
        let stop = Arc::clone(&waker);
        epoll.add(&listener, LISTENER, Interest::Readable)?;
        epoll.add(&*waker, STOP, Interest::Readable)?;
        let run = move || {
            // Best effort: a name is for people, and a signal would only end a wait early.
            let _unnamed = thread::set_name(name);
            let _unblocked = signals::block_in_this_thread();
            let mut events = Events::new(2);
            while epoll.wait(&mut events, None).is_ok() {
                if events.iter().any(|event| event.token == STOP) {
                    return;
                }
                if events.iter().all(|event| event.token != LISTENER) {
                    continue;
                }
                match listener.accept_one() {
                    Ok(stream) => answer(stream),
                    // The client was quicker, or a signal.
                    Err(error)
                        if matches!(
                            error.kind(),
                            ErrorKind::WouldBlock
                                | ErrorKind::Interrupted
                                | ErrorKind::ConnectionAborted
                        ) => {}
                    Err(_) => {
                        let _ended_early = wait_readable(&*stop, PAUSE);
                    }
                }
            }
        };
        let thread = std::thread::Builder::new().spawn(run)?;
        Ok(Self {
            waker,
            thread: Some(thread),
        })
    }
}

/// Listening socket that does not block.
pub trait Accept: AsFd {
    /// Connection to a client.
    type Stream;

    /// Accepts a client.
    ///
    /// # Errors
    /// The error of `accept(2)`.
    fn accept_one(&self) -> io::Result<Self::Stream>;
}

impl Accept for TcpListener {
    type Stream = TcpStream;

    fn accept_one(&self) -> io::Result<TcpStream> {
        self.accept().map(|(stream, _peer)| stream)
    }
}

impl Accept for UnixListener {
    type Stream = UnixStream;

    fn accept_one(&self) -> io::Result<UnixStream> {
        self.accept().map(|(stream, _peer)| stream)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.waker.wake();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported by the hook.
            let _reported = thread.join();
        }
    }
}

/// Client of a service, with the time that it has left: one second to read a request and to answer
/// it.
#[derive(Debug)]
pub struct Client<S> {
    stream: S,
    clock: Clock,
    until: Tick,
}

impl<S: Read + Write + AsFd> Client<S> {
    /// Creates a client on a stream that does not block.
    #[must_use]
    pub fn new(stream: S) -> Self {
        let clock = Clock::monotonic();
        Self {
            stream,
            until: clock.now() + CLIENT_TIME_MAX,
            clock,
        }
    }

    /// Reads until `is_whole` holds for what was read, or the client closes its end, or `bytes_max`
    /// are there.
    ///
    /// # Errors
    /// That of the system call; `TimedOut` if the client's time is up.
    pub fn read_until(
        &mut self,
        bytes_max: usize,
        is_whole: impl Fn(&[u8]) -> bool,
    ) -> io::Result<Vec<u8>> {
        let mut read = Vec::new();
        let mut piece = [0; 1024];
        while read.len() < bytes_max && !is_whole(&read) {
            match self.stream.read(&mut piece) {
                Ok(0) => break,
                Ok(count) => read.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let left = self.left()?;
                    wait_readable(&self.stream, left)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(read)
    }

    /// Writes everything.
    ///
    /// # Errors
    /// As [`read_until`](Self::read_until).
    pub fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let left = self.left()?;
                    wait_writable(&self.stream, left)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Gives the client its full time again.
    pub fn renew(&mut self) {
        self.until = self.clock.now() + CLIENT_TIME_MAX;
    }

    /// Returns the stream.
    pub const fn stream(&self) -> &S {
        &self.stream
    }

    fn left(&self) -> io::Result<Nanos> {
        let now = self.clock.now();
        match now < self.until {
            true => Ok(self.until - now),
            false => Err(ErrorKind::TimedOut.into()),
        }
    }
}

/// Time in which a client is answered: one of the statistics socket that is slower blocks those
/// behind it.
pub(crate) const CLIENT_TIME_MAX: Nanos = Nanos::from_millis(1000);
/// Pause after a failure to accept.
const PAUSE: Nanos = Nanos::from_millis(100);
const LISTENER: u64 = 0;
const STOP: u64 = 1;

#[cfg(test)]
mod tests {
    use std::os::fd::BorrowedFd;
    use std::sync::mpsc::{Sender, channel};

    use fathom_core::Errno;

    use super::*;

    /// Listener with a client, of a process without descriptors for it.
    struct Full {
        clients: Waker,
        attempts: Sender<Tick>,
        clock: Clock,
    }

    impl AsFd for Full {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.clients.as_fd()
        }
    }

    impl Accept for Full {
        type Stream = ();

        fn accept_one(&self) -> io::Result<()> {
            let _ended = self.attempts.send(self.clock.now());
            Err(io::Error::from(Errno::EMFILE))
        }
    }

    #[test]
    fn a_client_that_cannot_be_accepted_is_not_tried_without_a_pause() {
        let (attempts, times) = channel();
        let full = Full {
            clients: Waker::new().unwrap(),
            attempts,
            clock: Clock::monotonic(),
        };
        full.clients.wake();
        let service = Service::start("full", full, |()| panic!("nothing was accepted"));
        let first = times.recv().unwrap();
        let second = times.recv().unwrap();
        // Poll rounds its wait to milliseconds.
        assert!(second - first >= PAUSE - Nanos::from_millis(1));
        drop(service);
    }
}

//! A clock that one thread reads for all others, which load the time from memory (`gtod_cpu`).
//!
//! ```text
//!  serving thread, alone on its processor:  read ─► store ─► read ─► store ─► …
//!  every other thread:                      load
//! ```
//!
//! A load is cheaper than reading most clocks, but the time is as old as the last store: tens of
//! nanoseconds while the serving thread runs, and unbounded while it is descheduled.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread::{Builder, JoinHandle};

use fathom_core::Nanos;

use super::{Clock, Source};
use crate::{signals, thread};

/// The published time, padded to its own cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Time(pub(super) AtomicU64);

/// The serving thread, ended on drop; from then on the time stands still.
#[derive(Debug)]
pub struct TimeServer {
    shared: Arc<ServerState>,
    thread: Option<JoinHandle<()>>,
    cpu: u32,
}

#[derive(Debug, Default)]
struct ServerState {
    stop: AtomicBool,
    longest_ns: AtomicU64,
}

impl TimeServer {
    /// Starts a thread on this CPU that reads `clock` continuously, and returns the clock that
    /// shows its readings.
    ///
    /// Leaks 128 bytes, the published time, because clocks are copied everywhere.
    ///
    /// # Errors
    /// The error of `sched_setaffinity(2)` or of starting the thread.
    pub fn start(clock: Clock, cpu: u32) -> io::Result<(Self, Clock)> {
        let time: &'static Time = Box::leak(Box::default());
        // Relaxed, here and below: the times and flags guard no other memory.
        time.0.store(clock.now().get(), Ordering::Relaxed);
        let shared = Arc::new(ServerState::default());
        let (sender, receiver) = channel();
        let own = Arc::clone(&shared);
        let thread = Builder::new().name("gtod".into()).spawn(move || {
            let settled =
                signals::block_in_this_thread().and_then(|()| thread::set_allowed_cpus(&[cpu]));
            let go = settled.is_ok();
            // The receiver waits for this message.
            let _heard = sender.send(settled);
            if go {
                serve(clock, time, &own);
            }
        })?;
        let server = Self {
            shared,
            thread: Some(thread),
            cpu,
        };
        receiver.recv().map_err(io::Error::other)??;
        let served = Clock {
            source: Source::Served(time),
            ..clock
        };
        Ok((server, served.with_read_cost()))
    }

    /// Returns the dedicated CPU.
    #[must_use]
    pub const fn cpu(&self) -> u32 {
        self.cpu
    }

    /// Returns the longest interval between two stores so far.
    #[must_use]
    pub fn longest_standstill(&self) -> Nanos {
        Nanos::new(self.shared.longest_ns.load(Ordering::Relaxed))
    }
}

fn serve(clock: Clock, time: &Time, shared: &ServerState) {
    let mut last = clock.now();
    let mut longest = Nanos::ZERO;
    while !shared.stop.load(Ordering::Relaxed) {
        let now = clock.now();
        time.0.store(now.get(), Ordering::Relaxed);
        if now - last > longest {
            longest = now - last;
            shared.longest_ns.store(longest.get(), Ordering::Relaxed);
        }
        last = now;
    }
}

impl Drop for TimeServer {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It cannot panic; if it did, the time would merely stand still.
            let _ended = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_goes_on_by_itself_and_ends_with_its_server() {
        let own = Clock::monotonic();
        let cpu = thread::allowed_cpus().expect("a list")[0];
        let (server, served) = TimeServer::start(own, cpu).expect("a thread");
        assert_eq!(served.source(), "gtod_cpu");
        let first = served.now();
        while served.now() == first {
            std::hint::spin_loop();
        }
        assert!(served.now() > first);
        assert!(
            served.now() <= own.now(),
            "never ahead of the clock that is read"
        );
        assert!(server.longest_standstill() > Nanos::ZERO);
        drop(server);
        let last = served.now();
        let until = own.now() + Nanos::from_micros(100);
        while own.now() < until {}
        assert_eq!(served.now(), last);
    }

    #[test]
    fn a_processor_that_is_not_there_is_refused() {
        let refused = TimeServer::start(Clock::monotonic(), 8000);
        assert!(refused.is_err());
    }
}

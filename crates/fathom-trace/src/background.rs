//! Traces beside other work: on a thread of their own, until they are finished.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread::{Builder, JoinHandle};

use crate::config::TraceConfig;
use crate::error::TraceError;

/// Trace on a thread of its own.
///
/// [`finish`](Self::finish) ends it and returns its result. Dropping it ends it too, and removes
/// its tracing instance.
#[derive(Debug)]
pub struct BackgroundTrace<R> {
    stops: Arc<AtomicU32>,
    /// `None` once it was finished.
    thread: Option<JoinHandle<Result<R, TraceError>>>,
}

/// Body of a trace: follows the events until the configuration's `stops`, and calls the function
/// once the kernel records.
pub(crate) type Body<R> =
    dyn FnOnce(&TraceConfig<'_>, &mut dyn FnMut()) -> Result<R, TraceError> + Send;

impl<R: Send + 'static> BackgroundTrace<R> {
    /// Starts a trace and waits until the kernel records.
    pub(crate) fn start(ring_mib: u32, body: Box<Body<R>>) -> Result<Self, TraceError> {
        let stops = Arc::new(AtomicU32::new(0));
        let (sender, begun) = mpsc::channel();
        let seen = Arc::clone(&stops);
        let thread = Builder::new()
            .name("trace".into())
            .spawn(move || follow(ring_mib, body, &seen, &sender))
            .map_err(|source| TraceError::Thread { source })?;
        let mut trace = Self {
            stops,
            thread: Some(thread),
        };
        match begun.recv() {
            Ok(()) => Ok(trace),
            // The thread ended before it recorded anything.
            Err(_gone) => match trace.join() {
                Some(Err(error)) => Err(error),
                Some(Ok(_)) | None => Ok(trace),
            },
        }
    }

    /// Ends the trace and returns its result.
    ///
    /// # Errors
    /// tracefs could not be read.
    ///
    /// # Panics
    /// The thread panicked.
    pub fn finish(mut self) -> Result<R, TraceError> {
        self.join().unwrap_or(Err(TraceError::NotBegun))
    }

    fn join(&mut self) -> Option<Result<R, TraceError>> {
        join(&self.stops, &mut self.thread)
    }
}

impl<R> Drop for BackgroundTrace<R> {
    fn drop(&mut self) {
        // A panic of the thread was printed already.
        if let Some(thread) = self.thread.take() {
            self.stops.store(1, Ordering::Relaxed);
            let _ended = thread.join();
        }
    }
}

fn join<R>(
    stops: &AtomicU32,
    thread: &mut Option<JoinHandle<Result<R, TraceError>>>,
) -> Option<Result<R, TraceError>> {
    // Relaxed: the flag guards no data; `join` synchronises with the thread's end.
    stops.store(1, Ordering::Relaxed);
    let ended = thread.take()?.join();
    Some(ended.unwrap_or_else(|panic| resume_unwind(panic)))
}

fn follow<R>(
    ring_mib: u32,
    body: Box<Body<R>>,
    stops: &AtomicU32,
    begun: &Sender<()>,
) -> Result<R, TraceError> {
    // The main thread handles signals. Best effort: they are handled here too, only later.
    let _ignored = fathom_sys::signals::block_in_this_thread();
    let config = TraceConfig {
        seconds: None,
        ring_mib,
        // Relaxed: see `join`.
        stops: &|| stops.load(Ordering::Relaxed),
    };
    // Cannot fail: `start` waits for it.
    body(&config, &mut || begun.send(()).unwrap_or_default())
}

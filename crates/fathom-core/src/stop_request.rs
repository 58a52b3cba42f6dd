//! Request that a job stops, shared between threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Request that a job stops: it issues no more, drains and finishes. Clones share it.
///
/// It is final. The job's loop looks at it once a turn; an engine that may wait for long within a
/// call does so, too.
#[derive(Clone, Debug, Default)]
pub struct StopRequest(Arc<AtomicBool>);

impl StopRequest {
    /// Requests the stop.
    pub fn request(&self) {
        // Relaxed: the flag publishes no data.
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns whether the stop was requested.
    #[inline]
    #[must_use]
    pub fn is_requested(&self) -> bool {
        // Relaxed: as above, and seeing it a moment later is soon enough.
        self.0.load(Ordering::Relaxed)
    }
}

//! Exchange of figures between the thread that makes them and its views.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::Figures;

/// The latest figures of a run.
///
/// There is no queue: a view that is slow takes the next figures when it can, and those between
/// are gone. So neither its speed nor its number delays the run or costs memory.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    latest: Mutex<Latest>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Latest {
    /// Number of figures so far.
    version: u64,
    figures: Arc<Figures>,
}

impl Hub {
    /// Replaces the figures.
    pub(crate) fn publish(&self, figures: Arc<Figures>) {
        let mut latest = self.lock();
        latest.version += 1;
        latest.figures = figures;
        drop(latest);
        self.changed.notify_all();
    }

    /// Returns the figures and their version.
    pub(crate) fn latest(&self) -> (u64, Arc<Figures>) {
        let latest = self.lock();
        (latest.version, Arc::clone(&latest.figures))
    }

    /// Returns the figures after version `seen`, for which it waits; `None` if there are none after
    /// this time.
    pub(crate) fn next(&self, seen: u64, patience: Duration) -> Option<(u64, Arc<Figures>)> {
        let latest = self.lock();
        let waited = self
            .changed
            .wait_timeout_while(latest, patience, |latest| latest.version <= seen);
        let (latest, _) = waited.unwrap_or_else(PoisonError::into_inner);
        (latest.version > seen).then(|| (latest.version, Arc::clone(&latest.figures)))
    }

    fn lock(&self) -> MutexGuard<'_, Latest> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_gets_the_latest_once() {
        let hub = Hub::default();
        assert!(hub.next(0, Duration::ZERO).is_none());
        for elapsed_ms in [1, 2] {
            let figures = Figures {
                elapsed_ms,
                ..Figures::default()
            };
            hub.publish(Arc::new(figures));
        }
        let (version, figures) = hub.next(0, Duration::MAX).unwrap();
        assert_eq!((version, figures.elapsed_ms), (2, 2));
        assert!(hub.next(version, Duration::ZERO).is_none());
        assert_eq!(hub.latest().0, 2);
    }
}

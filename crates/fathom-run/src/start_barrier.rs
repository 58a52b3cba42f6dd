//! Start barrier of a wave: its jobs start together, once all are ready.
//!
//! The watcher opens it, since it learns of every thread that is ready *or has ended*. A counting
//! barrier (`std::sync::Barrier`) would hang when a job fails during setup.

use std::sync::{Condvar, Mutex, PoisonError};

use fathom_core::Tick;

/// Barrier that starts closed and, once opened, stays open. It is opened with the time at which
/// the jobs start, which may be a little ahead.
#[derive(Debug, Default)]
pub(crate) struct StartBarrier {
    open: Mutex<Option<Tick>>,
    changed: Condvar,
}

impl StartBarrier {
    /// Opens the barrier and wakes every waiting job.
    pub(crate) fn open(&self, start: Tick) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = Some(start);
        self.changed.notify_all();
    }

    /// Blocks until the barrier is open, and returns the time to start.
    pub(crate) fn pass(&self) -> Tick {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(start) = *open {
                return start;
            }
            open = self
                .changed
                .wait(open)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opening_releases_all_waiters_for_good() {
        let (barrier, start) = (StartBarrier::default(), Tick::new(7));
        std::thread::scope(|scope| {
            let waiting: Vec<_> = (0..4).map(|_| scope.spawn(|| barrier.pass())).collect();
            barrier.open(start);
            for thread in waiting {
                assert_eq!(thread.join().unwrap(), start);
            }
        });
        assert_eq!(barrier.pass(), start);
    }
}

//! Start barrier of a wave: its jobs start together, once all are ready.
//!
//! The watcher opens it, since it learns of every thread that is ready *or has ended*. A counting
//! barrier (`std::sync::Barrier`) would hang when a job fails during setup.

use std::sync::{Condvar, Mutex, PoisonError};

/// Barrier that starts closed and, once opened, stays open.
#[derive(Debug, Default)]
pub(crate) struct StartBarrier {
    open: Mutex<bool>,
    changed: Condvar,
}

impl StartBarrier {
    /// Opens the barrier and wakes every waiting job.
    pub(crate) fn open(&self) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Blocks until the barrier is open.
    pub(crate) fn pass(&self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        while !*open {
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
        let barrier = StartBarrier::default();
        std::thread::scope(|scope| {
            let waiting: Vec<_> = (0..4).map(|_| scope.spawn(|| barrier.pass())).collect();
            barrier.open();
            for thread in waiting {
                thread.join().unwrap();
            }
        });
        barrier.pass();
    }
}

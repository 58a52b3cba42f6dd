//! Where the jobs of a wave wait for one another: all start when all are ready.
//!
//! The gate is opened by the watcher, which hears of every thread that is ready *or has ended*, so
//! a job that fails while it sets up holds nobody back.

use std::sync::{Condvar, Mutex, PoisonError};

/// Closed until it is opened, then open for good.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    open: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    /// Lets everybody through.
    pub(crate) fn open(&self) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Waits until the gate is open.
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
    fn nobody_passes_before_it_is_open_and_everybody_after() {
        let gate = Gate::default();
        std::thread::scope(|scope| {
            let waiting: Vec<_> = (0..4).map(|_| scope.spawn(|| gate.pass())).collect();
            gate.open();
            for thread in waiting {
                thread.join().unwrap();
            }
        });
        gate.pass();
    }
}

//! What others want to know of a worker's end.

use fathom_core::{Errno, Tick};

use crate::config::Tolerate;
use crate::worker::Worker;

impl Worker {
    /// Whether an error has ended it.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.recorder.has_failed()
    }

    /// Whether it is to end as what it does has become steady.
    pub(crate) fn is_steady(&self) -> bool {
        self.steady
            .as_ref()
            .is_some_and(|steady| steady.is_attained())
    }

    /// It has ended: nobody need wait for it or count on it.
    pub(crate) fn leave_groups(&mut self) {
        if let Some(limits) = &mut self.limits {
            limits.end();
        }
        if let Some(steady) = &mut self.steady {
            steady.end();
        }
    }

    /// Forgets what was measured; the end that `runtime` has set stays.
    pub(crate) fn measure_anew(&mut self, now: Tick) {
        let deadline = self.timers.deadline;
        self.measure_from(now);
        self.timers.deadline = deadline;
        self.set_next_rule();
    }
}

impl Tolerate {
    /// Whether a read that fails with `errno` does not end the job.
    pub(crate) fn read(&self, errno: u32) -> bool {
        self.read && is_listed(&self.listed[0], errno)
    }

    /// The same of a write, a trim or a sync.
    pub(crate) fn write(&self, errno: u32) -> bool {
        self.write && is_listed(&self.listed[1], errno)
    }

    /// The same of content that differs.
    pub(crate) fn verify(&self, errno: u32) -> bool {
        self.verify && is_listed(&self.listed[2], errno)
    }
}

/// Without a list, these two are gone past and no other, as in fio.
fn is_listed(list: &[u32], errno: u32) -> bool {
    match list {
        [] => [Errno::EIO, Errno::EILSEQ]
            .map(Errno::unsigned)
            .contains(&errno),
        list => list.contains(&errno),
    }
}

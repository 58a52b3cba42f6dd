//! End of a worker: its steady-state group, the groups it leaves, tolerated errors.

use fathom_core::{Direction, Errno, Tick};

use crate::config::Tolerate;
use crate::steady::Totals;
use crate::worker::{After, Stage, Worker};

impl Worker {
    /// Returns whether an error has ended the job.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.recorder.has_failed()
    }

    /// Starts measuring and watching for a steady state.
    pub(crate) fn watch_from(&mut self, now: Tick) {
        if let Some(steady) = &mut self.steady {
            steady.begin(now);
        }
    }

    /// Samples the job for its steady-state group, if a sample is due.
    pub(crate) fn watch_steadiness(&mut self, now: Tick) {
        let done = Direction::ALL.map(|direction| self.recorder.measured(direction));
        let latency_ns = self.recorder.latency_sum_ns();
        if let Some(steady) = self.steady.as_mut().filter(|steady| now >= steady.next()) {
            let seen = Totals {
                ios: done.iter().map(|(ios, _)| ios).sum(),
                bytes: done.iter().map(|(_, bytes)| bytes).sum(),
                latency_ns,
            };
            steady.sample(seen, now);
        }
    }

    /// Returns whether the job is to end because it is steady.
    pub(crate) fn is_steady(&self) -> bool {
        self.steady
            .as_ref()
            .is_some_and(|steady| steady.is_attained())
    }

    /// Returns whether the job issues no more ops: those in flight are its last.
    #[must_use]
    pub const fn is_ending(&self) -> bool {
        matches!(self.stage, Stage::Draining(After::End))
    }

    /// Leaves flow, steady-state group and open zones at the end of the job.
    pub(crate) fn leave_groups(&mut self) {
        if let Some(limits) = &mut self.limits {
            limits.end();
        }
        if let Some(steady) = &mut self.steady {
            steady.end();
        }
        if let Some(zoned) = &self.zoned {
            zoned.leave();
        }
    }

    /// Discards the measurements; the deadline set by `runtime` stays.
    pub(crate) fn restart_measurement(&mut self, now: Tick) {
        let deadline = self.timers.deadline;
        self.measure_from(now);
        self.timers.deadline = deadline;
        self.set_next_rule();
    }
}

impl Tolerate {
    /// Returns whether a read that fails with `errno` is tolerated.
    pub(crate) fn read(&self, errno: Errno) -> bool {
        self.read && is_listed(&self.listed[0], errno)
    }

    /// Returns whether a write, trim or sync that fails with `errno` is tolerated.
    pub(crate) fn write(&self, errno: Errno) -> bool {
        self.write && is_listed(&self.listed[1], errno)
    }

    /// Returns whether a failed verification is tolerated.
    pub(crate) fn verify(&self, errno: Errno) -> bool {
        self.verify && is_listed(&self.listed[2], errno)
    }
}

/// Returns whether an errno is listed; without a list these two are, as in fio.
fn is_listed(list: &[u32], errno: Errno) -> bool {
    match list {
        [] => [Errno::EIO, Errno::EILSEQ].contains(&errno),
        list => list.contains(&errno.unsigned()),
    }
}

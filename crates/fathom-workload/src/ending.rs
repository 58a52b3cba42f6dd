//! What others want to know of a worker's end.

use fathom_core::Tick;

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
    pub(crate) fn take_no_part(&mut self) {
        if let Some(guards) = &mut self.guards {
            guards.end();
        }
        if let Some(steady) = &mut self.steady {
            steady.end();
        }
    }

    /// Forgets what was measured; the end that `runtime` has set stays.
    pub(crate) fn measure_anew(&mut self, now: Tick) {
        let deadline = self.clock.deadline;
        self.measure_from(now);
        self.clock.deadline = deadline;
        self.set_next_rule();
    }
}

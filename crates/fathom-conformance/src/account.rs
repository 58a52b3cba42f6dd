//! Account of the ops that a test has issued.

use std::collections::HashSet;

use fathom_core::{Completion, Op, Slot, Tick};

/// Ops in flight on an engine under test: each completes once.
#[derive(Debug, Default)]
pub struct Account {
    in_flight: HashSet<Slot>,
    sequence: u64,
    /// Latest time that the engine has told.
    latest: Tick,
}

impl Account {
    /// Notes an op that is prepared; returns it with its number.
    ///
    /// # Panics
    /// The slot is in flight: a fault of the test.
    #[track_caller]
    pub fn prepare(&mut self, op: Op) -> Op {
        assert!(self.in_flight.insert(op.slot), "the test uses a slot twice");
        let sequence = self.sequence;
        self.sequence += 1;
        Op { sequence, ..op }
    }

    /// Checks the times of a submission.
    #[track_caller]
    pub(crate) fn submit(&mut self, title: &str, issue: Tick, now: Tick) {
        assert!(
            self.latest <= issue && issue <= now,
            "{title}: {issue:?} {now:?}"
        );
        self.latest = now;
    }

    /// Checks and notes a completion.
    #[track_caller]
    pub(crate) fn reap(&mut self, title: &str, completion: &Completion) {
        let known = self.in_flight.remove(&completion.slot);
        assert!(known, "{title}: {completion:?} was not in flight");
    }

    /// Returns the number of ops in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }
}

//! Account of the ops that a test has issued.

use std::collections::HashSet;

use fathom_core::{Completion, Op, Slot, Tick};

/// Ops in flight on an engine under test: each completes once.
#[derive(Debug)]
pub struct Account {
    pub(crate) title: String,
    pub(crate) depth: u32,
    in_flight: HashSet<Slot>,
    sequence: u64,
    /// Latest time that the engine has told.
    latest: Tick,
}

impl Account {
    /// Creates the account of an engine of `depth` slots; `title` names it in messages.
    #[must_use]
    pub fn new(title: String, depth: u32) -> Self {
        Self {
            title,
            depth,
            in_flight: HashSet::new(),
            sequence: 0,
            latest: Tick::ZERO,
        }
    }

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
    pub(crate) fn submit(&mut self, issue: Tick, now: Tick) {
        assert!(
            self.latest <= issue && issue <= now,
            "{}: {issue:?} {now:?}",
            self.title
        );
        self.latest = now;
    }

    /// Checks and notes a completion.
    #[track_caller]
    pub(crate) fn reap(&mut self, completion: &Completion) {
        let known = self.in_flight.remove(&completion.slot);
        assert!(known, "{}: {completion:?} was not in flight", self.title);
    }

    /// Returns the number of ops in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }
}

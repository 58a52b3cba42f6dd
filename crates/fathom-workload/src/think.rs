//! Think time: pauses between ops.

use fathom_core::{Nanos, Tick};

use crate::config::Think;

/// State of think time: the next pause and its length.
#[derive(Debug)]
pub(crate) struct Thinking {
    rules: Think,
    /// Ops since the last pause was requested: ops that complete while the queue drains for it
    /// count towards the next one, as in fio.
    blocks: u32,
    /// Issue time of the first op since then.
    io_began: Option<Tick>,
    pause: Option<Pause>,
}

/// Pause: first spinning, then sleeping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pause {
    /// Start.
    pub(crate) began: Tick,
    /// End of spinning.
    pub(crate) spin_until: Tick,
    /// End of sleeping.
    pub(crate) until: Tick,
}

impl Thinking {
    /// Creates the state of a job that has not begun.
    pub(crate) const fn new(rules: Think) -> Self {
        Self {
            blocks: 0,
            rules,
            io_began: None,
            pause: None,
        }
    }

    /// Counts an op issued at `now`.
    pub(crate) fn issued(&mut self, now: Tick) {
        self.io_began.get_or_insert(now);
        if self.rules.count_issues {
            self.blocks = self.blocks.saturating_add(1);
        }
    }

    /// Counts a completed op.
    pub(crate) fn completed(&mut self) {
        if !self.rules.count_issues {
            self.blocks = self.blocks.saturating_add(1);
        }
    }

    /// Returns whether a pause is due. At least one op is issued between two pauses.
    pub(crate) fn is_due(&self, now: Tick) -> bool {
        let rules = &self.rules;
        self.io_began.is_some_and(|began| {
            let by_time = !rules.io_time.is_zero() && now - began >= rules.io_time;
            by_time || self.blocks >= rules.blocks
        })
    }

    /// Requests the due pause, which begins when nothing is in flight.
    pub(crate) const fn call(&mut self) {
        self.io_began = None;
        self.blocks = 0;
    }

    /// Returns the current pause, which begins with the first call and lasts until `resume`.
    pub(crate) fn pause(&mut self, now: Tick) -> Pause {
        let rules = self.rules;
        *self.pause.get_or_insert(Pause {
            began: now,
            spin_until: now + rules.spin.min(rules.time),
            until: now + rules.time.max(Nanos::ZERO),
        })
    }

    /// Returns whether a pause delays due times.
    pub(crate) const fn moves_schedule(&self) -> bool {
        self.rules.moves_schedule
    }

    /// Ends the pause.
    pub(crate) fn resume(&mut self) {
        self.pause = None;
    }
}

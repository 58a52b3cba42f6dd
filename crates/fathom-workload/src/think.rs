//! Think time: pauses between ops.

use fathom_core::{Nanos, Tick};

use crate::config::Think;

/// When the next pause comes, and how long it lasts.
#[derive(Debug)]
pub(crate) struct Thinking {
    rules: Think,
    /// Ops since a pause was last called for: those that complete while the queue is drained for
    /// it count towards the next one, as in fio.
    blocks: u32,
    /// When the first op since then was issued.
    io_began: Option<Tick>,
    pause: Option<Pause>,
}

/// A pause: first the processor burns, then it sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pause {
    /// When it began.
    pub(crate) began: Tick,
    /// Burn until here.
    pub(crate) spin_until: Tick,
    /// Sleep until here.
    pub(crate) until: Tick,
}

impl Thinking {
    /// Rules for a job that has not begun.
    pub(crate) const fn new(rules: Think) -> Self {
        Self {
            blocks: 0,
            rules,
            io_began: None,
            pause: None,
        }
    }

    /// An op was issued at `now`.
    pub(crate) fn issued(&mut self, now: Tick) {
        self.io_began.get_or_insert(now);
        if self.rules.count_issues {
            self.blocks = self.blocks.saturating_add(1);
        }
    }

    /// An op has completed.
    pub(crate) fn completed(&mut self) {
        if !self.rules.count_issues {
            self.blocks = self.blocks.saturating_add(1);
        }
    }

    /// Whether a pause is due. Between two of them at least one op is issued.
    pub(crate) fn is_due(&self, now: Tick) -> bool {
        let rules = &self.rules;
        self.io_began.is_some_and(|began| {
            let by_time = !rules.io_time.is_zero() && now - began >= rules.io_time;
            by_time || self.blocks >= rules.blocks
        })
    }

    /// The pause that is due begins as soon as nothing is in flight any more.
    pub(crate) const fn call(&mut self) {
        self.io_began = None;
        self.blocks = 0;
    }

    /// The pause that began when nothing was in flight any more; the same one until it is over.
    pub(crate) fn pause(&mut self, now: Tick) -> Pause {
        let rules = self.rules;
        *self.pause.get_or_insert(Pause {
            began: now,
            spin_until: now + rules.spin.min(rules.time),
            until: now + rules.time.max(Nanos::ZERO),
        })
    }

    /// Whether due times move on by a pause.
    pub(crate) const fn moves_schedule(&self) -> bool {
        self.rules.moves_schedule
    }

    /// The pause is over.
    pub(crate) fn resume(&mut self) {
        self.pause = None;
    }
}

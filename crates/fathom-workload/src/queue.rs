//! The ops of a worker that are prepared, in flight or to be retried.

use fathom_core::{Completion, Queueing, Slot};

use crate::config::Batching;
use crate::pattern::OpTarget;
use crate::slots::Slots;

/// Slots of a worker and the state of its submission queue.
///
/// A slot is free, prepared, in flight, or waiting to be retried. All memory is reserved in
/// [`Queue::new`].
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) slots: Slots,
    /// Prepared and not yet submitted.
    pub(crate) prepared: Vec<Slot>,
    /// Remainders of short transfers are among the prepared ops.
    pub(crate) remainders_prepared: bool,
    /// Remainders of short transfers, to be issued again in their own slots.
    pub(crate) retry: Vec<Slot>,
    /// Completions of the last `reap`; as long as the largest batch of them.
    pub(crate) done: Box<[Completion]>,
    /// Submitted and not reaped.
    pub(crate) in_flight: u32,
    /// Ops per submission, at most.
    pub(crate) batch: usize,
    /// Completions are reaped before each submission, not only when no slot is free.
    pub(crate) reaps_early: bool,
    /// The queue was full, and nothing is issued until it has fallen to `iodepth_low`.
    pub(crate) draining_to_low: bool,
    /// Rule of the op issued last, which also holds for the next one.
    pub(crate) last: Queueing,
}

impl Queue {
    /// Creates an empty queue of `depth` slots whose idle state is an op on `common`; `verifies`:
    /// the data of its ops are checked.
    pub(crate) fn new(depth: u32, batching: &Batching, verifies: bool, common: &OpTarget) -> Self {
        let reap = batching.complete_max.clamp(1, depth) as usize;
        Self {
            slots: Slots::new(depth, common),
            prepared: Vec::with_capacity(depth as usize),
            remainders_prepared: false,
            retry: Vec::with_capacity(depth as usize),
            done: vec![Completion::default(); reap].into_boxed_slice(),
            in_flight: 0,
            batch: batching.submit.clamp(1, depth) as usize,
            // Data that have just been read are still in the processor's cache.
            reaps_early: batching.complete_min == 0 || (verifies && batching.complete_min == 1),
            draining_to_low: false,
            last: Queueing::Queued,
        }
    }

    /// Returns whether an op under this rule may be prepared, or one that follows it.
    pub(crate) const fn admits(&self, queueing: Queueing) -> bool {
        match queueing {
            Queueing::Queued => true,
            Queueing::Inline => self.prepared.is_empty(),
            Queueing::Alone => self.is_drained(),
        }
    }

    /// Returns whether the engine has nothing to do.
    pub(crate) const fn is_drained(&self) -> bool {
        self.in_flight == 0 && self.prepared.is_empty()
    }

    /// Returns the number of ops submitted or about to be.
    pub(crate) fn occupied(&self) -> u32 {
        let prepared = u32::try_from(self.prepared.len()).unwrap_or(u32::MAX);
        self.in_flight.saturating_add(prepared)
    }
}

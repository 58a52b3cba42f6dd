//! The interface of the two fast paths to the ops they move.
//!
//! [`batch`](crate::batch) and [`replenish`](crate::replenish) are written once, over an
//! [`OpSource`] (the ops drawn ahead) and a [`Tally`] (the recorder). Both come in two forms:
//!
//! | form | jobs | work per op |
//! |---|---|---|
//! | uniform | ops differ in the offset alone | offset and times; the slot holds the rest |
//! | mixed | all others without rules per op | the whole op |
//!
//! The compiler makes a loop per form and engine. Unusual completions (short, failed, longer than a
//! column can hold) are left to the checked path in `complete`.

use fathom_core::{Completion, Engine, Op, Slot, Tick};

use crate::pattern::OpTarget;
use crate::recorder::Recorder;
use crate::slots::SlotState;

/// Ops drawn ahead, in issue order.
pub(crate) trait OpSource {
    /// Returns the number of ops.
    fn len(&self) -> usize;

    /// Returns when op `index` is due; `now` if no schedule says otherwise.
    fn due(&self, index: usize, now: Tick) -> Tick;

    /// Writes op `index` into a slot, with its due and start time, and returns it.
    fn place(
        &self,
        index: usize,
        slot: Slot,
        state: &mut SlotState,
        times: (Tick, Tick),
        sequence: u64,
    ) -> Op;

    /// Prepares the first ops, one in each of `slots`; all start at `now`.
    fn place_many<E: Engine>(
        &self,
        engine: &mut E,
        slots: &[Slot],
        states: &mut [SlotState],
        now: Tick,
        sequence: u64,
    );
}

/// Recorder of usual completions.
pub(crate) trait Tally {
    /// Records completion number `index` of this tally. Returns false, with nothing recorded, if
    /// it needs the checked path.
    fn record(
        &mut self,
        index: usize,
        state: &SlotState,
        completion: Completion,
        now: Tick,
    ) -> bool;

    /// Makes the first `count` completions count; the tally ends.
    fn commit(self, count: usize);
}

/// Drawn-ahead ops of any kind.
pub(crate) struct MixedOps<'a> {
    pub(crate) targets: &'a [OpTarget],
    /// Due times of `targets`; empty without a schedule.
    pub(crate) dues: &'a [Tick],
}

impl OpSource for MixedOps<'_> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.targets.len()
    }

    #[inline(always)]
    fn due(&self, index: usize, now: Tick) -> Tick {
        self.dues.get(index).copied().unwrap_or(now)
    }

    #[inline(always)]
    fn place(
        &self,
        index: usize,
        _slot: Slot,
        state: &mut SlotState,
        times: (Tick, Tick),
        sequence: u64,
    ) -> Op {
        state.start_op(&self.targets[index], times.0, times.1, sequence);
        state.op
    }

    #[inline]
    fn place_many<E: Engine>(
        &self,
        engine: &mut E,
        slots: &[Slot],
        states: &mut [SlotState],
        now: Tick,
        sequence: u64,
    ) {
        for (index, (&slot, sequence)) in slots.iter().zip(sequence..).enumerate() {
            let times = (self.due(index, now), now);
            let op = self.place(index, slot, &mut states[slot.index()], times, sequence);
            engine.prepare(&op);
        }
    }
}

/// Tally of completions of any kind.
pub(crate) struct MixedTally<'a>(pub(crate) &'a mut Recorder);

impl Tally for MixedTally<'_> {
    #[inline(always)]
    fn record(
        &mut self,
        _index: usize,
        state: &SlotState,
        completion: Completion,
        now: Tick,
    ) -> bool {
        let Some(direction) = state.moved_all(completion) else {
            return false;
        };
        self.0.completed(direction, state, now);
        true
    }

    #[inline(always)]
    fn commit(self, _count: usize) {}
}

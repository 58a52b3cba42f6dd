//! Ops that differ only in offset: one file, one direction, one size.
//!
//! Their common part is written into every slot once, before the first op. An op then costs its
//! offset and its times, and has succeeded if its result is the common length. Latencies go
//! straight into the recorder's columns. `RATED` and `LOGGED` select loops compiled for jobs with
//! a rate and for jobs whose ops are logged, so that the others do not test for either.
//!
//! Not usable while ops issued during the ramp are in flight: those take the checked path.

use fathom_core::{Completion, Direction, Engine, Op, Slot, Tick};

use crate::fast_path::{OpSource, Tally};
use crate::log::JobLog;
use crate::pattern::Pattern;
use crate::pending::PendingRoom;
use crate::slots::{SlotState, op_on};

/// Common part of all ops of a job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UniformOp {
    pub(crate) direction: Direction,
    pub(crate) length: u32,
    /// Result of a successful op: its length.
    expected: i32,
    /// Op without slot, offset and sequence number.
    op: Op,
}

impl UniformOp {
    /// Returns the common part of a pattern's ops; `None` if they differ in more than the offset,
    /// or are trims, which not every engine queues.
    pub(crate) fn of(pattern: &Pattern) -> Option<Self> {
        let target = pattern.common()?;
        let queued = target.direction != Direction::Trim;
        let expected = i32::try_from(target.length).ok()?;
        queued.then_some(Self {
            direction: target.direction,
            length: target.length,
            expected,
            op: op_on(&target),
        })
    }
}

/// Drawn-ahead ops of a uniform job: their offsets and, if `RATED`, their due times.
pub(crate) struct UniformOps<'a, const RATED: bool> {
    pub(crate) common: &'a UniformOp,
    pub(crate) offsets: &'a [u64],
    /// Due times of `offsets` if `RATED`, otherwise empty.
    pub(crate) dues: &'a [Tick],
}

impl<const RATED: bool> OpSource for UniformOps<'_, RATED> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.offsets.len()
    }

    #[inline(always)]
    fn due(&self, index: usize, now: Tick) -> Tick {
        if RATED { self.dues[index] } else { now }
    }

    #[inline(always)]
    fn place(
        &self,
        index: usize,
        slot: Slot,
        state: &mut SlotState,
        times: (Tick, Tick),
        sequence: u64,
    ) -> Op {
        let offset = self.offsets[index];
        state.start_uniform(offset, times.0, times.1);
        Op {
            slot,
            offset,
            sequence,
            ..self.common.op
        }
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
        for (index, (&slot, &offset)) in slots.iter().zip(self.offsets).enumerate() {
            states[slot.index()].start_uniform(offset, self.due(index, now), now);
        }
        let mut offsets = self.offsets.iter();
        let op = Op {
            sequence,
            ..self.common.op
        };
        engine.prepare_many(&op, slots, || offsets.next().copied().unwrap_or(0));
    }
}

/// Tally of a uniform job: latencies go into columns, one entry per op.
pub(crate) struct UniformTally<'a, const RATED: bool, const LOGGED: bool> {
    pub(crate) common: &'a UniformOp,
    pub(crate) room: PendingRoom<'a>,
    /// Log of the job if `LOGGED`.
    pub(crate) log: Option<&'a mut JobLog>,
}

impl<const RATED: bool, const LOGGED: bool> Tally for UniformTally<'_, RATED, LOGGED> {
    #[inline(always)]
    fn record(
        &mut self,
        index: usize,
        state: &SlotState,
        completion: Completion,
        now: Tick,
    ) -> bool {
        if completion.result != self.common.expected || !self.room.put::<RATED>(index, state, now) {
            return false;
        }
        if LOGGED && let Some(log) = &mut self.log {
            log.completed(self.common.direction, state, now);
        }
        true
    }

    #[inline(always)]
    fn commit(self, count: usize) {
        self.room.take(count, self.common.length);
    }
}

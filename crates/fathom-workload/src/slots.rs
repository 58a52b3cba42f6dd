//! Fixed table of a worker's slots.
//!
//! ```text
//! free:  [ 7 5 3 ]            a stack: the slot used last is the warmest
//! state: [ 0 1 2 3 4 5 6 7 ]  one cache line a slot: four times and the op
//! ```

use fathom_core::{Completion, Direction, Op, OpKind, Slot, Tick};

use crate::pattern::OpTarget;

/// State of one slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotState {
    /// Due time; the start if there is no schedule.
    pub(crate) due: Tick,
    /// Start time.
    pub(crate) start: Tick,
    /// Issue time.
    pub(crate) issue: Tick,
    /// Op, with length and offset advanced past the bytes already moved.
    pub(crate) op: Op,
}

impl SlotState {
    /// Creates an idle slot that holds `op`.
    const fn idle(op: Op) -> Self {
        Self {
            due: Tick::ZERO,
            start: Tick::ZERO,
            issue: Tick::ZERO,
            op,
        }
    }

    /// Moves a start that was foreseen to an issue time before it, see
    /// [`Timers::after_submission`](crate::timers::Timers::after_submission).
    #[cold]
    pub(crate) fn start_by(&mut self, issue: Tick) {
        self.start = self.start.min(issue);
        self.due = self.due.min(issue);
    }

    /// Starts the slot's next op at `now`.
    #[inline(always)]
    pub(crate) const fn start_op(
        &mut self,
        target: &OpTarget,
        due: Tick,
        now: Tick,
        sequence: u64,
    ) {
        self.due = due;
        self.start = now;
        self.op = Op {
            slot: self.op.slot,
            priority: self.op.priority,
            sequence,
            ..op_on(target)
        };
    }

    /// Starts an op that differs from the slot's last one only in offset.
    #[inline(always)]
    pub(crate) const fn start_uniform(&mut self, offset: u64, due: Tick, now: Tick) {
        self.due = due;
        self.start = now;
        self.op.offset = offset;
    }

    /// Returns the direction of an op that moved all its bytes.
    #[inline(always)]
    pub(crate) fn moved_all(&self, completion: Completion) -> Option<Direction> {
        match self.op.kind {
            OpKind::Data(direction)
                if i64::from(completion.result) == i64::from(self.op.length) =>
            {
                Some(direction)
            }
            _ => None,
        }
    }

    /// Returns the file offset of the whole op, all its pieces included.
    #[inline]
    pub(crate) const fn start_offset(&self) -> u64 {
        self.op.offset - self.op.buffer_offset as u64
    }

    /// Returns the bytes of the whole op, all its pieces included.
    #[inline]
    pub(crate) const fn total_length(&self) -> u32 {
        // Cannot overflow: the sum is the length with which the op was issued.
        self.op.length + self.op.buffer_offset
    }
}

/// Returns an op on `target` without a slot.
#[inline(always)]
pub(crate) const fn op_on(target: &OpTarget) -> Op {
    Op {
        slot: Slot::new(0),
        kind: OpKind::Data(target.direction),
        priority: 0,
        file: target.file,
        length: target.length,
        buffer_offset: 0,
        offset: target.offset,
        sequence: 0,
    }
}

/// All slots of a worker.
#[derive(Debug)]
pub(crate) struct Slots {
    states: Box<[SlotState]>,
    /// Initial state of a slot.
    idle: Op,
    /// Stack of free slots, with space for all.
    free: Box<[Slot]>,
    /// Number of slots on the stack.
    count_free: usize,
}

impl Slots {
    /// Creates a table of `depth` free slots that hold an op on `target`.
    pub(crate) fn new(depth: u32, target: &OpTarget) -> Self {
        let idle = op_on(target);
        let states = (0..depth)
            .map(|number| {
                let slot = Slot::new(number);
                SlotState::idle(Op { slot, ..idle })
            })
            .collect();
        Self {
            states,
            idle,
            free: (0..depth).rev().map(Slot::new).collect(),
            count_free: depth as usize,
        }
    }

    /// Takes up to `count` free slots; returns them and the states of all slots.
    #[inline]
    pub(crate) fn take_some(&mut self, count: usize) -> (&[Slot], &mut [SlotState]) {
        let left = self.count_free.saturating_sub(count);
        let taken = self.free.get(left..self.count_free).unwrap_or_default();
        self.count_free = left;
        (taken, &mut self.states)
    }

    /// Takes a free slot.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Slot> {
        let slot = self.peek()?;
        self.count_free -= 1;
        Some(slot)
    }

    /// Returns the slot that `take` would return.
    #[inline]
    pub(crate) fn peek(&self) -> Option<Slot> {
        let top = self.count_free.checked_sub(1)?;
        self.free.get(top).copied()
    }

    /// Returns the number of slots.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.states.len()).unwrap_or(u32::MAX)
    }

    /// Returns whether an op would overlap one in flight, and either of them changes data.
    pub(crate) fn overlaps(&self, target: &OpTarget) -> bool {
        let end = target.offset + u64::from(target.length);
        let changes = |direction| direction != Direction::Read;
        let meets = |state: &&SlotState| {
            let OpKind::Data(direction) = state.op.kind else {
                return false;
            };
            state.op.file == target.file
                && state.op.offset < end
                && target.offset < state.op.offset + u64::from(state.op.length)
                && (changes(direction) || changes(target.direction))
        };
        // A free slot still holds its last op.
        let mut meeting = self.states.iter().filter(meets);
        meeting.any(|state| !self.free[..self.count_free].contains(&state.op.slot))
    }

    /// Frees a slot.
    #[inline]
    pub(crate) fn put(&mut self, slot: Slot) {
        // Panics if a slot is freed twice.
        self.free[self.count_free] = slot;
        self.count_free += 1;
    }

    /// Frees the slots of these completions.
    #[inline]
    pub(crate) fn put_all(&mut self, done: &[Completion]) {
        // Panics if a slot is freed twice.
        let places = &mut self.free[self.count_free..][..done.len()];
        for (place, completion) in places.iter_mut().zip(done) {
            *place = completion.slot;
        }
        self.count_free += done.len();
    }

    /// Frees a slot and resets it, as its op differed from the common one or was modified.
    pub(crate) fn put_reset(&mut self, slot: Slot) {
        let op = self.idle;
        self.state(slot).op = Op { slot, ..op };
        self.put(slot);
    }

    /// Returns the number of free slots.
    #[inline]
    pub(crate) const fn free(&self) -> usize {
        self.count_free
    }

    /// Returns the states of all slots, by number.
    #[inline]
    pub(crate) fn states(&mut self) -> &mut [SlotState] {
        &mut self.states
    }

    /// Returns the state of `slot`.
    #[inline]
    pub(crate) fn state(&mut self, slot: Slot) -> &mut SlotState {
        &mut self.states[slot.index()]
    }
}

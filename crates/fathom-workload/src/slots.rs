//! The worker's fixed table of places for ops in flight.
//!
//! ```text
//! free:  [ 7 5 3 ]            a stack: the slot used last is the warmest
//! state: [ 0 1 2 3 4 5 6 7 ]  one cache line a slot: four times and the op
//! ```

use fathom_core::{Completion, Direction, Op, OpKind, Slot, Tick};

use crate::pattern::Target;

/// What a worker knows of one slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotState {
    /// When the schedule wanted it; the start where there is no schedule.
    pub(crate) due: Tick,
    /// When the workload let it go.
    pub(crate) start: Tick,
    /// When it was with the kernel.
    pub(crate) issue: Tick,
    /// The op, its length and offset advanced over what was already moved.
    pub(crate) op: Op,
}

impl SlotState {
    /// A slot that `op` will stand in.
    const fn idle(op: Op) -> Self {
        Self {
            due: Tick::ZERO,
            start: Tick::ZERO,
            issue: Tick::ZERO,
            op,
        }
    }

    /// The slot's next op, which starts at `now`.
    #[inline(always)]
    pub(crate) const fn start_op(&mut self, target: &Target, due: Tick, now: Tick, sequence: u64) {
        self.due = due;
        self.start = now;
        self.op = Op {
            slot: self.op.slot,
            priority: self.op.priority,
            sequence,
            ..op_on(target)
        };
    }

    /// The slot's next op, which differs from what stands there in nothing but the offset.
    #[inline(always)]
    pub(crate) const fn start_uniform(&mut self, offset: u64, due: Tick, now: Tick) {
        self.due = due;
        self.start = now;
        self.op.offset = offset;
    }

    /// The direction of an op that went as almost all do: it moved all its bytes.
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

    /// Bytes of the whole op, however many pieces it took.
    #[inline]
    pub(crate) const fn total_length(&self) -> u32 {
        // Cannot overflow: the two add up to the length the op was issued with.
        self.op.length + self.op.buffer_offset
    }
}

/// An op on `target`, of no slot yet.
#[inline(always)]
pub(crate) const fn op_on(target: &Target) -> Op {
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
    /// What stands in a slot before its first op.
    idle: Op,
    /// A stack; as many places as there are slots.
    free: Box<[Slot]>,
    /// So many of its places are used.
    count_free: usize,
}

impl Slots {
    /// A table of `depth` free slots, in which an op on `target` stands.
    pub(crate) fn new(depth: u32, target: &Target) -> Self {
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

    /// Takes `count` free slots, or as many as there are; says which, and has all states.
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

    /// The slot that `take` would give.
    #[inline]
    pub(crate) fn peek(&self) -> Option<Slot> {
        let top = self.count_free.checked_sub(1)?;
        self.free.get(top).copied()
    }

    /// All slots, free or not.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.states.len()).unwrap_or(u32::MAX)
    }

    /// Whether an op would overlap one in flight, and either of them changes data.
    pub(crate) fn overlaps(&self, target: &Target) -> bool {
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
        // A slot that is free still holds its last op.
        let mut meeting = self.states.iter().filter(meets);
        meeting.any(|state| !self.free[..self.count_free].contains(&state.op.slot))
    }

    /// Gives a slot back.
    #[inline]
    pub(crate) fn put(&mut self, slot: Slot) {
        // Panics where a slot came back twice.
        self.free[self.count_free] = slot;
        self.count_free += 1;
    }

    /// Gives the slots of these back.
    #[inline]
    pub(crate) fn put_all(&mut self, done: &[Completion]) {
        // Panics where one came back twice.
        let places = &mut self.free[self.count_free..][..done.len()];
        for (place, completion) in places.iter_mut().zip(done) {
            *place = completion.slot;
        }
        self.count_free += done.len();
    }

    /// Gives a slot back whose op was not as all are, or has changed on its way.
    pub(crate) fn put_anew(&mut self, slot: Slot) {
        let op = self.idle;
        self.state(slot).op = Op { slot, ..op };
        self.put(slot);
    }

    /// Free slots.
    #[inline]
    pub(crate) const fn free(&self) -> usize {
        self.count_free
    }

    /// What is known of all slots, by their numbers.
    #[inline]
    pub(crate) fn states(&mut self) -> &mut [SlotState] {
        &mut self.states
    }

    /// What is known of `slot`.
    #[inline]
    pub(crate) fn state(&mut self, slot: Slot) -> &mut SlotState {
        &mut self.states[slot.index()]
    }
}

//! The worker's fixed table of places for ops in flight.
//!
//! ```text
//! free:  [ 7 5 3 ]            a stack: the slot used last is the warmest
//! state: [ 0 1 2 3 4 5 6 7 ]  one cache line a slot: four times and the op
//! ```

use fathom_core::{Completion, Direction, FileIndex, Op, OpKind, Slot, Tick};

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
    const IDLE: Self = Self {
        due: Tick::ZERO,
        start: Tick::ZERO,
        issue: Tick::ZERO,
        op: Op {
            slot: Slot::new(0),
            kind: OpKind::Data(Direction::Read),
            priority: 0,
            file: FileIndex::new(0),
            length: 0,
            buffer_offset: 0,
            offset: 0,
            sequence: 0,
        },
    };

    /// The slot's next op, which starts at `now`.
    #[inline(always)]
    pub(crate) const fn start_op(&mut self, target: &Target, due: Tick, now: Tick, sequence: u64) {
        self.due = due;
        self.start = now;
        self.op = Op {
            slot: self.op.slot,
            kind: OpKind::Data(target.direction),
            priority: self.op.priority,
            file: target.file,
            length: target.length,
            buffer_offset: 0,
            offset: target.offset,
            sequence,
        };
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

/// All slots of a worker.
#[derive(Debug)]
pub(crate) struct Slots {
    states: Box<[SlotState]>,
    /// A stack; as many places as there are slots.
    free: Box<[Slot]>,
    /// So many of its places are used.
    count_free: usize,
}

impl Slots {
    /// A table of `depth` free slots.
    pub(crate) fn new(depth: u32) -> Self {
        let states = (0..depth)
            .map(|number| {
                let mut state = SlotState::IDLE;
                state.op.slot = Slot::new(number);
                state
            })
            .collect();
        Self {
            states,
            free: (0..depth).rev().map(Slot::new).collect(),
            count_free: depth as usize,
        }
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

    /// Free slots.
    #[inline]
    pub(crate) const fn free(&self) -> usize {
        self.count_free
    }

    /// What is known of `slot`.
    #[inline]
    pub(crate) fn state(&mut self, slot: Slot) -> &mut SlotState {
        &mut self.states[slot.index()]
    }
}

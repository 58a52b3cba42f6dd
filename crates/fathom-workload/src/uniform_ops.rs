//! The loops of jobs whose ops differ in nothing but the offset: one file, one direction, one size.
//!
//! What such ops have in common stands in every slot from the start, so that one is laid down by
//! its offset and its times, and has gone well if its result is the common length. The loops mean
//! the same as those of `exchange`, `issue` and `complete`, and give way to them whenever an op is
//! not what it usually is.
//!
//! They are not for the time when ops are in flight from a ramp. `RATED` and `LOGGED` are loops of
//! their own for jobs that have a rate and for those whose ops are logged.

use fathom_core::{Completion, Direction, Engine, Op, Submitted, Tick};

use crate::issue::IssueStatus;
use crate::lookahead::LOOKAHEAD_OPS;
use crate::pattern::Pattern;
use crate::replenish::End;
use crate::slots::op_on;
use crate::worker::Worker;

/// What all ops of a job have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UniformOp {
    pub(crate) direction: Direction,
    pub(crate) length: u32,
    /// What a good op's result is: its length.
    expected: i32,
    /// All but slot, offset and number.
    op: Op,
}

impl UniformOp {
    /// `None` where ops differ in more than the offset, or are not reads or writes.
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

impl Worker {
    /// See `exchange_some`.
    #[inline(never)]
    pub(crate) fn exchange_alike<E: Engine, const RATED: bool, const LOGGED: bool>(
        &mut self,
        alike: &UniformOp,
        engine: &mut E,
        now: &mut Tick,
        until: Tick,
    ) -> (usize, End) {
        let want = self.wanted_of_full_queue();
        let (offsets, dues) = (self.drawn.offsets(), self.drawn.dues().unwrap_or_default());
        let (pending, mut log) = self.recorder.pending_and_log(alike.direction);
        let mut room = pending.room();
        let states = self.slots.states();
        let &UniformOp { expected, op, .. } = alike;
        let mut start = *now;
        let mut end = End::Round;
        let mut done = 0;
        for &offset in offsets {
            let mut one = [Completion::default()];
            if engine.reap(&mut one) == 0 {
                end = End::Empty;
                break;
            }
            let [Completion { slot, result }] = one;
            let state = &mut states[slot.index()];
            if result != expected || !room.put::<RATED>(done, state, start) {
                end = End::Odd(Completion { slot, result });
                break;
            }
            if LOGGED && let Some(log) = &mut log {
                log.completed(alike.direction, state, start);
            }
            let mut due = start;
            if RATED {
                due = dues[done];
                if due > start {
                    end = End::Early(slot);
                    break;
                }
            }
            state.start_alike(offset, due, start);
            engine.prepare(&Op {
                slot,
                offset,
                sequence: self.sequence + done as u64,
                ..op
            });
            let Submitted::Issued { issue, now: after } = engine.submit(want) else {
                end = End::Blocked(slot);
                break;
            };
            state.issue = issue;
            start = after;
            done += 1;
            if after >= until {
                break;
            }
        }
        let counted = done + usize::from(matches!(end, End::Early(_) | End::Blocked(_)));
        pending.took(counted, alike.length);
        *now = start;
        (done, end)
    }

    /// Lays down what was drawn ahead and is due, `most` ops at most.
    #[inline]
    pub(crate) fn lay_down_alike<E: Engine>(
        &mut self,
        alike: &UniformOp,
        engine: &mut E,
        now: Tick,
        most: usize,
    ) -> IssueStatus {
        let mut gate = self.gate_of_drawn();
        let mut offsets = self.drawn.offsets();
        offsets = &offsets[..offsets.len().min(most)];
        let dues = self.drawn.dues();
        if let Some(dues) = dues {
            let dues = &dues[..offsets.len()];
            if let Some(early) = dues.iter().position(|&due| due > now) {
                gate = IssueStatus::Due(dues[early]);
                offsets = &offsets[..early];
            }
        }
        let (slots, states) = self.slots.take_some(offsets.len());
        for (index, (&slot, &offset)) in slots.iter().zip(offsets).enumerate() {
            let due = dues.map_or(now, |dues| dues[index]);
            states[slot.index()].start_alike(offset, due, now);
        }
        let mut next = offsets.iter();
        let op = Op {
            sequence: self.sequence,
            ..alike.op
        };
        engine.prepare_many(&op, slots, || next.next().copied().unwrap_or(0));
        self.prepared.extend_from_slice(slots);
        let count = offsets.len();
        self.sequence += count as u64;
        self.drawn.advance(count);
        gate
    }

    /// The first `taken` of `done` were reaped.
    #[inline]
    pub(crate) fn taken_alike<E: Engine>(
        &mut self,
        alike: &UniformOp,
        engine: &mut E,
        taken: usize,
        now: Tick,
    ) {
        let mut next = 0;
        while next < taken {
            let upto = taken.min(next + LOOKAHEAD_OPS);
            let logged = self.recorder.log.is_some();
            next = match (self.recorder.is_rated(alike.direction), logged) {
                (false, false) => self.add_alike::<false, false>(alike, next, upto, now),
                (true, false) => self.add_alike::<true, false>(alike, next, upto, now),
                (false, true) => self.add_alike::<false, true>(alike, next, upto, now),
                (true, true) => self.add_alike::<true, true>(alike, next, upto, now),
            };
            if next < upto {
                self.complete(engine, self.done[next], now);
                next += 1;
            }
        }
    }

    /// Counts those of `done` that went as usual, from one up to another, and gives their slots
    /// back; ends at the first that needs care, and says which that is.
    #[inline]
    fn add_alike<const RATED: bool, const LOGGED: bool>(
        &mut self,
        alike: &UniformOp,
        from: usize,
        upto: usize,
        now: Tick,
    ) -> usize {
        let done = &self.done[from..upto];
        let (pending, mut log) = self.recorder.pending_and_log(alike.direction);
        let mut room = pending.room();
        let states = self.slots.states();
        let mut good = 0;
        for &Completion { slot, result } in done {
            let state = &states[slot.index()];
            if result != alike.expected || !room.put::<RATED>(good, state, now) {
                break;
            }
            if LOGGED && let Some(log) = &mut log {
                log.completed(alike.direction, state, now);
            }
            good += 1;
        }
        pending.took(good, alike.length);
        self.slots.put_all(&done[..good]);
        from + good
    }
}

//! The replenish path: one completion out, one op in.
//!
//! With the queue full and completions reaped one at a time (fio's defaults), each completion makes
//! room for exactly one op, in the slot that has just become free. The number in flight and the
//! stage stay the same, so the free list is left alone and what every round would count is counted
//! once for all of them. Equivalent to `reap` and `issue_batch` in turn.

use std::hint::select_unpredictable;

use fathom_core::{Completion, Engine, Nanos, Slot, Step, Submitted, Tick};

use crate::fast_path::{MixedTally, OpSource, Tally};
use crate::slots::SlotState;
use crate::timers::Timers;
use crate::uniform_ops::UniformOp;
use crate::worker::Worker;

/// Reason for the end of a loop.
enum End {
    /// All ops drawn ahead are issued, or a rule is due.
    Round,
    /// Nothing has completed.
    Empty,
    /// This completion needs the checked path.
    Unusual(Completion),
    /// The next op is not due yet; this slot is free.
    NotDue(Slot),
    /// The engine blocked with the op prepared in this slot.
    Blocked(Slot),
}

/// Bounds and origin of a loop.
struct Round {
    /// Start of the first op.
    start: Tick,
    /// Time at which a rule is due.
    until: Tick,
    /// Completions to wait for in `submit`.
    want: u32,
    /// Sequence number of the first op.
    sequence: u64,
    /// Time of a clock read.
    clock_read: Nanos,
}

/// Result of a loop.
struct Replenished {
    /// Ops issued, each for a completion.
    count: usize,
    end: End,
    /// The clock after the last submission.
    now: Tick,
}

impl Worker {
    /// Replaces completions by ops until the time `until`; the queue must be full.
    #[inline]
    pub(crate) fn replenish<E: Engine>(
        &mut self,
        engine: &mut E,
        now: &mut Tick,
        until: Tick,
    ) -> Option<Step> {
        if self.source.lookahead.is_empty() {
            self.source.draw_ahead();
        }
        if self.source.lookahead.is_empty() {
            return self.make_room(engine, now);
        }
        let round = Round {
            start: *now,
            until: until.min(self.timers.next_rule),
            want: self.wanted_of_full_queue(),
            sequence: self.source.sequence,
            clock_read: self.timers.clock_read,
        };
        let rated = !self.source.lookahead.dues().is_empty();
        let done = match self.source.lookahead.uniform {
            Some(_) if self.recorder.has_ramp_ops() => return self.make_room(engine, now),
            Some(common) => match (rated, self.recorder.log.is_some()) {
                (false, false) => {
                    self.replenish_uniform::<E, false, false>(&common, engine, &round)
                }
                (true, false) => self.replenish_uniform::<E, true, false>(&common, engine, &round),
                (false, true) => self.replenish_uniform::<E, false, true>(&common, engine, &round),
                (true, true) => self.replenish_uniform::<E, true, true>(&common, engine, &round),
            },
            None => self.replenish_mixed(engine, &round),
        };
        *now = done.now;
        self.source.advance(done.count);
        self.recorder
            .replenished(self.queue.in_flight, done.count as u64);
        self.after_replenish(engine, done.end, *now)
    }

    /// Settles the completion or the op with which a loop ended.
    #[inline]
    fn after_replenish<E: Engine>(&mut self, engine: &mut E, end: End, now: Tick) -> Option<Step> {
        match end {
            End::Round => None,
            End::Empty => Some(self.wait_for_room()),
            End::Unusual(completion) => {
                self.complete(engine, completion, now);
                self.note_reaped(1);
                None
            }
            End::NotDue(slot) => {
                self.queue.slots.put(slot);
                self.note_reaped(1);
                None
            }
            End::Blocked(slot) => {
                self.note_reaped(1);
                self.source.advance(1);
                self.queue.prepared.push(slot);
                Some(Step::Blocked)
            }
        }
    }

    /// Completions to wait for in the call that fills the queue. That would put the wait into slat,
    /// so only where slat is not kept.
    #[inline]
    pub(crate) fn wanted_of_full_queue(&self) -> u32 {
        if self.recorder.keeps_slat() {
            0
        } else {
            self.config.batching.complete_min
        }
    }

    // Neither is inlined: a separate function has all registers to itself.
    #[inline(never)]
    fn replenish_uniform<E: Engine, const RATED: bool, const LOGGED: bool>(
        &mut self,
        common: &UniformOp,
        engine: &mut E,
        round: &Round,
    ) -> Replenished {
        let ops = self.source.lookahead.uniform_ops::<RATED>(common);
        let tally = self.recorder.uniform_tally::<RATED, LOGGED>(common);
        replenish(&ops, tally, self.queue.slots.states(), engine, round)
    }

    #[inline(never)]
    fn replenish_mixed<E: Engine>(&mut self, engine: &mut E, round: &Round) -> Replenished {
        let ops = self.source.lookahead.mixed_ops();
        let tally = MixedTally(&mut self.recorder);
        replenish(&ops, tally, self.queue.slots.states(), engine, round)
    }
}

/// Returns the earlier of a foreseen start and the issue time, see [`Timers::after_submission`].
///
/// An engine about as fast as a clock read issues some ops before that start and some after it. A
/// branch was rejected: it is mispredicted so often that the null engine lost a sixth of its IOPS.
#[inline(always)]
fn earlier(foreseen: Tick, issue: Tick) -> Tick {
    select_unpredictable(issue < foreseen, issue, foreseen)
}

/// Runs the loop.
#[inline(always)]
fn replenish<E: Engine, O: OpSource, T: Tally>(
    ops: &O,
    mut tally: T,
    states: &mut [SlotState],
    engine: &mut E,
    round: &Round,
) -> Replenished {
    let &Round {
        until,
        want,
        clock_read,
        ..
    } = round;
    let mut now = round.start;
    let mut end = End::Round;
    let mut count = 0;
    while count < ops.len() {
        let mut one = [Completion::default()];
        if engine.reap(&mut one) == 0 {
            end = End::Empty;
            break;
        }
        if let Some(reaped_at) = engine.reaped_at() {
            now = reaped_at.max(now);
        }
        let [completion] = one;
        let slot = completion.slot;
        let state = &mut states[slot.index()];
        if !tally.record(count, state, completion, now) {
            end = End::Unusual(completion);
            break;
        }
        let due = ops.due(count, now);
        if due > now {
            end = End::NotDue(slot);
            break;
        }
        let op = ops.place(
            count,
            slot,
            state,
            (due, now),
            round.sequence + count as u64,
        );
        engine.prepare(&op);
        let Submitted::Issued { issue, now: after } = engine.submit(want) else {
            end = End::Blocked(slot);
            break;
        };
        state.start = earlier(now, issue);
        state.due = earlier(due, issue);
        state.issue = issue;
        now = Timers::after_submission(after, clock_read);
        count += 1;
        if now >= until {
            break;
        }
    }
    // The last completion was recorded, though no op could follow it.
    let unmatched = matches!(end, End::NotDue(_) | End::Blocked(_));
    tally.commit(count + usize::from(unmatched));
    Replenished { count, end, now }
}

//! One out, one in: the steady state of a job that submits its ops one by one.
//!
//! With the queue full and completions taken one at a time (fio's defaults), each completion makes
//! room for exactly one op, in the slot that has just become free. Nothing else changes: not the
//! number in flight, not the stage. So the slot stack is left alone, and what every round would
//! count alike is counted once for all of them.
//!
//! It means the same as `reap` and `issue_plain` in turn, and gives way to them whenever an op is
//! not what it usually is.

use fathom_core::{Completion, Engine, Op, OpKind, Slot, Step, Submitted, Tick};

use crate::pattern::Target;
use crate::worker::Worker;

/// Why the exchange ended.
enum End {
    /// As many as one round may do, or a rule wants to be looked at.
    Round,
    /// Nothing has completed.
    Empty,
    /// This completion needs care.
    Odd(Completion),
    /// Nothing is left to issue in this pass, and this slot is free.
    Exhausted(Slot),
    /// The engine blocked with the op prepared in this slot.
    Blocked(Slot),
}

impl Worker {
    /// Exchanges completions for ops until the time `until`; the queue must be full.
    #[inline]
    pub(crate) fn exchange<E: Engine>(
        &mut self,
        engine: &mut E,
        now: &mut Tick,
        until: Tick,
    ) -> Option<Step> {
        let until = until.min(self.clock.next_rule);
        let (done, end) = self.exchange_some(engine, now, until);
        self.sequence += done;
        self.recorder.exchanged(self.in_flight, done);
        match end {
            End::Round => None,
            End::Empty => Some(self.wait_for_room()),
            End::Odd(completion) => {
                self.complete(engine, completion, *now);
                self.taken(1);
                None
            }
            End::Exhausted(slot) => {
                self.slots.put(slot);
                self.taken(1);
                None
            }
            End::Blocked(slot) => {
                self.taken(1);
                self.sequence += 1;
                self.prepared.push(slot);
                Some(Step::InSubmit)
            }
        }
    }

    /// The loop itself; says how many were exchanged, and why no more.
    #[inline]
    fn exchange_some<E: Engine>(
        &mut self,
        engine: &mut E,
        now: &mut Tick,
        until: Tick,
    ) -> (u64, End) {
        let want = if self.recorder.keeps_slat() {
            0
        } else {
            self.config.batching.complete_min
        };
        for done in 0..EXCHANGES_PER_ROUND {
            let mut one = [Completion::default()];
            if engine.reap(&mut one) == 0 {
                return (done, End::Empty);
            }
            let [completion] = one;
            if self.drawn.is_empty() {
                self.draw_ahead();
            }
            let state = self.slots.state(completion.slot);
            let OpKind::Data(direction) = state.op.kind else {
                return (done, End::Odd(completion));
            };
            if i64::from(completion.result) != i64::from(state.op.length) {
                return (done, End::Odd(completion));
            }
            self.recorder.completed(direction, state, *now);
            let Some(target) = self.drawn.next() else {
                return (done, End::Exhausted(completion.slot));
            };
            // No rate, so `due` is looked at by nobody.
            state.start = *now;
            set_target(&mut state.op, &target, self.sequence + done);
            engine.prepare(&state.op);
            let Submitted::Issued { issue, now: after } = engine.submit(want) else {
                return (done, End::Blocked(completion.slot));
            };
            state.issue = issue;
            self.recorder
                .submitted(target.direction, issue - state.start);
            *now = after;
            if after >= until {
                return (done + 1, End::Round);
            }
        }
        (EXCHANGES_PER_ROUND, End::Round)
    }
}

/// Turns a completed op into the next one of its slot.
#[inline]
fn set_target(op: &mut Op, target: &Target, sequence: u64) {
    op.kind = OpKind::Data(target.direction);
    op.file = target.file;
    op.length = target.length;
    op.buffer_offset = 0;
    op.offset = target.offset;
    op.sequence = sequence;
}

/// A round ends after so many, so that the turn may end.
const EXCHANGES_PER_ROUND: u64 = 64;

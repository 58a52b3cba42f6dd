//! One out, one in: the steady state of a job that submits its ops one by one.
//!
//! With the queue full and completions taken one at a time (fio's defaults), each completion makes
//! room for exactly one op, in the slot that has just become free. Nothing else changes: not the
//! number in flight, not the stage. So the slot stack is left alone, and what every round would
//! count alike is counted once for all of them.
//!
//! It means the same as `reap` and `issue_batch` in turn, and gives way to them whenever an op is
//! not what it usually is.

use fathom_core::{Completion, Engine, Slot, Step, Submitted, Tick};

use crate::worker::Worker;

/// Why the exchange ended.
pub(crate) enum End {
    /// All that was drawn is issued, or a rule wants to be looked at.
    Round,
    /// Nothing has completed.
    Empty,
    /// This completion needs care.
    Odd(Completion),
    /// The next op is not due yet; this slot is free.
    Early(Slot),
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
        if self.drawn.is_empty() {
            self.draw_ahead();
        }
        if self.drawn.is_empty() {
            return self.make_room(engine, now);
        }
        let until = until.min(self.clock.next_rule);
        let (done, end) = match self.drawn.alike {
            Some(_) if self.recorder.has_ramp_ops() => return self.make_room(engine, now),
            Some(alike) => match (self.drawn.dues().is_some(), self.recorder.log.is_some()) {
                (false, false) => {
                    self.exchange_alike::<E, false, false>(&alike, engine, now, until)
                }
                (true, false) => self.exchange_alike::<E, true, false>(&alike, engine, now, until),
                (false, true) => self.exchange_alike::<E, false, true>(&alike, engine, now, until),
                (true, true) => self.exchange_alike::<E, true, true>(&alike, engine, now, until),
            },
            None => self.exchange_some(engine, now, until),
        };
        self.drawn.advance(done);
        self.sequence += done as u64;
        self.recorder.exchanged(self.in_flight, done as u64);
        match end {
            End::Round => None,
            End::Empty => Some(self.wait_for_room()),
            End::Odd(completion) => {
                self.complete(engine, completion, *now);
                self.note_reaped(1);
                None
            }
            End::Early(slot) => {
                self.slots.put(slot);
                self.note_reaped(1);
                None
            }
            End::Blocked(slot) => {
                self.note_reaped(1);
                self.drawn.advance(1);
                self.sequence += 1;
                self.prepared.push(slot);
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

    /// The loop itself; says how many were exchanged, and why no more. Not inlined: a function of
    /// its own has the registers to itself.
    #[inline(never)]
    fn exchange_some<E: Engine>(
        &mut self,
        engine: &mut E,
        now: &mut Tick,
        until: Tick,
    ) -> (usize, End) {
        let want = self.wanted_of_full_queue();
        let mut start = *now;
        let mut end = End::Round;
        let mut done = 0;
        for (target, sequence) in self.drawn.rest().iter().zip(self.sequence..) {
            let mut one = [Completion::default()];
            if engine.reap(&mut one) == 0 {
                end = End::Empty;
                break;
            }
            let [completion] = one;
            let state = self.slots.state(completion.slot);
            let Some(direction) = state.moved_all(completion) else {
                end = End::Odd(completion);
                break;
            };
            self.recorder.completed(direction, state, start);
            let Some(due) = self.schedules.take(target, start) else {
                end = End::Early(completion.slot);
                break;
            };
            state.start_op(target, due, start, sequence);
            engine.prepare(&state.op);
            let Submitted::Issued { issue, now: after } = engine.submit(want) else {
                end = End::Blocked(completion.slot);
                break;
            };
            state.issue = issue;
            start = after;
            done += 1;
            if after >= until {
                break;
            }
        }
        *now = start;
        (done, end)
    }
}

//! The batch path: ops issued and completions recorded many at a time.
//!
//! For jobs in which no rule applies to single ops ([`Path`](crate::path::Path)). Means the same as
//! `issue_checked` and `complete`.

use fathom_core::{Completion, Engine, Step, Tick};

use crate::fast_path::{MixedTally, OpSource, Tally};
use crate::issue::IssueStatus;
use crate::lookahead::LOOKAHEAD_OPS;
use crate::queue::Queue;
use crate::slots::Slots;
use crate::uniform_ops::UniformOp;
use crate::worker::Worker;

impl Worker {
    /// Issues up to one batch of ops; the only rule applied is whether they are due.
    #[inline]
    pub(crate) fn issue_batch<E: Engine>(
        &mut self,
        engine: &mut E,
        now: &mut Tick,
    ) -> Option<Step> {
        let room = self.queue.batch.min(self.queue.slots.free());
        let mut status = IssueStatus::Ready;
        while status == IssueStatus::Ready && self.queue.prepared.len() < room {
            if self.source.lookahead.is_empty() {
                self.source.draw_ahead();
            }
            let limit = room - self.queue.prepared.len();
            status = self.prepare_drawn(engine, *now, limit);
        }
        if !self.queue.prepared.is_empty() {
            return self.submit_prepared(engine, now);
        }
        self.wait_to_issue(engine, now, status)
    }

    /// Prepares up to `limit` drawn-ahead ops that are due.
    #[inline]
    fn prepare_drawn<E: Engine>(&mut self, engine: &mut E, now: Tick, limit: usize) -> IssueStatus {
        let mut status = self.source.drawn_status();
        let (lookahead, sequence) = (&self.source.lookahead, self.source.sequence);
        let (dues, queue) = (lookahead.dues(), &mut self.queue);
        let mut count = lookahead.count().min(limit);
        // Tested first: the search of no due times took an instruction per op in batches of 8.
        if !dues.is_empty()
            && let Some(early) = dues.iter().take(count).position(|&due| due > now)
        {
            status = IssueStatus::NotDue(dues[early]);
            count = early;
        }
        match &lookahead.uniform {
            Some(common) if dues.is_empty() => {
                let ops = lookahead.uniform_ops::<false>(common);
                prepare(queue, &ops, count, engine, now, sequence);
            }
            Some(common) => {
                let ops = lookahead.uniform_ops::<true>(common);
                prepare(queue, &ops, count, engine, now, sequence);
            }
            None => prepare(queue, &lookahead.mixed_ops(), count, engine, now, sequence),
        }
        self.source.advance(count);
        status
    }

    /// Records the first `reaped` of the queue's completions and frees their slots.
    #[inline]
    pub(crate) fn complete_batch<E: Engine>(&mut self, engine: &mut E, reaped: usize, now: Tick) {
        let mut next = 0;
        while next < reaped {
            // As many as a tally of uniform ops can hold.
            let upto = reaped.min(next + LOOKAHEAD_OPS);
            next += self.record_usual(next, upto, now);
            if next < upto {
                self.complete(engine, self.queue.done[next], now);
                next += 1;
            }
        }
    }

    /// Records completions in a range of indices, and returns the number before the first unusual
    /// one.
    #[inline]
    fn record_usual(&mut self, from: usize, upto: usize, now: Tick) -> usize {
        match self.source.lookahead.uniform {
            Some(common) => {
                let logged = self.recorder.log.is_some();
                match (self.recorder.is_rated(common.direction), logged) {
                    (false, false) => self.record_uniform::<false, false>(&common, from, upto, now),
                    (true, false) => self.record_uniform::<true, false>(&common, from, upto, now),
                    (false, true) => self.record_uniform::<false, true>(&common, from, upto, now),
                    (true, true) => self.record_uniform::<true, true>(&common, from, upto, now),
                }
            }
            None => {
                let done = &self.queue.done[from..upto];
                record(
                    &mut self.queue.slots,
                    MixedTally(&mut self.recorder),
                    done,
                    now,
                )
            }
        }
    }

    #[inline]
    fn record_uniform<const RATED: bool, const LOGGED: bool>(
        &mut self,
        common: &UniformOp,
        from: usize,
        upto: usize,
        now: Tick,
    ) -> usize {
        let tally = self.recorder.uniform_tally::<RATED, LOGGED>(common);
        let done = &self.queue.done[from..upto];
        record(&mut self.queue.slots, tally, done, now)
    }
}

/// Prepares the first `count` ops of a source in free slots, which must exist.
#[inline(always)]
fn prepare<E: Engine, O: OpSource>(
    queue: &mut Queue,
    ops: &O,
    count: usize,
    engine: &mut E,
    now: Tick,
    sequence: u64,
) {
    let (slots, states) = queue.slots.take_some(count);
    ops.place_many(engine, slots, states, now, sequence);
    queue.prepared.extend_from_slice(slots);
}

/// Records completions up to the first that a tally rejects, frees their slots and returns their
/// number.
#[inline(always)]
fn record<T: Tally>(slots: &mut Slots, mut tally: T, done: &[Completion], now: Tick) -> usize {
    let states = slots.states();
    let mut good = 0;
    for &completion in done {
        if !tally.record(good, &states[completion.slot.index()], completion, now) {
            break;
        }
        good += 1;
    }
    tally.commit(good);
    slots.put_all(&done[..good]);
    good
}

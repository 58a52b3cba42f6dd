//! From the engine to the recorder.

use fathom_core::{Completion, Direction, Engine, Errno, Op, OpKind, Outcome, Slot, Tick};

use crate::compared::Comparison;
use crate::recorder::job_error;
use crate::worker::{Stage, Worker};

impl Worker {
    /// Reaps at most `iodepth_batch_complete_max` completions and returns their number.
    #[inline]
    pub(crate) fn reap<E: Engine>(&mut self, engine: &mut E, now: &mut Tick) -> u32 {
        let reaped = engine.reap(&mut self.queue.done);
        if reaped == 0 {
            return 0;
        }
        if let Some(reaped_at) = engine.reaped_at() {
            *now = reaped_at.max(*now);
        }
        let now = *now;
        // Cannot be cut: `done` has at most `iodepth` places.
        let count = u32::try_from(reaped).unwrap_or(u32::MAX);
        if self.may_complete_batch() {
            self.complete_batch(engine, reaped, now);
        } else {
            for index in 0..reaped {
                self.complete(engine, self.queue.done[index], now);
            }
        }
        self.note_reaped(count);
        count
    }

    /// Returns whether completions may be recorded in batches: not for uniform ops while some
    /// issued during the ramp are in flight.
    #[inline]
    const fn may_complete_batch(&self) -> bool {
        let uniform = self.source.lookahead.uniform.is_some();
        self.path.is_fast() && !(uniform && self.recorder.has_ramp_ops())
    }

    /// Records the size of a reap.
    #[inline]
    pub(crate) fn note_reaped(&mut self, count: u32) {
        self.queue.in_flight -= count;
        self.recorder.reaped(count);
    }

    pub(crate) fn complete<E: Engine>(
        &mut self,
        engine: &mut E,
        completion: Completion,
        now: Tick,
    ) {
        let state = *self.queue.slots.state(completion.slot);
        match (state.op.kind, completion.outcome()) {
            (OpKind::Data(direction), Outcome::Moved(moved)) if is_whole(&state.op, moved) => {
                self.recorder.completed(direction, &state, now);
                if !self.path.is_fast() {
                    self.on_completion(engine, completion.slot, direction, now);
                }
                self.queue.slots.put_reset(completion.slot);
            }
            (OpKind::Data(direction), Outcome::Moved(moved)) => {
                self.on_short_transfer(completion, direction, moved);
            }
            (OpKind::Sync(_), Outcome::Moved(_)) => {
                match self.stage {
                    Stage::Syncing(..) => self.recorder.leave_out_sync(&state),
                    _ => self.recorder.synced(&state, now),
                }
                if let Some(tracking) = &mut self.tracking {
                    tracking.end_sync(&state);
                }
                self.queue.slots.put_reset(completion.slot);
            }
            (_, Outcome::Failed(_)) if self.is_rejected_comparison(completion) => {
                self.read_rejected(completion.slot);
            }
            (_, Outcome::Failed(errno)) => {
                let detail = self.zone_fault(engine, completion.slot, errno);
                self.on_error(completion, detail);
            }
        }
    }

    /// Applies the job's rules to a completed op.
    fn on_completion<E: Engine>(
        &mut self,
        engine: &mut E,
        slot: Slot,
        direction: Direction,
        now: Tick,
    ) {
        if self.thinking.is_some() {
            self.count_for_pause();
        }
        self.release_zone(slot, true);
        let state = *self.queue.slots.state(slot);
        if let Some(priorities) = &mut self.priorities
            && !self.recorder.is_of_ramp(&state, now)
        {
            priorities.completed(direction, &state, now);
        }
        if let Some(lives) = &mut self.block_lives {
            lives.end(&state, true);
        }
        if self.limits.is_some() {
            self.check_limits(direction, &state, now);
        }
        let tracking = self.tracking.as_mut();
        let generation = tracking.and_then(|tracking| tracking.end(&state, true));
        let Some(readback) = &mut self.readback else {
            return;
        };
        let tracking = self.tracking.as_deref();
        match direction {
            Direction::Write => readback.written(&state, generation, tracking),
            Direction::Trim => readback.trimmed(&state, generation, tracking),
            Direction::Read => {
                let buffer = &mut engine.buffer(slot)[..state.total_length() as usize];
                match readback.end_comparison(slot) {
                    Comparison::None => {}
                    Comparison::Requested => return readback.accept(&state),
                    Comparison::Rejected => {
                        let checked = readback.check_rejected(buffer, &state, tracking);
                        return checked.unwrap_or_else(|text| self.on_mismatch(&state, text));
                    }
                }
                if let Some(checks) = self.checks.as_mut().filter(|_| readback.verifier.checks()) {
                    let mut check = checks.begin(&readback.verifier, state);
                    readback.fill(&mut check, buffer, &state, tracking);
                    checks.give(check);
                    self.take_checks(false);
                } else if let Err(mismatch) = readback.check(buffer, &state, tracking) {
                    self.on_mismatch(&state, mismatch);
                }
            }
        }
    }

    /// Counts a completed op towards the next pause, unless it reads back after a pass.
    fn count_for_pause(&mut self) {
        let reads_back = self.is_reading_back();
        if let Some(thinking) = self.thinking.as_mut().filter(|_| !reads_back) {
            thinking.completed();
        }
    }

    /// Handles a short transfer: the rest is issued again in the same slot.
    #[cold]
    fn on_short_transfer(&mut self, completion: Completion, direction: Direction, moved: u32) {
        let state = self.queue.slots.state(completion.slot);
        if moved == 0 || moved > state.op.length {
            // Nothing was moved: the file ends here, and a retry would end here too.
            let result = Errno::EIO.result();
            let completion = Completion {
                slot: completion.slot,
                result,
            };
            return self.on_error(completion, None);
        }
        state.op.offset += u64::from(moved);
        state.op.length -= moved;
        state.op.buffer_offset += moved;
        self.recorder.short(direction);
        if self.recorder.has_failed() {
            self.release_failed(completion.slot);
        } else {
            self.queue.retry.push(completion.slot);
        }
    }

    /// Handles a failed op: the job ends, unless it tolerates the error; `detail`: more about it.
    #[cold]
    fn on_error(&mut self, completion: Completion, detail: Option<String>) {
        let state = *self.queue.slots.state(completion.slot);
        self.release_failed(completion.slot);
        if let Some(lives) = &mut self.block_lives {
            lives.end(&state, false);
        }
        if completion.result == Completion::ENDED {
            self.recorder.took_back();
            self.abandon_retries();
            return self.stop_issuing();
        }
        if matches!(self.stage, Stage::Syncing(..)) {
            self.recorder.leave_out_sync(&state);
        }
        let error = job_error(&state, completion, detail);
        let writes = state.op.kind == OpKind::Data(Direction::Write);
        let is_full = [Errno::ENOSPC, Errno::EDQUOT].contains(&error.errno);
        if self.config.fill && writes && is_full {
            return self.stop_issuing();
        }
        let tolerate = &self.config.tolerate;
        let tolerated = match state.op.kind {
            OpKind::Data(Direction::Read) => tolerate.read(error.errno),
            OpKind::Data(_) | OpKind::Sync(_) => tolerate.write(error.errno),
        };
        if tolerated {
            self.recorder.tolerated(error);
            self.count_for_pause();
        } else {
            self.fail(error);
        }
    }
}

/// Returns whether the op moved all its bytes. A trim is done whole or fails, and has moved more
/// than its result can tell where it is longer than [`Completion::BYTES_MAX`].
const fn is_whole(op: &Op, moved: u32) -> bool {
    let trims = matches!(op.kind, OpKind::Data(Direction::Trim));
    moved == op.length || trims && moved == Completion::BYTES_MAX && op.length > moved
}

#[cfg(test)]
mod tests {
    use fathom_core::FileIndex;

    use super::*;

    #[track_caller]
    fn check(direction: Direction, length: u32, moved: u32, want: bool) {
        let op = Op {
            slot: Slot::new(0),
            kind: OpKind::Data(direction),
            priority: 0,
            file: FileIndex::new(0),
            length,
            buffer_offset: 0,
            offset: 0,
            sequence: 0,
        };
        assert_eq!(is_whole(&op, moved), want, "{direction:?} {length} {moved}");
    }

    #[test]
    fn a_trim_longer_than_a_result_can_hold_is_complete() {
        check(Direction::Trim, 3 << 30, Completion::BYTES_MAX, true);
        check(
            Direction::Trim,
            Completion::BYTES_MAX,
            Completion::BYTES_MAX,
            true,
        );
        check(Direction::Trim, 4096, 4096, true);
        check(Direction::Trim, 4096, 512, false);
        check(Direction::Read, 3 << 30, Completion::BYTES_MAX, false);
        check(Direction::Write, 3 << 30, 0x7fff_f000, false);
    }
}

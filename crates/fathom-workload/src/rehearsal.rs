//! Rehearsal of a job that only verifies what it would write (`verify_only`).
//!
//! ```text
//!  pattern ─► op, not issued ─► maps of its own, log ─┐ all passes
//!                                                     ▼
//!                                 readback of what a run that writes would have left
//! ```
//!
//! The same configuration draws the same ops. What a run cannot tell again is the time: when a
//! block was written, and which of the ops that may be in flight together was done last.

use fathom_core::{Direction, Step, Tick};

use crate::issue::IssueStatus;
use crate::job_limits::IssueBlock;
use crate::pattern::OpTarget;
use crate::verify::{Generation, LoggedWrite, RehearsedChange};
use crate::worker::{Stage, Worker};

/// Progress of a rehearsal.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rehearsal {
    /// Number of writes and trims so far.
    changes: u32,
    /// Number of passes before this one.
    passes: u16,
}

impl Worker {
    /// Draws some ops of the pass, and ends it after the last one.
    pub(crate) fn rehearse(&mut self, now: Tick) -> Option<Step> {
        for _ in 0..OPS_PER_ROUND {
            let end = match self.next_rehearsed(now) {
                Ok(target) => {
                    self.rehearse_op(&target);
                    continue;
                }
                Err(end) => end,
            };
            let step = match end {
                IssueStatus::EndOfPattern => self.end_of_pattern(),
                _ => self.end_of_pass(),
            };
            if self.stage != Stage::Rehearsing {
                // All ops have completed before those of the next pass.
                self.rehearsal.passes = self.rehearsal.passes.wrapping_add(1);
            }
            return step;
        }
        None
    }

    /// Forgets all ops: the files would have been created again.
    pub(crate) fn forget_rehearsed(&mut self) {
        if let Some(tracking) = &mut self.tracking {
            tracking.rehearsed.iter_mut().for_each(|map| map.clear());
        }
        if let Some(readback) = &mut self.readback {
            readback.clear_log();
        }
    }

    fn next_rehearsed(&mut self, now: Tick) -> Result<OpTarget, IssueStatus> {
        match &self.limits {
            Some(limits) if limits.is_exhausted() => Err(self.hold(IssueBlock::OpsExhausted)),
            _ => self.next_target(now),
        }
    }

    /// Notes an op as done.
    fn rehearse_op(&mut self, target: &OpTarget) {
        self.source.pass.issue(u64::from(target.length));
        let counts = self.counts_as_op(target);
        if let Some(limits) = self.limits.as_mut().filter(|_| counts) {
            limits.count_op();
        }
        let (Some(readback), Some(tracking)) = (&mut self.readback, &mut self.tracking) else {
            return;
        };
        let map = tracking.rehearsed.get_mut(target.file.index());
        let Some(map) = map.filter(|_| target.direction != Direction::Read) else {
            return;
        };
        let number = self.rehearsal.changes.checked_add(1).unwrap_or(1);
        self.rehearsal.changes = number;
        let stamps = target.direction == Direction::Write;
        map.note(&RehearsedChange {
            offset: target.offset,
            length: target.length,
            number,
            pass: self.rehearsal.passes,
            stamps,
        });
        if stamps {
            let written = LoggedWrite {
                file: target.file,
                offset: target.offset,
                length: target.length,
                sequence: number.into(),
                // Not asked for: the map has the number.
                generation: Generation::new(0, 0, 0),
                trimmed: false,
            };
            readback.log_write(written, tracking);
        }
    }
}

/// Ops that are drawn before orders to stop are looked at: 256 rounds of a turn take some
/// milliseconds.
const OPS_PER_ROUND: u32 = 64;

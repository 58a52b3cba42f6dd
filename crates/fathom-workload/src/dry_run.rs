//! Dry run of a job that only verifies what it would write (`verify_only`).
//!
//! ```text
//!  pattern ─► op, not issued ─► maps of its own, log ─┐ all passes
//!                                                     ▼
//!                                 readback of what a run that writes would have left
//! ```
//!
//! The same configuration draws the same ops. Times are not reproducible: when a block was written,
//! and which of the ops in flight together completed last.

use fathom_core::{Direction, Step, Tick};

use crate::issue::IssueStatus;
use crate::job_limits::IssueBlock;
use crate::pattern::OpTarget;
use crate::verify::{DryRunChange, Generation, LoggedWrite};
use crate::worker::{Stage, Worker};

/// Progress of a dry run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DryRun {
    /// Number of writes and trims so far.
    changes: u32,
    /// Number of passes before this one.
    passes: u16,
}

impl Worker {
    /// Draws some ops of the pass without issuing them, and ends it after the last one.
    pub(crate) fn draw_ops(&mut self, now: Tick) -> Option<Step> {
        for _ in 0..OPS_PER_ROUND {
            let end = match self.next_drawn(now) {
                Ok(target) => {
                    self.note_drawn(&target);
                    continue;
                }
                Err(end) => end,
            };
            let step = match end {
                IssueStatus::EndOfPattern => self.end_of_pattern(),
                _ => self.end_of_pass(),
            };
            if self.stage != Stage::DryRun {
                // All ops have completed before those of the next pass.
                self.dry_run.passes = self.dry_run.passes.wrapping_add(1);
            }
            return step;
        }
        None
    }

    /// Forgets all ops drawn so far: the files would have been recreated.
    pub(crate) fn forget_drawn(&mut self) {
        if let Some(tracking) = &mut self.tracking {
            tracking.dry_run.iter_mut().for_each(|map| map.clear());
        }
        if let Some(readback) = &mut self.readback {
            readback.clear_log();
        }
    }

    fn next_drawn(&mut self, now: Tick) -> Result<OpTarget, IssueStatus> {
        match &self.limits {
            Some(limits) if limits.is_exhausted() => Err(self.hold(IssueBlock::OpsExhausted)),
            _ => self.next_target(now),
        }
    }

    /// Notes an op as if it had completed.
    fn note_drawn(&mut self, target: &OpTarget) {
        self.source.pass.issue(u64::from(target.length));
        let counts = self.counts_as_op(target);
        if let Some(limits) = self.limits.as_mut().filter(|_| counts) {
            limits.count_op();
        }
        let (Some(readback), Some(tracking)) = (&mut self.readback, &mut self.tracking) else {
            return;
        };
        let map = tracking.dry_run.get_mut(target.file.index());
        let Some(map) = map.filter(|_| target.direction != Direction::Read) else {
            return;
        };
        let number = self.dry_run.changes.checked_add(1).unwrap_or(1);
        self.dry_run.changes = number;
        let stamps = target.direction == Direction::Write;
        map.note(&DryRunChange {
            offset: target.offset,
            length: target.length,
            number,
            pass: self.dry_run.passes,
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

/// Ops drawn in one round; a turn of 256 rounds, after which stop requests are heeded, takes some
/// milliseconds.
const OPS_PER_ROUND: u32 = 64;

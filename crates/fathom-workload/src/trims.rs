//! Trims of blocks that the job has written (`trim_percentage`).
//!
//! ```text
//!  completed write ─► chosen by chance ─► kept ─┬─ every `writes` writes ─► `batch` trims
//!                                               └─ at the end of a pass ──► the rest
//! ```
//!
//! A trimmed block is read back like a written one, and must be zeros.

use std::collections::VecDeque;

use fathom_core::{Direction, Engine, NoMemory, Taus88, Tick, stream_seed};

use crate::config::TrimRule;
use crate::issue::IssueStatus;
use crate::pattern::OpTarget;
use crate::readback::Readback;
use crate::verify::LoggedWrite;
use crate::worker::Worker;

/// Written blocks that a job is to trim.
///
/// Nothing is allocated after it was made: while it is full, the block chosen first is left as it
/// is.
#[derive(Debug)]
pub(crate) struct TrimBacklog {
    rule: TrimRule,
    choose: Taus88,
    /// Writes to trim, the first chosen first.
    chosen: VecDeque<LoggedWrite>,
    capacity: usize,
    /// Writes since the last batch.
    writes: u64,
    /// Trims left to issue in this batch.
    left: u64,
}

impl TrimBacklog {
    /// Creates an empty backlog for a log of `capacity` writes.
    ///
    /// # Errors
    /// Not enough memory.
    pub(crate) fn new(rule: TrimRule, capacity: usize, seed: u64) -> Result<Self, NoMemory> {
        let mut chosen = VecDeque::new();
        let bytes = (capacity as u64).saturating_mul(size_of::<LoggedWrite>() as u64);
        chosen
            .try_reserve_exact(capacity)
            .map_err(|_| NoMemory { bytes })?;
        Ok(Self {
            rule,
            choose: Taus88::new(stream_seed(seed, CHOICE)),
            chosen,
            capacity,
            writes: 0,
            left: 0,
        })
    }

    /// Notes a completed write, and perhaps chooses it.
    pub(crate) fn written(&mut self, written: LoggedWrite) {
        self.writes += 1;
        if self.choose.below(100) >= u64::from(self.rule.percent) {
            return;
        }
        if self.chosen.len() == self.capacity {
            self.chosen.pop_front();
        }
        self.chosen.push_back(written);
    }

    /// Takes the next write to trim, if it is the turn of trims; `rest`: the pass has no other op.
    pub(crate) fn next(
        &mut self,
        rest: bool,
        mut live: impl FnMut(&LoggedWrite) -> bool,
    ) -> Option<LoggedWrite> {
        if rest {
            self.left = u64::MAX;
        } else if self.left == 0 && self.rule.writes.is_some_and(|due| self.writes >= due) {
            (self.writes, self.left) = (0, self.rule.batch);
        }
        while self.left > 0 {
            let Some(written) = self.chosen.pop_front() else {
                self.left = 0;
                break;
            };
            if live(&written) {
                self.left -= 1;
                return Some(written);
            }
        }
        None
    }

    /// Takes back a write that was taken but cannot be trimmed yet.
    pub(crate) fn put_back(&mut self, written: LoggedWrite) {
        self.chosen.push_front(written);
        self.left = self.left.saturating_add(1);
    }

    /// Forgets all writes.
    pub(crate) fn clear(&mut self) {
        self.chosen.clear();
        (self.writes, self.left) = (0, 0);
    }
}

impl Worker {
    /// Takes the write to trim next, if it is the turn of trims; `rest`: no other op is left.
    #[inline]
    pub(crate) fn next_to_trim(&mut self, rest: bool) -> Option<LoggedWrite> {
        let tracking = self.tracking.as_deref()?;
        self.readback.as_mut()?.next_to_trim(rest, tracking)
    }

    /// Issues the trims left at the end of a pass, and then returns `end`.
    #[cold]
    pub(crate) fn issue_rest_of_trims<E: Engine>(
        &mut self,
        engine: &mut E,
        now: Tick,
        end: IssueStatus,
    ) -> IssueStatus {
        if !self.trims_written() {
            return end;
        }
        match self.next_to_trim(true) {
            Some(written) => self.issue_trim(engine, written, now),
            None if self.queue.is_drained() => end,
            // Writes in flight may be chosen once they have completed.
            None => IssueStatus::NeedsDrain,
        }
    }

    /// Returns whether the job trims blocks that it has written.
    pub(crate) fn trims_written(&self) -> bool {
        self.readback.as_ref().is_some_and(Readback::trims_written)
    }

    /// Issues the trim of a write, or returns what it waits for. It has no schedule and none of the
    /// bytes of the pass, but counts as an op, as in fio.
    pub(crate) fn issue_trim<E: Engine>(
        &mut self,
        engine: &mut E,
        written: LoggedWrite,
        now: Tick,
    ) -> IssueStatus {
        let target = OpTarget {
            direction: Direction::Trim,
            file: written.file,
            offset: written.offset,
            length: written.length,
        };
        if self.must_wait(&target) {
            if let Some(readback) = &mut self.readback {
                readback.put_back_to_trim(written);
            }
            return IssueStatus::NeedsDrain;
        }
        self.queue.last = self.queueing(&target);
        self.prepare_op(engine, &target, now, now);
        if let Some(limits) = &mut self.limits {
            limits.count_op();
        }
        IssueStatus::Ready
    }
}

/// Stream of the choices; the patterns of a job have the first ones.
const CHOICE: u64 = 0x7472_696d;

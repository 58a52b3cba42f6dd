//! Issue of the reads that read writes back.

use fathom_core::{Direction, Engine, Tick};

use crate::issue::IssueStatus;
use crate::pattern::OpTarget;
use crate::verify::LoggedWrite;
use crate::worker::Worker;

impl Worker {
    /// Takes the write to read back next, if it is the turn of readback.
    #[inline]
    pub(crate) fn next_to_read_back(&mut self) -> Option<LoggedWrite> {
        let tracking = self.tracking.as_deref()?;
        self.readback.as_mut()?.next_write(tracking)
    }

    /// Issues the read of a write, or returns what it waits for. It has no schedule and is not
    /// counted as a byte of the pass.
    pub(crate) fn issue_readback<E: Engine>(
        &mut self,
        engine: &mut E,
        written: LoggedWrite,
        now: Tick,
    ) -> IssueStatus {
        let target = OpTarget {
            direction: Direction::Read,
            file: written.file,
            offset: written.offset,
            length: written.length,
        };
        let must_wait = self.must_wait(&target);
        let Some(readback) = &mut self.readback else {
            return IssueStatus::Ready;
        };
        if must_wait {
            readback.put_back(written);
            return IssueStatus::NeedsDrain;
        }
        if let Some(slot) = self.queue.slots.peek() {
            readback.read_issued(slot, written);
            if let Some(priorities) = &mut self.priorities {
                self.queue.slots.state(slot).op.priority = priorities.choose(&target);
            }
            self.compare_readback(engine, slot, &written);
        }
        self.prepare_op(engine, &target, now, now);
        self.count_issue(&target, now);
        IssueStatus::Ready
    }
}

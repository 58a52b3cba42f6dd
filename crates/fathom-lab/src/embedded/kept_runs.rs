//! Runs of a lab, in memory.

use crate::judge::Judgement;
use crate::lab::{EarlierRun, Journal, JournalError, RunDone};
use crate::order::Slot;

/// Journal that keeps the runs of complete repeats until the program ends, and reports when one
/// begins.
pub(super) struct KeptRuns<'a> {
    pub(super) runs: Vec<(Slot, RunDone)>,
    pub(super) tell: &'a mut dyn FnMut(&Slot),
}

impl Journal for KeptRuns<'_> {
    fn earlier(&mut self) -> Result<Vec<EarlierRun>, JournalError> {
        Ok(Vec::new())
    }

    fn plan(&mut self, _slots: &[Slot]) -> Result<(), JournalError> {
        Ok(())
    }

    fn begin(&mut self, slot: &Slot) -> Result<(), JournalError> {
        (self.tell)(slot);
        Ok(())
    }

    fn finish(&mut self, slot: &Slot, done: &RunDone) -> Result<(), JournalError> {
        self.runs.push((*slot, done.clone()));
        Ok(())
    }

    fn fail(&mut self, _slot: &Slot, _why: &str) -> Result<(), JournalError> {
        Ok(())
    }

    fn cut(&mut self, cell: usize, repeat: u32) -> Result<(), JournalError> {
        let is_of = |slot: &Slot| (slot.cell, slot.repeat) == (cell, repeat);
        self.runs.retain(|(slot, _)| !is_of(slot));
        Ok(())
    }

    fn judge(&mut self, _judgements: &[Judgement], _is_complete: bool) -> Result<(), JournalError> {
        Ok(())
    }
}

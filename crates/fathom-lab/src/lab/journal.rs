//! Seam between a lab and the place where its progress is kept.

use std::fmt;

use super::executor::RunDone;
use crate::judge::Judgement;
use crate::order::Slot;

/// Progress of a lab, from which it goes on after an interruption.
///
/// A round's order is kept before its first run, each run when it ends. What is left of a repeat
/// that was cut is not used: its runs would no longer be back to back.
pub trait Journal {
    /// Returns the runs of complete repeats that are kept, in their order.
    ///
    /// # Errors
    /// They cannot be read.
    fn earlier(&mut self) -> Result<Vec<EarlierRun>, JournalError>;

    /// Returns the errors that ended cells and searches of a lab that has ended. One that goes on
    /// after an interruption tries them again.
    ///
    /// # Errors
    /// They cannot be read.
    fn failures(&mut self) -> Result<Vec<EarlierFailure>, JournalError> {
        Ok(Vec::new())
    }

    /// Returns whether the same command continues what was interrupted: it may start over.
    fn continues(&self) -> bool {
        true
    }

    /// Keeps the order of runs to come.
    ///
    /// # Errors
    /// It cannot be written.
    fn plan(&mut self, slots: &[Slot]) -> Result<(), JournalError>;

    /// Keeps that a run begins.
    ///
    /// # Errors
    /// It cannot be written.
    fn begin(&mut self, slot: &Slot) -> Result<(), JournalError>;

    /// Keeps the result of a run.
    ///
    /// # Errors
    /// It cannot be written.
    fn finish(&mut self, slot: &Slot, done: &RunDone) -> Result<(), JournalError>;

    /// Keeps that a run failed.
    ///
    /// # Errors
    /// It cannot be written.
    fn fail(&mut self, slot: &Slot, why: &str) -> Result<(), JournalError>;

    /// Marks the runs of a repeat as cut.
    ///
    /// # Errors
    /// It cannot be written.
    fn cut(&mut self, cell: usize, repeat: u32) -> Result<(), JournalError>;

    /// Returns the names of the devices and files that were prepared, once and for all.
    ///
    /// # Errors
    /// They cannot be read.
    fn prepared(&mut self) -> Result<Vec<String>, JournalError> {
        Ok(Vec::new())
    }

    /// Keeps that a device or file begins to be prepared.
    ///
    /// # Errors
    /// It cannot be written.
    fn prepare(&mut self, _name: &str) -> Result<(), JournalError> {
        Ok(())
    }

    /// Keeps the end of what [`prepare`](Self::prepare) began: the result of its last pass, or the
    /// error.
    ///
    /// # Errors
    /// It cannot be written.
    fn end_preparation(&mut self, _outcome: Result<&RunDone, &str>) -> Result<(), JournalError> {
        Ok(())
    }

    /// Keeps the verdicts; with `is_complete`, the lab has ended.
    ///
    /// # Errors
    /// They cannot be written.
    fn judge(&mut self, judgements: &[Judgement], is_complete: bool) -> Result<(), JournalError>;
}

/// Run that a journal has from before.
#[derive(Clone, Debug)]
pub struct EarlierRun {
    /// Its place in the order.
    pub slot: Slot,
    /// Its result.
    pub done: RunDone,
}

/// Run that failed in a lab that has ended, and was not done again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierFailure {
    /// Cell.
    pub cell: usize,
    /// Variant.
    pub variant: usize,
    /// Repeat, or number of the run in its search.
    pub repeat: u32,
    /// Error.
    pub why: String,
}

/// Failure of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalError(pub String);

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for JournalError {}

/// Journal that keeps nothing: after an interruption the lab starts over.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoJournal;

impl Journal for NoJournal {
    fn earlier(&mut self) -> Result<Vec<EarlierRun>, JournalError> {
        Ok(Vec::new())
    }

    fn continues(&self) -> bool {
        false
    }

    fn plan(&mut self, _slots: &[Slot]) -> Result<(), JournalError> {
        Ok(())
    }

    fn begin(&mut self, _slot: &Slot) -> Result<(), JournalError> {
        Ok(())
    }

    fn finish(&mut self, _slot: &Slot, _done: &RunDone) -> Result<(), JournalError> {
        Ok(())
    }

    fn fail(&mut self, _slot: &Slot, _why: &str) -> Result<(), JournalError> {
        Ok(())
    }

    fn cut(&mut self, _cell: usize, _repeat: u32) -> Result<(), JournalError> {
        Ok(())
    }

    fn judge(&mut self, _judgements: &[Judgement], _is_complete: bool) -> Result<(), JournalError> {
        Ok(())
    }
}

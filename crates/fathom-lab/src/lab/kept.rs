//! Labs of the history, as they were run: the plan from its stored text, the outcome from the runs.
//!
//! ```text
//! stored text ─► plan ┐
//!                     ├─► the rounds of `run_lab`, without a run ─► outcome
//! stored runs ────────┘
//! ```
//!
//! Nothing is run and nothing is written. With runs missing, the outcome is an interrupted one.

mod texts;

use std::collections::BTreeMap;
use std::fmt;

use fathom_job::Environment;

use super::executor::{Boot, Executor, Repeat, RunDone, RunFailure, RunStep};
use super::journal::{EarlierRun, Journal, JournalError};
use super::rounds::{LabFailure, LabOutcome, run_lab};
use super::stored::StoredLab;
use crate::judge::Judgement;
use crate::lab_plan::LabPlan;
use crate::order::Slot;
use crate::store::{History, HistoryError, LabEntry, LabId, LabRun, RunState};

/// Lab of the history.
#[derive(Debug)]
pub struct KeptLab {
    /// Its entry.
    pub entry: LabEntry,
    /// Its plan.
    pub plan: LabPlan,
    /// Its outcome, as far as it was run.
    pub outcome: LabOutcome,
    /// Machines and subjects of its runs: facts, each with the values that it had.
    pub circumstances: BTreeMap<String, Vec<String>>,
}

/// Reason why a lab of the history cannot be shown.
#[derive(Debug)]
#[non_exhaustive]
pub enum KeptLabError {
    /// The history cannot be read.
    History(HistoryError),
    /// Its text is no lab file to this program, or names a file that is no longer there.
    Text {
        /// Name of the lab.
        name: String,
        /// The first problem.
        why: String,
    },
    /// Its runs cannot be read.
    Runs(LabFailure),
}

impl KeptLab {
    /// Reads a lab. Files that its text names and the history has not, such as published figures,
    /// come from `environment`.
    ///
    /// # Errors
    /// The history cannot be read, or its text is not a lab file to this program.
    pub fn read(
        history: History,
        lab: LabId,
        environment: &dyn Environment,
    ) -> Result<Self, KeptLabError> {
        history.hold()?;
        let entry = history.lab_entry(lab)?;
        let plan = texts::plan(&entry, environment).map_err(|why| KeptLabError::Text {
            name: entry.name.clone(),
            why,
        })?;
        let circumstances = history.circumstances_of(lab)?;
        let runs = history.runs_of(lab)?;
        let mut journal = Reader(StoredLab::reader(history, &plan, lab));
        let mut executor = Absent {
            failures: failures(&runs),
        };
        let outcome = run_lab(&plan, &mut executor, &mut journal, &mut |_| {});
        let mut outcome = outcome.map_err(KeptLabError::Runs)?;
        drop(journal);
        complete(&mut outcome, &runs, &executor.failures);
        Ok(Self {
            entry,
            plan,
            outcome,
            circumstances,
        })
    }
}

/// Errors of the last attempts, by cell, repeat and variant.
type Failures = BTreeMap<(usize, u32, String), String>;

/// Returns the runs that failed and were not done again.
fn failures(runs: &[LabRun]) -> Failures {
    let mut failures = BTreeMap::new();
    for run in runs {
        let planned = &run.planned;
        let key = (
            planned.cell as usize,
            planned.repeat,
            planned.variant.clone(),
        );
        match run.state {
            RunState::Failed => {
                failures.insert(key, run.note.clone().unwrap_or_default());
            }
            RunState::Done => {
                failures.remove(&key);
            }
            RunState::Planned | RunState::Running | RunState::Cut => {}
        }
    }
    failures
}

/// Adds what the rounds do not tell: cells that were given up after an interrupted one in the same
/// round, and the number of repeats that were done again.
fn complete(outcome: &mut LabOutcome, runs: &[LabRun], failures: &Failures) {
    for ((cell, _, _), why) in failures {
        if let Some(state) = outcome.results.cells.get_mut(*cell) {
            state.failure.get_or_insert_with(|| why.clone());
        }
    }
    let failed = runs.iter().filter(|run| run.state == RunState::Failed);
    let again = failed.filter(|run| {
        let planned = &run.planned;
        let key = (
            planned.cell as usize,
            planned.repeat,
            planned.variant.clone(),
        );
        !failures.contains_key(&key)
    });
    outcome.results.retried = u32::try_from(again.count()).unwrap_or(u32::MAX);
}

/// Executor of a lab that is only read: what failed fails as it did, and the rest was not run.
struct Absent {
    failures: Failures,
}

impl Executor for Absent {
    fn boot(&self) -> Result<Boot, String> {
        Ok(Boot::default())
    }

    fn execute(&mut self, repeats: &[Repeat], watch: &mut dyn FnMut(&Slot, RunStep)) {
        // Those that failed first: after an interruption nothing is told.
        let mut rest = None;
        for repeat in repeats {
            let failed = repeat.slots.iter().find_map(|slot| {
                let mut failures = self.failures.iter();
                let found =
                    failures.find(|((cell, of, _), _)| (*cell, *of) == (slot.cell, slot.repeat))?;
                Some((slot, found.1))
            });
            match failed {
                Some((slot, why)) => {
                    let failure = RunFailure::Hopeless(why.clone());
                    watch(slot, RunStep::Ended(Box::new(Err(failure))));
                }
                None => rest = rest.or(repeat.slots.first()),
            }
        }
        if let Some(slot) = rest {
            let failure = RunFailure::Interrupted;
            watch(slot, RunStep::Ended(Box::new(Err(failure))));
        }
    }
}

/// Journal that is only read.
struct Reader<'a>(StoredLab<'a>);

impl Journal for Reader<'_> {
    fn earlier(&mut self) -> Result<Vec<EarlierRun>, JournalError> {
        self.0.earlier()
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

    fn prepared(&mut self) -> Result<Vec<String>, JournalError> {
        // No device of the lab has to be there.
        let precondition = self.0.lab_plan().precondition.iter();
        let files = precondition.flat_map(|one| &one.files);
        Ok(files.map(|file| file.name.clone()).collect())
    }

    fn judge(&mut self, _judgements: &[Judgement], _is_complete: bool) -> Result<(), JournalError> {
        Ok(())
    }
}

impl From<HistoryError> for KeptLabError {
    fn from(error: HistoryError) -> Self {
        Self::History(error)
    }
}

impl fmt::Display for KeptLabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::History(error) => error.fmt(f),
            Self::Text { name, why } => {
                write!(f, "lab `{name}`: its text in the history: {why}")
            }
            Self::Runs(error) => error.fmt(f),
        }
    }
}

// The cause is part of the message.
impl std::error::Error for KeptLabError {}

#[cfg(test)]
mod tests;

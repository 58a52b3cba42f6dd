//! Seam between the order of a lab's runs and the place where they are executed.

use fathom_record::Record;

use crate::order::Slot;

/// One repeat of a cell: each of its variants once, back to back.
#[derive(Clone, Debug, PartialEq)]
pub struct Repeat {
    /// Runs, in their drawn order.
    pub slots: Vec<Slot>,
}

/// Result of a run.
#[derive(Clone, Debug)]
pub struct RunDone {
    /// Record.
    pub record: Record,
    /// Wall time, ms; 0 in virtual time, which is the same on every host.
    pub wall_ms: u64,
    /// Events on the machine that may have changed the numbers, as a phrase.
    pub disturbance: Option<String>,
}

/// Reason why a run has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunFailure {
    /// The run was interrupted by the user; none is executed after it.
    Interrupted,
    /// The run failed.
    Failed(String),
    /// The run cannot succeed, however often it is repeated.
    Hopeless(String),
}

/// Outcome of one run.
pub type RunOutcome = Result<RunDone, RunFailure>;

/// Step of a run.
#[derive(Debug)]
pub enum RunStep {
    /// It begins. Runs that take no real time begin and end at once, without this step.
    Begins,
    /// It ended.
    Ended(RunOutcome),
}

/// Place where runs are executed.
pub trait Executor {
    /// Executes repeats. Calls `watch` for each run, in the order of the repeats and of the runs in
    /// each; after a failure, the rest of that repeat is left out, after an interruption
    /// everything.
    fn execute(&mut self, repeats: &[Repeat], watch: &mut dyn FnMut(&Slot, RunStep));
}

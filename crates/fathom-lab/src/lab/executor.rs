//! Seam between the order of a lab's runs and the place where they are executed.

use fathom_record::{Measure, MetricName, Record, measures};

use crate::order::Slot;

/// One repeat of a cell: each of its variants once, back to back.
#[derive(Clone, Debug, PartialEq)]
pub struct Repeat {
    /// Runs, in their drawn order.
    pub slots: Vec<Slot>,
}

/// Result of a run.
#[derive(Clone, Debug, Default)]
pub struct RunDone {
    /// Record; `None` of a program that leaves none.
    pub record: Option<Record>,
    /// Name and version of the program, if it is not this one.
    pub program: Option<String>,
    /// Its metrics; empty if they are those of the record, computed when they are asked for.
    pub measures: Vec<Measure>,
    /// Wall time with its commands and services, without the pause before it, ms; 0 in virtual
    /// time, which is the same on every host.
    pub wall_ms: u64,
    /// Events on the machine that may have changed the numbers, as a phrase.
    pub disturbance: Option<String>,
    /// Identity of the boot it ran in, of a lab whose repeats are boots.
    pub boot: Option<String>,
}

/// Boot of the host that executes runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Boot {
    /// Identity, another one after each boot.
    pub id: String,
    /// Release of the kernel, as `uname -r` prints it.
    pub kernel: String,
}

impl RunDone {
    /// Takes the metrics from a record.
    #[must_use]
    pub fn of_record(record: Record) -> Self {
        Self {
            measures: measures(&record),
            record: Some(record),
            ..Self::default()
        }
    }

    /// Takes a record alone. A lab in virtual time asks for a few of its metrics; all of them and
    /// their intervals take as long as a short run.
    #[must_use]
    pub fn of_model(record: Record) -> Self {
        Self {
            record: Some(record),
            ..Self::default()
        }
    }

    /// Computes the metrics of the record, unless they are there.
    pub(crate) fn measure(&mut self) {
        if let Some(record) = self.record.as_ref().filter(|_| self.measures.is_empty()) {
            self.measures = measures(record);
        }
    }

    /// Returns the value of a metric, in the unit of its row. Percentiles that are not kept are
    /// taken from the record.
    #[must_use]
    pub fn value(&self, name: &MetricName) -> Option<f64> {
        let kept = name.find(&self.measures).map(|measure| measure.value);
        kept.or_else(|| name.value(self.record.as_ref()?))
    }
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
    Ended(Box<RunOutcome>),
}

/// Place where runs are executed.
pub trait Executor {
    /// Returns the boot of the host.
    ///
    /// # Errors
    /// Runs depend on none, or it cannot be distinguished from others.
    fn boot(&self) -> Result<Boot, String> {
        Err("runs here depend on no boot".into())
    }

    /// Executes repeats. Calls `watch` for each run, in the order of the repeats and of the runs in
    /// each; after a failure, the rest of that repeat is left out, after an interruption
    /// everything.
    fn execute(&mut self, repeats: &[Repeat], watch: &mut dyn FnMut(&Slot, RunStep));

    /// Runs a job that prepares a device or file, and must have no other one. A modelled one keeps
    /// nothing from run to run, so there is nothing to prepare.
    ///
    /// # Errors
    /// It failed, or the user interrupted it.
    fn prepare(&mut self, _job: &str, _file: &str) -> RunOutcome {
        Err(RunFailure::Hopeless(
            "devices cannot be prepared here".into(),
        ))
    }
}

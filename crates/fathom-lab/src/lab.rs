//! Execution of a lab: its runs in rounds, the values of its metrics, the verdicts.
//!
//! ```text
//! LabPlan ─► rounds ─► executor ─► results ─► verdicts ─► table
//!              │                      ▲
//!              └──────► journal ──────┘
//!                       (from which it goes on)
//! ```
//!
//! A *repeat* of a cell is each variant once, back to back, in a newly drawn order; a *round* is
//! one repeat of every cell. An error repeats the repeat; a cell that fails again and again is
//! given up, and the rest goes on.

mod boots;
mod curve;
mod devices;
mod executor;
mod false_alarms;
mod journal;
#[cfg(feature = "history")]
mod kept;
mod levels;
mod lock_file;
mod machine_lock;
mod merged;
mod modelled;
mod observed;
mod precondition;
mod real;
mod report;
mod results;
mod rounds;
mod schedulers;
mod search;
mod sequential;
mod steady;
#[cfg(feature = "history")]
mod stored;

#[cfg(test)]
mod tests;

pub use boots::Waiting;
pub use executor::{Boot, Executor, Repeat, RunDone, RunFailure, RunOutcome, RunStep};
pub use false_alarms::FalseAlarms;
pub use journal::{EarlierFailure, EarlierRun, Journal, JournalError, NoJournal};
#[cfg(feature = "history")]
pub use kept::{KeptLab, KeptLabError};
pub use lock_file::LockFile;
pub use machine_lock::lock_machine;
pub use modelled::Modelled;
pub use observed::{Observed, observed};
pub use real::Real;
pub use report::lab_table;
pub(crate) use report::{Report, label};
pub use results::{CellState, Disturbance, LabResults};
pub use rounds::{LabEvent, LabFailure, LabOutcome, run_lab};
pub(crate) use search::ProbeCount;
pub use search::{Decision, Estimate, Probe, Searching};
pub use steady::{Steadiness, SteadySide};
#[cfg(feature = "history")]
pub use stored::{StoredLab, StoredLabError};

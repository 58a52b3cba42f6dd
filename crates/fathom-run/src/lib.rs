//! One run: check, lay out files, start, watch, stop, collect.
#![forbid(unsafe_code)]

mod affinity;
mod bandwidth;
mod caveats;
mod cgroup;
mod check;
mod collect;
mod debug_output;
mod drive;
mod engine_config;
mod engines;
mod error;
mod evidence;
mod file_locks;
mod gate;
mod groups;
mod gtod;
mod hooks;
mod idleness;
mod interim;
mod launch;
mod lifecycle;
mod lint;
mod logs;
mod modelled;
mod offload;
mod outcome;
mod prepare;
mod process;
mod progress;
mod refusals;
mod run;
mod saved;
mod scheduler;
mod seeks;
mod session;
mod simulate;
mod tracing_engine;
mod translate;
mod validity;

pub mod layout;
pub mod status;

// Public items, listed once.
pub use error::{Problem, RunError};
pub use idleness::unit_of_work;
pub use lint::{Finding, lint, rules};
pub use logs::{convert_log, inflate_log};
pub use modelled::Machine;
pub use refusals::refusals;
pub use run::run;
pub use saved::distribution_file;
pub use scheduler::KeptSchedulers;
pub use session::{Event, JobSnapshot, JobState, Session, Snapshot};
pub use simulate::{LogFiles, simulate, simulate_logged, simulate_on};

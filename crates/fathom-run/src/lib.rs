//! One run: check, lay out files, start, watch, stop, collect.
#![forbid(unsafe_code)]

mod affinity;
mod bandwidth;
mod cgroup;
mod drive;
mod engine_config;
mod evidence;
mod file_locks;
mod gate;
mod gtod;
mod hooks;
mod idleness;
mod interim;
mod launch;
mod lint;
mod modelled;
mod offload;
mod prepare;
mod process;
mod progress;
mod run;
mod saved;
mod scheduler;
mod seeks;
mod simulate;
#[cfg(test)]
mod testing;
mod tracing_engine;
mod validity;

pub mod layout;

// Public items, listed once.
pub use idleness::unit_of_work;
pub use lint::{Finding, lint, rules};
pub use modelled::Machine;
pub use run::run;
pub use saved::distribution_file;
pub use scheduler::KeptSchedulers;
pub use simulate::{LogFiles, simulate, simulate_logged, simulate_on};

//! The virtual-time driver: a plan on modelled devices, with no clock but the simulation's.
//!
//! The setup of the jobs, their workers and the record are those of a real run; engine, device and
//! clock are models. The same plan on the same machine gives the same bytes every time.
#![forbid(unsafe_code)]

mod latency_profile;
mod modelled;
mod seeks;
mod simulate;

// Public items, listed once.
pub use latency_profile::distribution_file;
pub use modelled::Machine;
pub use simulate::{LogFiles, simulate, simulate_logged, simulate_on};

//! The virtual-time driver: runs a plan on modelled devices and the simulation's clock.
//!
//! Setups, workers and record are those of a real run; engine, device and clock are models. The
//! same plan on the same machine gives the same bytes every time.
#![forbid(unsafe_code)]

mod latency_profile;
mod modelled;
mod seeks;
mod simulate;

// Public items, listed once.
pub use latency_profile::{distribution_file, refuse_without_histograms};
pub use modelled::{MachineChange, MachineModel};
pub use simulate::{
    LogFiles, refuse_unmodelled, simulate, simulate_logged, simulate_on, simulate_quietly,
};

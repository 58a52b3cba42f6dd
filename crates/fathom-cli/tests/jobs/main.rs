//! Jobs as a user runs them: options, files, engines, signals.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may panic, and says what it skips"
)]

mod alone;
mod as_fio_reads;
mod bad_input;
mod commands;
#[path = "../common/mod.rs"]
mod common;
mod content;
mod debug;
mod device_features;
mod early_ends;
mod engines;
mod engines_without_files;
mod file_systems;
mod files_of_jobs;
mod interruptions;
mod machine;
mod merge;
mod metadata_engines;
mod offload;
mod offload_faults;
mod offload_limits;
mod priorities;
mod recording;
mod refusals;
mod replay;
mod save_distribution;
mod signals;
mod threads_of_jobs;
mod trims;
mod validity;

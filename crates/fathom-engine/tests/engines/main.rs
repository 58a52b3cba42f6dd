//! Engines: their contract, their names, what they share.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may panic, and says what it skips"
)]

mod bench;
mod conformance;
mod conformance_names;
mod devices;
mod offload_faults;
mod other_work;
mod peers;

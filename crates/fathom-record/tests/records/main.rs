//! Records of runs: read, merged, written.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod hosts;
mod stored;

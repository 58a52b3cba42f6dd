//! Jobs that verify, and what other runs and other programs verify after them.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may panic, and says what it skips"
)]

#[path = "../common/mod.rs"]
mod common;
mod verify;
mod verify_beside_fio;
mod verify_killed;
mod verify_map;
mod verify_only;
mod verify_policy;
mod verify_state;

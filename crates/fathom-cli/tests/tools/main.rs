//! Commands beside `run`, and the tools of fio.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may panic, and says what it skips"
)]

#[path = "../common/mod.rs"]
mod common;
mod documentation;
#[cfg(not(feature = "http"))]
mod http_missing;
mod lint;
mod micro;
mod peak;
mod table_hdd;
mod table_pacing;
mod tools;

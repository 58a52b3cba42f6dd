//! History, labs, comparisons and reports: use of the records that runs leave.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may panic, and says what it skips"
)]

#[path = "../common/mod.rs"]
mod common;
mod compare;
#[cfg(feature = "history")]
mod history;
#[cfg(feature = "history")]
mod history_export;
#[cfg(feature = "history")]
mod history_trend;
mod lab;
mod lab_killed;
mod lab_real;
mod report;
mod report_logs;
mod report_views;

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

/// Machine file of a device that takes 100 µs for each op, half a percent more or less by run.
const MACHINE: &str = r#"
[[device]]
names = ["*"]
model = "constant"
capacity_gib = 1
[device.constant]
latency_us = 100
[noise]
seed = 1
between_runs_percent = 0.5
"#;

//! Outputs of runs: reports, streams, logs, pages and traces.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may panic, and says what it skips"
)]

#[path = "../common/mod.rs"]
mod common;
mod consumers;
mod json_schema;
mod live;
mod log_convert;
mod logs;
mod output_files;
mod run_trace;
mod serve;
#[path = "../common/serving.rs"]
mod serving;
mod spared_inputs;
mod stalls;
mod status_interval;
mod stored_logs;
mod streams;
mod summary;
mod trace;
mod words_of_fio;

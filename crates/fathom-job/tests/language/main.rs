//! The job language: texts, and what is read from them.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod as_fio_reads;
mod beside_fio;
mod command_line;
mod device_options;
mod file_options;
mod job_files;
mod lifecycle_options;
mod log_options;
mod never_panics;
mod options;
mod pattern_options;
mod process_options;
mod refused_as_by_fio;
mod sharing_options;
mod world;

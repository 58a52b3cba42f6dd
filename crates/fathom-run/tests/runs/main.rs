//! Whole runs of jobs.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod accounting;
mod run;
mod together;

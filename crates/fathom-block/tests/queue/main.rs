//! The request queue and its layers.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod admission;
mod auto_pacing;
mod faults;
mod layers;
mod rate_pacing;
mod request_queue;
mod tag_set;

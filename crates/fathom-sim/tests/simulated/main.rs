//! Modelled devices, and jobs on them.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod array;
#[path = "../common/mod.rs"]
mod common;
mod errors;
mod hdd;
mod invalidation;
mod lifecycle;
mod rates;
mod replay;
mod ssd;
mod stalls;
mod trims;
mod verify;

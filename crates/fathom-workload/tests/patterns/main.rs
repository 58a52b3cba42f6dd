//! Patterns of offsets, sizes and directions.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod alone;
#[path = "../common/mod.rs"]
mod common;
mod memory;
mod on_device;
mod pattern_files_and_zones;
mod pattern_model;
mod pattern_random;
mod pattern_rules;
mod reading_back;
mod trim_ranges;

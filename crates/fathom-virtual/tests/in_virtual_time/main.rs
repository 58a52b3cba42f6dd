//! Runs in virtual time.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod arrivals;
mod common;
mod compressed_logs;
mod errors;
mod faults_of_models;
mod layers_of_machines;
mod lifecycle;
mod logs;
mod machine_files;
mod measuring_options;
mod noise_of_machines;
mod options;
mod order;
mod paces;
mod priorities;
mod ramps;
mod recordings;
mod replays;
mod seeds;
mod stalls;
mod tags;
mod timelines;
mod validity;
mod watched;
mod zones;

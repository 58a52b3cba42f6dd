//! Jobs on several hosts, and jobs whose storage is on another.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may panic, and says what it skips"
)]
#![allow(
    clippy::duplicate_mod,
    reason = "each server of the engines' tests brings its namespaces along"
)]

mod client_stats;
#[path = "../common/mod.rs"]
mod common;
mod hosts;
mod iscsi;
mod nbd;
mod net;
mod nfs;
mod nvme_tcp;
mod ranks;
#[path = "../common/serving.rs"]
mod serving;
mod target;
mod target_faults;

//! `cargo xtask bench hosts`: ranks of an MPI job on this machine, and records that are merged.
//!
//! All ranks read the same clock here, so the truth about clocks and starts is known.

mod conductor;
mod merged;
mod ranks;

use anyhow::Result;

use super::programs;
use super::report::{self, Row};

/// Rows, in the order in which they are measured.
const ROWS: &[Row] = &[
    ranks::RATE,
    ranks::STARTS,
    ranks::CLOCKS,
    ranks::INTERRUPT,
    ranks::IDLE,
    conductor::THOUSAND,
    merged::THOUSAND,
    merged::TEN_THOUSAND,
];

/// Runs `cargo xtask bench hosts`.
pub(super) fn run(args: &[String]) -> Result<()> {
    report::run_rows("hosts", ROWS, args, programs::build_with_ranks)
}

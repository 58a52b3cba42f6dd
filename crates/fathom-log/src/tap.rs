//! Ops kept in memory for the run itself, beside or instead of files.

use fathom_core::Direction;
use fathom_workload::{Batch, LogItem};

/// Completed op of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TappedOp {
    /// Start, on the run's clock, ns.
    pub started_ns: u64,
    /// Completion, on the same clock.
    pub completed_ns: u64,
    /// Offset in its file, bytes.
    pub offset: u64,
    /// Bytes.
    pub length: u32,
    /// Direction.
    pub direction: Direction,
}

/// Ops of all jobs, up to `OPS_MAX`.
#[derive(Debug, Default)]
pub struct TappedOps {
    /// By setup, in order of completion.
    pub by_setup: Vec<Vec<TappedOp>>,
    /// Ops that were not kept because there were too many.
    pub dropped: u64,
    kept: usize,
}

impl TappedOps {
    /// Creates a tap for `jobs` jobs.
    pub(crate) fn new(jobs: usize) -> Self {
        Self {
            by_setup: vec![Vec::new(); jobs],
            ..Self::default()
        }
    }

    /// Keeps the ops of a batch.
    pub(crate) fn keep(&mut self, batch: &Batch) {
        let ops = &mut self.by_setup[batch.job as usize];
        for item in batch.items() {
            let LogItem::Op(op) = item else {
                continue;
            };
            if self.kept >= OPS_MAX {
                self.dropped += 1;
                continue;
            }
            self.kept += 1;
            let completed_ns = batch.started.get() + op.time_ns;
            ops.push(TappedOp {
                started_ns: completed_ns.saturating_sub(op.clat + op.slat),
                completed_ns,
                offset: op.offset,
                length: op.length,
                direction: op.direction,
            });
        }
    }
}

/// Ops that are kept: 640 MiB.
const OPS_MAX: usize = 1 << 24;

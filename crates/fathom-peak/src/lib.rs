//! Raw maximum of a device or of the kernel's I/O path: the engines of a run, with the workload
//! reduced to a random block number.
//!
//! ```text
//! config → targets checked → threads: engine, files, barrier, spin … stop → outcome
//!                            caller's thread: one interval per second
//! ```
//!
//! Without worker, schedule and verification, this is the most that a loop around an engine can do.
//! Times are recorded only if latency is requested.

#![forbid(unsafe_code)]

mod compare;
mod contention;
mod error;
mod limits;
mod medium;
mod point;
mod spin;
mod targets;
mod threads;

use std::path::PathBuf;

use fathom_core::Nanos;
use fathom_record::PeakContention;
use fathom_stats::Latency;

/// Configuration of a measurement. Numbers of ops are per thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeakConfig {
    /// Files and block devices, or character devices of NVMe namespaces; empty with `nops`.
    pub targets: Vec<PathBuf>,
    /// Engine that performs the ops.
    pub engine: PeakEngine,
    /// Queue depth, ≥ 1.
    pub depth: u32,
    /// Ops per submission, 1 to `depth`.
    pub submit: u32,
    /// Completions to wait for when the queue is full, 1 to `depth`.
    pub complete: u32,
    /// Size of an op, ≥ 1.
    pub block_bytes: u32,
    /// Threads, each with its own engine, ≥ 1.
    pub threads: u32,
    /// Poll for completions instead of waiting for interrupts.
    pub polled: bool,
    /// Access blocks in order instead of at random.
    pub sequential: bool,
    /// Go through the page cache instead of using `O_DIRECT`.
    pub buffered: bool,
    /// Register the buffers.
    pub fixed_buffers: bool,
    /// Register the files.
    pub fixed_files: bool,
    /// Register the ring's own descriptor.
    pub register_ring: bool,
    /// Issue no-ops, to measure the ring alone.
    pub nops: bool,
    /// Write instead of read.
    pub write: bool,
    /// CPU of the first thread; the other threads take the following ones.
    pub cpu: Option<u32>,
    /// Record the latency of each op.
    pub latency: bool,
    /// Duration, > 0.
    pub duration: Nanos,
}

/// Engines that can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeakEngine {
    /// io_uring.
    Uring,
    /// NVMe commands through io_uring, past the block layer.
    Passthrough,
    /// Linux native AIO.
    Libaio,
    /// `pread` and `pwrite`.
    Sync,
}

impl PeakEngine {
    /// Returns the engine's name in job files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uring => "io_uring",
            Self::Passthrough => "io_uring_cmd",
            Self::Libaio => "libaio",
            Self::Sync => "psync",
        }
    }

    /// Returns whether it has a ring.
    pub(crate) const fn is_ring(self) -> bool {
        matches!(self, Self::Uring | Self::Passthrough)
    }
}

/// Work of all threads in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// Completed ops.
    pub ops: u64,
    /// System calls made.
    pub calls: u64,
    /// Measured length of the interval, nominally one second.
    pub span: Nanos,
}

/// Result of a measurement.
#[derive(Clone, Debug, Default)]
pub struct PeakOutcome {
    /// One per started second; the last may be shorter.
    pub intervals: Vec<Interval>,
    /// Sum over all intervals.
    pub total: Interval,
    /// Latency from just before an op is prepared until it is reaped.
    pub latency: Option<Latency>,
    /// Waits of the threads for a processor, if the kernel counts them.
    pub contention: Option<PeakContention>,
    /// Optional kernel features in use.
    pub features: Vec<String>,
    /// A stop request ended the measurement early.
    pub interrupted: bool,
}

/// Runs a measurement. Calls `tell` once per second; `stops` returns the number of stop requests.
///
/// # Errors
/// The configuration or a target is unsuitable, or an engine or an op failed.
pub fn peak(
    config: &PeakConfig,
    tell: &mut dyn FnMut(&Interval),
    stops: &dyn Fn() -> u32,
) -> Result<PeakOutcome, PeakError> {
    let targets = examine(config)?;
    threads::run(config, &targets, tell, stops)
}

/// Checks a measurement without running it.
///
/// # Errors
/// The configuration or a target is unsuitable.
pub fn check(config: &PeakConfig) -> Result<(), PeakError> {
    examine(config).map(drop)
}

fn examine(config: &PeakConfig) -> Result<Vec<targets::CheckedTarget>, PeakError> {
    limits::check(config)?;
    targets::check(config)
}

// Public items, listed once.
pub use compare::compare;
pub use contention::contention_warning;
pub use error::PeakError;
pub use medium::storage_warning;
pub use point::{Repeats, SWEEP_DEPTHS};
pub use targets::block_of;

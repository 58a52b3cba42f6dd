//! The raw maximum of a device or of the kernel's path: the engines of a run with the workload
//! reduced to a random block number.
//!
//! ```text
//! config → targets looked at → threads: engine, files, gate, spin … stop → outcome
//!                               the caller's thread: once a second, what was done
//! ```
//!
//! There is no worker here, no schedule and no verification: what is left is what a loop around an
//! engine can do at most. Times are kept only where latency is asked for.

#![forbid(unsafe_code)]

mod error;
mod limits;
mod point;
mod spin;
mod targets;
mod threads;

use std::path::PathBuf;

use fathom_core::Nanos;
use fathom_stats::Latency;

/// What is to be measured. Numbers of ops hold for each thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeakConfig {
    /// Files and devices; none with `nops`.
    pub targets: Vec<PathBuf>,
    /// What does the ops.
    pub engine: PeakEngine,
    /// Ops in flight at most, ≥ 1.
    pub depth: u32,
    /// Ops handed over in one system call, 1 to `depth`.
    pub submit: u32,
    /// Completions waited for when no more can be handed over, 1 to `depth`.
    pub complete: u32,
    /// Bytes of an op, ≥ 1.
    pub block_bytes: u32,
    /// Threads, each with an engine of its own, ≥ 1.
    pub threads: u32,
    /// Completions are polled for instead of coming by interrupt.
    pub polled: bool,
    /// Block after block instead of random ones.
    pub sequential: bool,
    /// Through the page cache.
    pub buffered: bool,
    /// Register the buffers.
    pub fixed_buffers: bool,
    /// Register the files.
    pub fixed_files: bool,
    /// Register the ring's own descriptor.
    pub register_ring: bool,
    /// Ops that do nothing.
    pub nops: bool,
    /// Write instead of read.
    pub write: bool,
    /// The first thread's processor; the others take those that follow.
    pub cpu: Option<u32>,
    /// Keep the latency of each op.
    pub latency: bool,
    /// How long, s, ≥ 1.
    pub seconds: u32,
}

/// The engines that are worth asking for their maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeakEngine {
    /// A ring shared with the kernel.
    Uring,
    /// Linux's native asynchronous I/O.
    Libaio,
    /// One `pread` or `pwrite` for each op.
    Sync,
}

impl PeakEngine {
    /// The engine's name in job files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uring => "io_uring",
            Self::Libaio => "libaio",
            Self::Sync => "psync",
        }
    }
}

/// What was done in one second, by all threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// Ops that completed.
    pub ops: u64,
    /// System calls that were made for them.
    pub calls: u64,
    /// How long it was in truth.
    pub span: Nanos,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct PeakOutcome {
    /// Second by second; the last may be shorter.
    pub intervals: Vec<Interval>,
    /// From the first interval's start to the last one's end.
    pub total: Interval,
    /// From the moment before an op was laid down to the moment it was found complete.
    pub latency: Option<Latency>,
    /// What of the kernel's optional features was in use.
    pub features: Vec<String>,
    /// It was told to stop before its time.
    pub interrupted: bool,
}

/// Measures. `tell` is called once a second; `stops` says how often the user asked to stop.
///
/// # Errors
/// What is wrong with the configuration or the targets, or what an engine or an op failed with.
pub fn peak(
    config: &PeakConfig,
    tell: &mut dyn FnMut(&Interval),
    stops: &dyn Fn() -> u32,
) -> Result<PeakOutcome, PeakError> {
    limits::check(config)?;
    let targets = targets::look_at(config)?;
    threads::run(config, &targets, tell, stops)
}

// Public items, listed once.
pub use error::PeakError;
pub use point::SWEEP_DEPTHS;
pub use targets::block_of;

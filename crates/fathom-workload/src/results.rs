//! Results of one worker.

use fathom_core::{FileIndex, Nanos, PerDirection, Tick};
use fathom_stats::{Latency, SampleStats};

/// Results of one worker, without the ramp time.
#[derive(Clone, Debug)]
pub struct Results {
    /// Results by direction.
    pub directions: PerDirection<DirectionResults>,
    /// Latency by I/O priority, the thread's own (0) first; empty if all ops have that one.
    pub priorities: PerDirection<Vec<PriorityLatency>>,
    /// Number of counted syncs.
    pub syncs: u64,
    /// Latency of syncs.
    pub sync: Latency,
    /// Ops issued by depth: the index is the number in flight, the op included.
    pub depth_at_issue: Vec<u64>,
    /// Submissions by number of ops: 0, 1–4, 5–8, 9–16, 17–32, 33–64, more.
    pub submit_sizes: [u64; 7],
    /// Reaps by number of completions, in the same buckets.
    pub complete_sizes: [u64; 7],
    /// Error that ended the job.
    pub error: Option<JobError>,
    /// Tolerated errors.
    pub tolerated: Option<ToleratedErrors>,
    /// Depth found by a search.
    pub depth_found: Option<u32>,
    /// Start of measuring.
    pub started: Tick,
    /// Completion of the last op.
    pub ended: Tick,
}

/// Results of one direction.
#[derive(Clone, Debug)]
pub struct DirectionResults {
    /// Ops completed.
    pub ios: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Short transfers, whose rest was issued again.
    pub short_ios: u64,
    /// Measured runtime.
    pub runtime: Nanos,
    /// issue − start.
    pub slat: Latency,
    /// complete − issue.
    pub clat: Latency,
    /// complete − start.
    pub lat: Latency,
    /// start − due; kept only under a rate.
    pub lag: Option<Latency>,
    /// complete − due; kept only under a rate.
    pub resp: Option<Latency>,
    /// Bandwidth samples, KiB/s.
    pub bandwidth: SampleStats,
    /// IOPS samples.
    pub iops: SampleStats,
}

/// Latency of the ops of one I/O priority.
#[derive(Clone, Debug)]
pub struct PriorityLatency {
    /// Priority as the kernel encodes it; 0 for the thread's own.
    pub priority: u16,
    /// lat if its histogram is kept, otherwise clat.
    pub latency: Latency,
}

/// Error that ended a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobError {
    /// Errno.
    pub errno: u32,
    /// Failed operation: `read`, `write`, `trim`, `fsync`, `verify`, `rate_min`…
    pub what: &'static str,
    /// File, if it concerns one.
    pub file: FileIndex,
    /// Byte offset in the file.
    pub offset: u64,
    /// Length in bytes.
    pub length: u32,
    /// Additional description.
    pub detail: Option<String>,
}

/// Errors that a job tolerated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToleratedErrors {
    /// Number of errors.
    pub total: u64,
    /// First error.
    pub first: JobError,
}

/// Progress of a worker, counted from its start, ramp time included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Ops completed.
    pub ios: PerDirection<u64>,
    /// Bytes moved.
    pub bytes: PerDirection<u64>,
    /// Current phase.
    pub phase: Phase,
}

/// Phase of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Waiting for `startdelay` to pass.
    #[default]
    Delayed,
    /// Running in its ramp time.
    Ramp,
    /// Running.
    Running,
    /// Reading back and verifying.
    Verifying,
    /// Syncing.
    Syncing,
    /// Done.
    Finished,
}

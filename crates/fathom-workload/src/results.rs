//! What one worker measured.

use fathom_core::{FileIndex, Nanos, PerDirection, Tick};
use fathom_stats::{Latency, SampleStats};

/// What one worker measured, ramp time left out.
#[derive(Clone, Debug)]
pub struct Results {
    /// By direction.
    pub directions: PerDirection<DirectionResults>,
    /// How long ops of each I/O priority took, the thread's own (0) first; empty where all have
    /// that one.
    pub priorities: PerDirection<Vec<PriorityLatency>>,
    /// Counted syncs.
    pub syncs: u64,
    /// How long they took.
    pub sync: Latency,
    /// Ops issued while so many (the index) were in flight, themselves included.
    pub depth_at_issue: Vec<u64>,
    /// Submissions by ops handed over: 0, 1–4, 5–8, 9–16, 17–32, 33–64, more.
    pub submit_sizes: [u64; 7],
    /// Reapings by completions taken, same buckets.
    pub complete_sizes: [u64; 7],
    /// The error that ended the job.
    pub error: Option<JobError>,
    /// Errors that did not.
    pub tolerated: Option<ToleratedErrors>,
    /// The depth that a search for one came to.
    pub depth_found: Option<u32>,
    /// When measuring began.
    pub started: Tick,
    /// When the last op had completed.
    pub ended: Tick,
}

/// One direction of one worker.
#[derive(Clone, Debug)]
pub struct DirectionResults {
    /// Ops completed.
    pub ios: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Short transfers whose rest was issued again.
    pub short_ios: u64,
    /// Measured time of this direction.
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

/// Ops of one I/O priority.
#[derive(Clone, Debug)]
pub struct PriorityLatency {
    /// The kernel's number; 0 for the thread's own.
    pub priority: u16,
    /// complete − start where the histogram of lat is kept, else complete − issue.
    pub latency: Latency,
}

/// The error that ended a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobError {
    /// The system's number.
    pub errno: u32,
    /// What failed: `read`, `write`, `trim`, `fsync`, `verify`, `rate_min`…
    pub what: &'static str,
    /// The file.
    pub file: FileIndex,
    /// Byte offset in the file.
    pub offset: u64,
    /// Bytes.
    pub length: u32,
    /// More, where there is more to say.
    pub detail: Option<String>,
}

/// Errors that did not end a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToleratedErrors {
    /// How many.
    pub total: u64,
    /// The first of them.
    pub first: JobError,
}

/// How far a worker has come; counted from its very start, ramp time included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Ops completed.
    pub ios: PerDirection<u64>,
    /// Bytes moved.
    pub bytes: PerDirection<u64>,
    /// What it is doing.
    pub phase: Phase,
}

/// What a worker is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Waiting for `startdelay` to pass.
    #[default]
    Delayed,
    /// Running, not yet counted.
    Ramp,
    /// Running.
    Running,
    /// Reading back what was written.
    Verifying,
    /// Making it durable.
    Syncing,
    /// Done.
    Finished,
}

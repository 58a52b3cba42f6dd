//! Results of one worker.

use fathom_core::{Direction, Errno, FileIndex, Nanos, OpKind, PerDirection, Tick};
use fathom_stats::{Latency, SampleStats};

use crate::block_lives::BlockLifetimes;
use crate::depth_search::FoundDepth;
use crate::stalls::ObservedStall;
use crate::verify::Mismatches;

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
    /// Zones reset, with `zonemode=zbd`.
    pub zone_resets: u64,
    /// Error that ended the job.
    pub error: Option<JobError>,
    /// Tolerated errors.
    pub tolerated: Option<ToleratedErrors>,
    /// Mismatches of verified data, the one that ended the job included.
    pub mismatches: Mismatches,
    /// Depth found by a search.
    pub depth_found: Option<FoundDepth>,
    /// Lives of blocks, if they are followed.
    pub block_lives: Option<BlockLifetimes>,
    /// Worst stalls, in order of time.
    pub stalls: Vec<ObservedStall>,
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
    /// Errno of the op, or the one that fio reports for the rule that was broken.
    pub errno: Errno,
    /// Activity of the job when it failed.
    pub activity: JobActivity,
    /// File, if it concerns one.
    pub file: FileIndex,
    /// Byte offset in the file.
    pub offset: u64,
    /// Length in bytes.
    pub length: u32,
    /// Additional description.
    pub detail: Option<String>,
}

/// Activity of a job that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobActivity {
    /// Reading.
    Read,
    /// Writing.
    Write,
    /// Trimming.
    Trim,
    /// Syncing.
    Sync,
    /// Verifying what was read.
    Verify,
    /// Keeping the maximum latency (`max_latency`, `latency_target`) of this direction.
    MaxLatency(Direction),
    /// Keeping the minimum rate (`rate_min`).
    RateMin,
    /// Closing and opening a file between passes, and opening one of a replay.
    Reopen,
    /// Closing a file of a replay.
    Close,
    /// Reading the log of a replay.
    Replay,
    /// Recording ops.
    Record,
}

impl JobActivity {
    /// Returns the name, as error texts begin with it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Trim => "trim",
            Self::Sync => "sync",
            Self::Verify => "verify",
            Self::MaxLatency(direction) => direction.name(),
            Self::RateMin => "rate_min",
            Self::Reopen => "open",
            Self::Close => "close",
            Self::Replay => "read_iolog",
            Self::Record => "write_iolog",
        }
    }
}

impl From<Direction> for JobActivity {
    fn from(direction: Direction) -> Self {
        match direction {
            Direction::Read => Self::Read,
            Direction::Write => Self::Write,
            Direction::Trim => Self::Trim,
        }
    }
}

impl From<OpKind> for JobActivity {
    fn from(kind: OpKind) -> Self {
        match kind {
            OpKind::Data(direction) => direction.into(),
            OpKind::Sync(_) => Self::Sync,
        }
    }
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
pub struct WorkerProgress {
    /// Ops completed.
    pub ios: PerDirection<u64>,
    /// Bytes moved.
    pub bytes: PerDirection<u64>,
    /// Ops in flight.
    pub in_flight: u32,
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

//! Figures of a moment, as views show them.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use fathom_setup::Snapshot;
use serde::Serialize;

use super::Track;

/// State of a run at one moment.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Figures {
    /// Phase of the run.
    pub(crate) phase: RunPhase,
    /// Time since the first job started.
    pub(crate) elapsed_ms: u64,
    /// Percentage done; `None` while unknown.
    pub(crate) percent: Option<f64>,
    /// Estimated time left; `None` while unknown.
    pub(crate) eta_s: Option<u64>,
    /// Jobs that run, and all of them.
    pub(crate) running: u32,
    /// All jobs.
    pub(crate) planned: usize,
    /// Length of the "last second".
    pub(crate) interval_ms: u64,
    /// All jobs together.
    pub(crate) total: Row,
    /// Reporting groups, if there is more than one.
    pub(crate) groups: Vec<Row>,
    /// Jobs, the first ones if there are many.
    pub(crate) jobs: Vec<Row>,
    /// Jobs without a row.
    pub(crate) more_jobs: usize,
    /// Course of all jobs, then of the groups.
    pub(crate) tracks: Vec<Track>,
    /// Disks under the files.
    pub(crate) disks: Vec<DiskRow>,
    /// Warnings, in the order in which they came.
    pub(crate) warnings: Vec<String>,
    /// Warnings for which there was no room.
    pub(crate) more_warnings: u64,
    /// Snapshot from which the figures were made.
    #[serde(skip)]
    pub(crate) snapshot: Arc<Snapshot>,
    /// Jobs that metrics name alike, by their places in the snapshot.
    #[serde(skip)]
    pub(crate) alike: Arc<[AlikeJobs]>,
    /// All of it as JSON, made for the first view that asks.
    #[serde(skip)]
    pub(crate) json: OnceLock<String>,
}

impl Figures {
    /// Returns the figures as JSON, on one line.
    pub(crate) fn json(&self) -> &str {
        // Cannot fail: there is no map, and numbers that JSON lacks become null.
        let json = || serde_json::to_string(self).unwrap_or_default();
        self.json.get_or_init(json)
    }
}

/// Clones of a job, which share its name and group.
#[derive(Clone, Debug)]
pub(crate) struct AlikeJobs {
    /// Name of the job, as it is.
    pub(crate) name: String,
    /// Reporting group, from 0.
    pub(crate) group: u32,
    /// Their places in the snapshot.
    pub(crate) jobs: Range<usize>,
}

/// Phase of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RunPhase {
    /// No job has started.
    #[default]
    Preparing,
    /// Jobs run.
    Running,
    /// The run was interrupted, and ops in flight are awaited.
    Stopping,
    /// The last job has ended.
    Ended,
}

impl RunPhase {
    /// Returns the word for it.
    #[cfg(feature = "live")]
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Preparing => "preparing",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Ended => "ended",
        }
    }
}

/// Figures of a job, a group, or all jobs.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Row {
    /// Name, without characters that would act on a terminal.
    pub(crate) name: String,
    /// Reporting group of a job.
    pub(crate) group: u32,
    /// State of a job; of several, how many run.
    pub(crate) state: String,
    /// Mean number of ops in flight in the last second; `None` if the engine is synchronous.
    pub(crate) in_flight: Option<f64>,
    /// Sum of `iodepth` of the jobs that run.
    pub(crate) depth: u64,
    /// Directions with ops.
    pub(crate) directions: Vec<DirectionRow>,
}

/// Figures of a direction.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct DirectionRow {
    /// "read", "write" or "trim".
    pub(crate) direction: &'static str,
    /// Ops per second in the last second.
    pub(crate) iops: u64,
    /// Bytes per second in the last second.
    pub(crate) bytes_per_s: u64,
    /// Ops so far, ramp time included.
    pub(crate) ios: u64,
    /// Bytes so far, ramp time included.
    pub(crate) bytes: u64,
    /// Latencies in the last second; `None` if they are not kept apart for this row.
    pub(crate) last: Option<LatencyRow>,
    /// Latencies since measuring began.
    pub(crate) run: Option<LatencyRow>,
}

/// Latencies of some ops.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct LatencyRow {
    /// Ops.
    pub(crate) ops: u64,
    /// [`SHOWN_PERCENTILES`]; `None` if fewer than ten ops are beyond it.
    pub(crate) percentiles_ns: [Option<u64>; SHOWN_PERCENTILES.len()],
}

/// Percentiles that views show.
pub(crate) const SHOWN_PERCENTILES: [f64; 4] = [50.0, 90.0, 99.0, 99.9];

/// Activity of a disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct DiskRow {
    /// Name: `vda`, `nvme0n1`…
    pub(crate) name: String,
    /// Share of the last second with requests in flight.
    pub(crate) util_percent: f64,
    /// Mean number of requests in the queue.
    pub(crate) queue: f64,
    /// Requests per second.
    pub(crate) iops: u64,
    /// Bytes per second.
    pub(crate) bytes_per_s: u64,
}

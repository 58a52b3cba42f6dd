//! Results of `fathom trace`: a disk's requests, or io_uring's task work.

use serde::{Deserialize, Serialize};

use crate::{Machine, PeakLatency, SeekRecord, Warning};

/// Requests of a block device and their latencies.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TraceRecord {
    /// Version of the layout; see [`TRACE_VERSION`].
    pub version: u32,
    /// End of the trace: milliseconds since 1970-01-01 UTC.
    pub timestamp_ms: u64,
    /// Name of the device, without /dev.
    pub device: String,
    /// Duration of the trace.
    pub wall_ns: u64,
    /// Events that the kernel dropped for lack of buffer space; all counts miss them.
    pub lost_events: u64,
    /// Machine that was traced.
    pub machine: Option<Machine>,
    /// Distances between reads and writes, in order of dispatch.
    pub seeks: SeekRecord,
    /// Directions with at least one request.
    pub directions: Vec<TracedDirection>,
    /// Warnings to the user.
    pub warnings: Vec<Warning>,
}

/// Current version of the layout of [`TraceRecord`] and [`UringTraceRecord`].
pub const TRACE_VERSION: u32 = 1;

/// Requests of one direction.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TracedDirection {
    /// `read`, `write`, `trim`, `flush` or `other`.
    pub direction: String,
    /// Requests dispatched to the device.
    pub requests: u64,
    /// Bytes of these requests.
    pub moved_bytes: u64,
    /// Requests merged into others before dispatch.
    pub merged: u64,
    /// Requeues: dispatched requests that the device could not accept.
    pub requeued: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Time from insertion into a queue to dispatch. Requests dispatched directly are not counted.
    pub queued: PeakLatency,
    /// Time from dispatch to completion.
    pub device_time: PeakLatency,
    /// Time from insertion to completion; from dispatch for requests dispatched directly.
    pub total: PeakLatency,
}

/// Runs of io_uring task work and their batch sizes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct UringTraceRecord {
    /// Version of the layout; see [`TRACE_VERSION`].
    pub version: u32,
    /// End of the trace: milliseconds since 1970-01-01 UTC.
    pub timestamp_ms: u64,
    /// Traced process; `None` for all.
    pub pid: Option<u32>,
    /// Duration of the trace.
    pub wall_ns: u64,
    /// Events that the kernel dropped for lack of buffer space.
    pub lost_events: u64,
    /// Machine that was traced.
    pub machine: Option<Machine>,
    /// Task work by kernel event.
    pub work: Vec<UringWork>,
    /// Warnings to the user.
    pub warnings: Vec<Warning>,
}

/// Task work counted by one kernel event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UringWork {
    /// Name of the event: `io_uring_task_work_run`…
    pub event: String,
    /// The kernel has this event.
    pub offered: bool,
    /// Number of runs.
    pub runs: u64,
    /// Work items over all runs.
    pub items: u64,
    /// Batch sizes: work items per run.
    pub batches: UringBatches,
}

/// Histogram of batch sizes, as columns of equal length.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UringBatches {
    /// Smallest batch size of each bucket.
    pub from: Vec<u64>,
    /// Largest batch size of each bucket.
    pub to: Vec<u64>,
    /// Number of batches in each bucket.
    pub count: Vec<u64>,
}

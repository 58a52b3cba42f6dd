//! What `fathom trace` leaves behind: what the kernel said of a disk's requests, or of io_uring.

use serde::{Deserialize, Serialize};

use crate::{Machine, PeakLatency, SeekRecord, Warning};

/// What a block device was given, and how long it took.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TraceRecord {
    /// The layout's version; see `TRACE_VERSION`.
    pub version: u32,
    /// When it ended: milliseconds since 1970-01-01 UTC.
    pub timestamp_ms: u64,
    /// The device's name, without /dev.
    pub device: String,
    /// How long was traced.
    pub wall_ns: u64,
    /// Events that the kernel had no room for; what they told is missing everywhere.
    pub lost_events: u64,
    /// Where it ran.
    pub machine: Option<Machine>,
    /// Reads and writes in the order in which the device was given them.
    pub seeks: SeekRecord,
    /// Each direction of which there was a request.
    pub directions: Vec<TracedDirection>,
    /// What the user should know.
    pub warnings: Vec<Warning>,
}

/// The version of the layout of `TraceRecord` and `UringTraceRecord`.
pub const TRACE_VERSION: u32 = 1;

/// The requests of one direction.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TracedDirection {
    /// `read`, `write`, `trim`, `flush` or `other`.
    pub direction: String,
    /// Requests that were given to the device.
    pub requests: u64,
    /// Bytes of them.
    pub moved_bytes: u64,
    /// Requests that had become part of others before.
    pub merged: u64,
    /// How often one was taken back because the device had no room for it.
    pub requeued: u64,
    /// Requests that ended with an error.
    pub failed: u64,
    /// From the moment a request was put into a queue to the one it was given to the device. A
    /// request that was given to it at once is not in here.
    pub queued: PeakLatency,
    /// From there to its completion.
    pub device_time: PeakLatency,
    /// Both together; of a request that was given to the device at once the second alone.
    pub total: PeakLatency,
}

/// How often io_uring ran work in the context of a task, and how much at a time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct UringTraceRecord {
    /// The layout's version; see `TRACE_VERSION`.
    pub version: u32,
    /// When it ended: milliseconds since 1970-01-01 UTC.
    pub timestamp_ms: u64,
    /// The process that was traced; none for all of them.
    pub pid: Option<u32>,
    /// How long was traced.
    pub wall_ns: u64,
    /// Events that the kernel had no room for.
    pub lost_events: u64,
    /// Where it ran.
    pub machine: Option<Machine>,
    /// One for each event of the kernel that tells of it.
    pub work: Vec<UringWork>,
    /// What the user should know.
    pub warnings: Vec<Warning>,
}

/// What one event told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UringWork {
    /// Its name: `io_uring_task_work_run`.
    pub event: String,
    /// Whether this kernel has it.
    pub offered: bool,
    /// How often work was run.
    pub runs: u64,
    /// Pieces of work that were run.
    pub items: u64,
    /// How many at a time.
    pub batches: UringBatches,
}

/// A histogram of batch sizes, as columns of equal length.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UringBatches {
    /// The smallest batch of each bucket.
    pub from: Vec<u64>,
    /// The largest.
    pub to: Vec<u64>,
    /// How many batches fell into it.
    pub count: Vec<u64>,
}

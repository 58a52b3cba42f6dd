//! Stages of a run's ops, from the kernel's block events (`fathom run --trace`).

use serde::{Deserialize, Serialize};

use crate::PeakLatency;

/// Stages of the ops of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DeviceTraceRecord {
    /// Events that the kernel dropped for lack of buffer space; their ops were not joined.
    pub lost_events: u64,
    /// Requests and ops that were not kept because there were too many.
    pub dropped: u64,
    /// Jobs, in order of creation.
    pub jobs: Vec<TracedJob>,
}

/// Stages of the ops of one job: `before + device + after` is lat.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TracedJob {
    /// Name of the job.
    pub name: String,
    /// Thread number over the whole run, from 1.
    pub number: u32,
    /// Devices of its files, without `/dev/`.
    pub devices: Vec<String>,
    /// Ops that completed while measuring.
    pub ops: u64,
    /// Ops joined with their requests; only these have stages.
    pub joined: u64,
    /// Joined ops that had several requests.
    pub split: u64,
    /// Joined ops whose request served other ops as well.
    pub merged: u64,
    /// Ops without a request: they did not reach the device.
    pub absent: u64,
    /// Ops of which only a part had requests, or that had requests in common with others.
    pub unclear: u64,
    /// Time from start to the issue of the first request.
    pub before: PeakLatency,
    /// Time from that to the completion of the last request.
    pub device: PeakLatency,
    /// Time from that until the job has the completion.
    pub after: PeakLatency,
    /// Last part of `after`: time since the kernel woke the job's thread, of the ops for which it
    /// had to.
    pub wake_up: PeakLatency,
    /// Sum of the stages.
    pub total: PeakLatency,
}

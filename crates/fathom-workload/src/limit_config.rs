//! Configuration of the limits that few jobs have.

use std::sync::Arc;

use fathom_core::{Nanos, PerDirection};

use crate::depth_search::LatencyTarget;
use crate::flow::FlowShare;
use crate::steady::SteadyGroup;

/// Configuration of a job's limits.
#[derive(Clone, Debug, Default)]
pub struct LimitConfig {
    /// Largest number of ops to issue over all passes.
    pub ops: Option<u64>,
    /// Latency above which an op ends the job with an error.
    pub slowest: PerDirection<Option<Nanos>>,
    /// Latency target of a depth search.
    pub target: Option<LatencyTarget>,
    /// Share in a flow with other jobs.
    pub flow: Option<FlowShare>,
    /// Bytes to move before counting starts.
    pub ramp_bytes: u64,
    /// Group whose steady state ends the job.
    pub steady: Option<Arc<SteadyGroup>>,
}

impl LimitConfig {
    /// Returns whether any limit applies to single ops.
    pub(crate) fn apply_to_ops(&self) -> bool {
        let Self {
            ops,
            slowest,
            target,
            flow,
            ramp_bytes,
            // Sampled once per interval.
            steady: _,
        } = self;
        let bounds = slowest.iter().any(|(_, bound)| bound.is_some());
        bounds || *ramp_bytes > 0 || ops.is_some() || target.is_some() || flow.is_some()
    }
}

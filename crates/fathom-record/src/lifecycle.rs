//! Results of the rules that end jobs early.

use serde::{Deserialize, Serialize};

/// Result of a search for the largest depth that meets a latency target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyTargetRecord {
    /// Latency that ops had to meet.
    pub target_ns: u64,
    /// Time for which each depth was tried.
    pub window_us: u64,
    /// Percentage of ops that had to meet the target.
    pub share_percent: f64,
    /// Depth found.
    pub depth: u32,
    /// Largest depth that met the target, 0 if not even 1 did; `None` if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth_met: Option<u32>,
}

/// Result of the wait for a steady state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SteadyStateRecord {
    /// Figure observed: `iops`, `bw` or `lat`.
    pub figure: String,
    /// Judged by slope; otherwise by the largest deviation from the mean.
    pub by_slope: bool,
    /// Largest allowed value of the criterion, in the figure's unit or in percent of its mean.
    pub limit: f64,
    /// Limit and criterion are percentages.
    pub is_percent: bool,
    /// Length of the window.
    pub window_s: u64,
    /// The steady state was reached.
    pub attained: bool,
    /// Slope or deviation of the last full window, in the figure's unit.
    pub value: f64,
    /// Value compared with the limit, with the sign of the slope.
    pub criterion: f64,
    /// Bytes per second in each interval, oldest first; 0 for intervals not measured.
    pub bytes_per_s: Vec<u64>,
    /// Ops per second in each interval.
    pub ops_per_s: Vec<u64>,
    /// Mean latency in each interval.
    pub lat_ns: Vec<u64>,
}

/// Presentation of directions in reports (`unified_rw_reporting`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unified {
    /// Each direction separately.
    #[default]
    None,
    /// All directions merged.
    Mixed,
    /// Each direction separately, then all merged.
    Both,
}

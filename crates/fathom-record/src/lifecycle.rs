//! What came of the rules by which jobs end early.

use serde::{Deserialize, Serialize};

/// The search for the largest depth that keeps to a latency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyTargetRecord {
    /// Ops were to take no longer.
    pub target_ns: u64,
    /// How long each depth was tried.
    pub window_us: u64,
    /// Of all ops so many were to keep to it.
    pub share_percent: f64,
    /// The depth it came to.
    pub depth: u32,
}

/// What became of the wait for a steady state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SteadyStateRecord {
    /// What was looked at: `iops`, `bw` or `lat`.
    pub figure: String,
    /// By the slope; else by the largest distance from the mean.
    pub by_slope: bool,
    /// At most so much, of the figure's unit or percent of its mean.
    pub limit: f64,
    /// The limit, and what is held against it, are in percent.
    pub is_percent: bool,
    /// The length of the window.
    pub window_s: u64,
    /// It was reached.
    pub attained: bool,
    /// The slope or the deviation of the last full window, of the figure's unit.
    pub value: f64,
    /// What was held against the limit, with the sign of the slope.
    pub criterion: f64,
    /// Bytes per second of each interval, oldest first; zeros where there was none.
    pub bytes_per_s: Vec<u64>,
    /// Ops per second of each interval.
    pub ops_per_s: Vec<u64>,
    /// The mean latency of each interval.
    pub lat_ns: Vec<u64>,
}

/// Whether directions are shown as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unified {
    /// Each by itself.
    #[default]
    None,
    /// As one.
    Mixed,
    /// Each by itself, and then as one.
    Both,
}

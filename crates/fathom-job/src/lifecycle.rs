//! Options on the start and end of a job and its relation to other jobs.

use fathom_core::{Nanos, PerDirection};

/// Start and end conditions of a job, flow control, and steady-state detection.
#[derive(Clone, Debug, PartialEq)]
pub struct LifecycleOptions {
    /// `wait_for`: name of the job whose clones must all have ended.
    pub wait_for: Option<String>,
    /// `exitall`: when any job ends, others end with it. Applies to all jobs if set in one.
    pub exitall: bool,
    /// `exitall_on_error`: the same if this job fails.
    pub exitall_on_error: bool,
    /// `exit_what`.
    pub exit_what: ExitWhat,
    /// `exec_prerun`: a command before the job.
    pub exec_prerun: Option<String>,
    /// `exec_postrun`: a command after the job.
    pub exec_postrun: Option<String>,
    /// `ignore_error`: errors that reads, writes and verification tolerate; empty: EIO and EILSEQ.
    pub ignore_error: [Vec<u32>; 3],
    /// `error_dump`.
    pub error_dump: bool,
    /// `unified_rw_reporting`.
    pub unified: Unified,
    /// `flow`: weight of the job in its `flow_id`; 0: in no flow.
    pub flow: u32,
    /// `flow_id`.
    pub flow_id: u32,
    /// `flow_sleep`.
    pub flow_sleep: Nanos,
    /// `max_latency`.
    pub max_latency: PerDirection<Option<Nanos>>,
    /// `latency_target`; zero: none.
    pub latency_target: Nanos,
    /// `latency_window`.
    pub latency_window: Nanos,
    /// `latency_percentile`.
    pub latency_percentile: f64,
    /// `latency_run`.
    pub latency_run: bool,
    /// `steadystate`.
    pub steady: Option<SteadyState>,
    /// `steadystate_duration`; zero: no detection.
    pub steady_duration: Nanos,
    /// `steadystate_ramp_time`.
    pub steady_ramp: Nanos,
    /// `steadystate_check_interval`.
    pub steady_interval: Nanos,
}

impl Default for LifecycleOptions {
    fn default() -> Self {
        Self {
            wait_for: None,
            exitall: false,
            exitall_on_error: false,
            exit_what: ExitWhat::Group,
            exec_prerun: None,
            exec_postrun: None,
            ignore_error: Default::default(),
            error_dump: false,
            unified: Unified::None,
            flow: 0,
            flow_id: 0,
            flow_sleep: Nanos::ZERO,
            max_latency: PerDirection::all(None),
            latency_target: Nanos::ZERO,
            latency_window: Nanos::ZERO,
            latency_percentile: 100.0,
            latency_run: false,
            steady: None,
            steady_duration: Nanos::ZERO,
            steady_ramp: Nanos::ZERO,
            steady_interval: Nanos::from_secs(1),
        }
    }
}

/// `exit_what`: jobs that end together with a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExitWhat {
    /// Jobs of the same reporting group.
    #[default]
    Group,
    /// Jobs between the same stonewalls.
    Stonewall,
    /// All jobs, including those not yet started.
    All,
}

/// `unified_rw_reporting`: aggregation of directions in reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unified {
    /// Separately.
    #[default]
    None,
    /// Combined.
    Mixed,
    /// Separately and combined.
    Both,
}

/// `steadystate`: the steady-state criterion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyState {
    /// The observed figure.
    pub figure: SteadyFigure,
    /// By slope, else by the largest deviation from the mean.
    pub slope: bool,
    /// Upper limit, in IOPS, bytes per second, nanoseconds, or percent of the mean.
    pub limit: f64,
    /// Set if the limit is in percent.
    pub percent: bool,
}

/// Figure observed by `steadystate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SteadyFigure {
    /// `iops`, `iops_slope`.
    Iops,
    /// `bw`, `bw_slope`.
    Bandwidth,
    /// `lat`, `lat_slope`.
    Latency,
}

//! The options that tie a job to others, and to its own end.

use fathom_core::{Nanos, PerDirection};

/// Who starts after whom, who ends with whom, and when a job ends by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct LifecycleOptions {
    /// `wait_for`: the name of the job whose clones must all have ended.
    pub wait_for: Option<String>,
    /// `exitall`: when a job ends, others end with it. Set in one job, it holds for all.
    pub exitall: bool,
    /// `exitall_on_error`: the same, where this job ends with an error.
    pub exitall_on_error: bool,
    /// `exit_what`.
    pub exit_what: ExitWhat,
    /// `exec_prerun`: a command before the job.
    pub exec_prerun: Option<String>,
    /// `exec_postrun`: a command after the job.
    pub exec_postrun: Option<String>,
    /// `ignore_error`: errors that reads, writes and verification go past; empty: EIO and EILSEQ.
    pub ignore_error: [Vec<u32>; 3],
    /// `error_dump`.
    pub error_dump: bool,
    /// `unified_rw_reporting`.
    pub unified: Unified,
    /// `flow`: the job's weight among those of its `flow_id`; 0: it takes part in none.
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
    /// `steadystate_duration`; zero: none is looked for.
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

/// `exit_what`: who ends with a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExitWhat {
    /// Jobs of its reporting group.
    #[default]
    Group,
    /// Jobs between the same two stonewalls.
    Stonewall,
    /// All, those that have not started too.
    All,
}

/// `unified_rw_reporting`: whether directions are reported as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unified {
    /// Each by itself.
    #[default]
    None,
    /// As one.
    Mixed,
    /// Each by itself, and then as one.
    Both,
}

/// `steadystate`: what counts as steady.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyState {
    /// What is looked at.
    pub figure: SteadyFigure,
    /// By its slope, else by the largest distance from the mean.
    pub slope: bool,
    /// At most this: IOPS, bytes per second or nanoseconds, or percent of the mean.
    pub limit: f64,
    /// The limit is in percent.
    pub percent: bool,
}

/// What `steadystate` looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SteadyFigure {
    /// `iops`, `iops_slope`.
    Iops,
    /// `bw`, `bw_slope`.
    Bandwidth,
    /// `lat`, `lat_slope`.
    Latency,
}

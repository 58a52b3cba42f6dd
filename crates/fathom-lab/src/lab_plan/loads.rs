//! Loads other than one fixed load a cell: preparation, rounds until steady, curves, searches.

use fathom_core::Nanos;

use super::{JobText, Setting, job_with};

/// Job that prepares each device once.
#[derive(Clone, Debug, PartialEq)]
pub struct Precondition {
    /// Options of the job in fio's language.
    pub settings: Vec<Setting>,
    /// Number of times that the job writes the whole device.
    pub times_capacity: u32,
}

/// Steady state by SNIA's rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Rounds {
    /// Most rounds.
    pub most: u32,
    /// Number of rounds of the window.
    pub window: u32,
    /// Largest range in the window, relative to its mean.
    pub range: f64,
    /// Largest excursion of the window's fitted line, relative to its mean.
    pub slope: f64,
    /// Metric that is to be steady.
    pub metric: String,
    /// Cell that is to be steady.
    pub cell: usize,
}

/// Open-loop loads relative to the closed-loop maximum.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Option that sets the load.
    pub vary: String,
    /// Loads, relative to the maximum.
    pub loads: Vec<f64>,
}

/// Search for the highest load that keeps all conditions.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// Option that sets the load.
    pub vary: String,
    /// Conditions.
    pub keep: Vec<SearchCondition>,
    /// Largest relative distance between the load that passed and the one that failed.
    pub precision: f64,
    /// Longest duration of all runs of one probe.
    pub probe_most: Nanos,
}

/// Condition on a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchCondition {
    /// Text, as it is written.
    pub text: String,
    /// Metric, as in `read.resp_p99`.
    pub metric: String,
    /// Its values are to be at most the limit; otherwise at least.
    pub at_most: bool,
    /// Limit.
    pub limit: Limit,
}

/// Limit of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// A value in the metric's unit.
    Value(f64),
    /// A share of the load that was asked for.
    OfAsked(f64),
}

impl Rounds {
    /// Returns the largest range in percent of the mean, for texts.
    pub(crate) fn range_percent(&self) -> f64 {
        percent(self.range)
    }

    /// Returns the largest excursion in percent of the mean, for texts.
    pub(crate) fn slope_percent(&self) -> f64 {
        percent(self.slope)
    }
}

/// Returns a share in percent, without the digits that 0.07 × 100 has in binary.
fn percent(share: f64) -> f64 {
    (share * 1e8).round() / 1e6
}

impl Precondition {
    /// Returns the job file that prepares this device or file.
    #[must_use]
    pub fn job(&self, device: &str) -> String {
        let job = JobText {
            file: String::new(),
            text: format!("[precondition]\nfilename={device}\nsize=100%\n"),
            settings: Vec::new(),
        };
        let loops = Setting::of_job("loops", &self.times_capacity.to_string());
        let settings: Vec<&Setting> = std::iter::once(&loops).chain(&self.settings).collect();
        job_with(&job, &settings, None).text
    }
}

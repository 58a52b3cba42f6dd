//! Loads other than one fixed load a cell: preparation, rounds until steady, curves, searches.

use fathom_core::Nanos;
use fathom_job::{Environment, file_names};

use super::job_values::file_in_line;
use super::{JobText, Setting, job_plan, job_with};

/// Job that prepares each device once.
#[derive(Clone, Debug, PartialEq)]
pub struct Precondition {
    /// Options of the job in fio's language.
    pub settings: Vec<Setting>,
    /// Number of times that the job writes the whole device.
    pub times_capacity: u32,
    /// Size of its blocks: what is left over at the end of a file would not be written.
    pub block_bytes: u64,
    /// Devices and files of all runs, each once.
    pub files: Vec<PreconditionFile>,
}

/// Device or file that is written before the first run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreconditionFile {
    /// Name, as the jobs have it.
    pub name: String,
    /// Size that the jobs give a regular file; `None`: the size that it has.
    pub bytes: Option<u64>,
    /// Some job writes it.
    pub is_written: bool,
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
    /// Returns the job file that writes this device or file once, whole. A regular file has a size.
    #[must_use]
    pub fn job(&self, file: &str, bytes: Option<u64>) -> String {
        let settings: Vec<&Setting> = self.settings.iter().collect();
        job_with(&Self::job_text(file, bytes), &settings, None).text
    }

    /// Returns a sentence about the files of such a job, as the job language reads it, unless it
    /// has this file alone.
    pub(crate) fn other_file_of(
        environment: &dyn Environment,
        job: &str,
        file: &str,
    ) -> Option<String> {
        let jobs = job_plan(environment, "the precondition's job", job).unwrap_or_default();
        let named: Vec<String> = jobs
            .jobs
            .iter()
            .flat_map(|job| file_names(job, 0))
            .collect();
        (named != [file]).then(|| {
            let file = file.escape_debug();
            format!("{file} cannot be named in a job file, and another file would be written")
        })
    }

    /// Returns a sentence about the end of a file that no whole block would write, if there is one.
    pub(crate) fn rest_of(&self, file: &str, bytes: u64) -> Option<String> {
        let rest = bytes % self.block_bytes.max(1);
        (rest > 0).then(|| {
            format!(
                "{file} has {bytes} bytes, and the precondition's blocks have {}: the last {rest} \
                 bytes would not be written",
                self.block_bytes
            )
        })
    }

    /// Returns the job without its settings.
    pub(crate) fn job_text(file: &str, bytes: Option<u64>) -> JobText {
        let size = bytes.map_or_else(|| "100%".to_owned(), |bytes| bytes.to_string());
        let file = file_in_line(file);
        JobText {
            file: "the precondition's job".into(),
            text: format!("[precondition]\nfilename={file}\nsize={size}\n"),
            places: Vec::new(),
            settings: Vec::new(),
        }
    }
}

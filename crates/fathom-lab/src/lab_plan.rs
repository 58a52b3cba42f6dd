//! Experiment as its lab file describes it: cells, variants, and what is judged.
//!
//! ```text
//! axes ──► cells ┐
//!                ├─ × ─► runs: each cell with each variant, repeated
//!       variants ┘
//! ```

mod cost;
mod job_plan;
mod job_values;
mod judging;
mod loads;
mod open_loop;
mod overview;
mod peak_arguments;
mod run_settings;
mod run_text;
mod service;

use std::ops::Range;
use std::sync::Arc;

use fathom_core::Nanos;

pub(crate) use cost::{changes_files, may_replay_changes, writes};
pub(crate) use job_plan::job_plan;
pub(crate) use job_values::{VARIABLES, has_comment, has_whole_comment, in_line};
pub use judging::{
    Judge, JudgedMetric, Published, PublishedColumn, PublishedFigure, Repeats, Stop,
};
pub use loads::{Curve, Limit, Precondition, PreconditionFile, Rounds, Search, SearchCondition};
pub use open_loop::{CurveLoad, Load, OpenLoop};
pub(crate) use overview::duration;
pub use peak_arguments::PeakArguments;
pub(crate) use peak_arguments::{peak_argument, peak_names, peak_value_wanted};
pub use run_settings::RunSettings;
pub(crate) use run_settings::{duration_of, is_fio};
pub use run_text::RunText;
pub(crate) use run_text::{JobFile, LineOrigin, job_with, peak_with};
pub use service::{Ready, Service};

/// Experiment, checked as a whole; [`LabPlan::parse`] reads it.
#[derive(Clone, Debug, Default)]
pub struct LabPlan {
    /// Name.
    pub name: String,
    /// Lab file, as it was named.
    pub file: String,
    /// Text of the lab file.
    pub text: String,
    /// Values of `ask` from the command line, as `("DEV", "/dev/sdb")`.
    pub arguments: Vec<(String, String)>,
    /// Seed of the drawn order and of the runs' seeds.
    pub seed: u64,
    /// Every variant is replaced with the baseline, and variants draw offsets of their own: any
    /// difference found is a false alarm.
    pub a_a: bool,
    /// Subject of each run.
    pub subject: Subject,
    /// Modelled machine; `None` for this machine.
    pub machine: Option<MachineSource>,
    /// Axes, in the order of the file.
    pub axes: Vec<LabAxis>,
    /// Cells: every combination of the axes' values, the last axis the fastest; at least one.
    pub cells: Vec<LabCell>,
    /// Variants; at least one.
    pub variants: Vec<LabVariant>,
    /// Judgement.
    pub judge: Judge,
    /// Published figures to print beside ours.
    pub published: Vec<Published>,
    /// Execution of each run.
    pub run: RunSettings,
    /// Programs beside each run.
    pub services: Vec<Service>,
    /// Job that prepares each device once.
    pub precondition: Option<Precondition>,
    /// Duration at the begin of each run that does not count.
    pub warm_up: Option<Nanos>,
    /// Steady state in rounds.
    pub rounds: Option<Rounds>,
    /// Open-loop loads relative to the closed-loop maximum.
    pub curve: Option<Curve>,
    /// Search for the highest load that keeps a condition.
    pub search: Option<Search>,
    /// Jobs of each cell of the axes in the file, and variant, as they share loads; empty if loads
    /// are not varied.
    pub open_loops: Vec<OpenLoop>,
    /// Block devices that may be written; any other is refused. Empty for none.
    pub writes: Vec<String>,
}

/// Subject of each run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Jobs in fio's language, before the settings of cell and variant.
    Job(JobText),
    /// Arguments of `fathom peak`, before the settings of cell and variant.
    Peak(Vec<Setting>),
}

/// Jobs in fio's language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobText {
    /// File of the jobs; that of the lab if they stand there.
    pub file: String,
    /// Text of a job file, with the files that it includes in it.
    pub text: String,
    /// File and number of each line of the text; empty if all are those of `file`.
    pub(crate) places: Vec<(Arc<str>, u32)>,
    /// Options of the lab file, which stand over those of the text.
    pub settings: Vec<Setting>,
}

impl JobText {
    /// Returns file and number of a line of the text, from 1.
    pub(crate) fn place_of(&self, line: u32) -> (&str, u32) {
        let place = self.places.get((line as usize).saturating_sub(1));
        place.map_or((&self.file, line), |(file, line)| (file, *line))
    }
}

/// Machine file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineSource {
    /// Path, relative to the working directory.
    pub path: String,
    /// Text.
    pub text: String,
}

/// Axis of cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabAxis {
    /// Name: the option, or that of a named axis.
    pub name: String,
    /// Values, as tables show them.
    pub values: Vec<String>,
}

/// Combination of one value of each axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabCell {
    /// Number, from 0.
    pub number: usize,
    /// Index of each axis's value.
    pub values: Vec<usize>,
    /// Settings of all axes, which cells share: there may be 100,000 of them.
    pub settings: Vec<Arc<Setting>>,
    /// Label: `numjobs=4, bs=1m`; empty without axes.
    pub label: String,
}

/// One side of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabVariant {
    /// Name.
    pub name: String,
    /// Jobs in place of those of the lab.
    pub job: Option<JobText>,
    /// Settings.
    pub settings: Vec<Setting>,
    /// Conditions on the host; a variant whose conditions do not hold waits for another boot.
    pub requires: Vec<Requirement>,
    /// Place of the name in the lab file, bytes.
    pub(crate) span: Range<usize>,
}

/// One changed value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The thing that it changes.
    pub target: Target,
    /// Option or key; of a machine with dots: `device.queue.policy`.
    pub key: String,
    /// Value as text, as fio's language and messages have it.
    pub value: String,
    /// Value as TOML.
    pub literal: String,
    /// Place of the value in the lab file, bytes.
    pub(crate) span: Range<usize>,
    /// Place of the key.
    pub(crate) key_span: Range<usize>,
}

/// Thing that a setting changes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// Options of the jobs.
    Job,
    /// Arguments of `fathom peak`.
    Peak,
    /// Execution of the run.
    Run,
    /// Service of this name.
    Service(String),
    /// Modelled machine.
    Machine,
}

/// Condition on the host: a shell pattern of a fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// Fact: `kernel`, as `uname -r` prints it.
    pub fact: String,
    /// Pattern, in which `*` stands for any text.
    pub pattern: String,
}

impl LabPlan {
    /// Returns the number of comparisons that are corrected for: cells, judged metrics that they
    /// can have, and variants other than the baseline.
    #[must_use]
    pub fn comparisons(&self) -> usize {
        let metrics = self.judge.metrics.iter();
        let cells = metrics.map(|judged| match self.needs_due_times(&judged.metric) {
            false => self.cells.len(),
            true => self.cells.len() - self.maxima(),
        });
        cells.sum::<usize>() * (self.variants.len() - 1)
    }

    /// Returns whether a run of a cell can have a metric. At the closed-loop maximum of a curve ops
    /// have no due times, so there is nothing to judge there: that is known before the first run,
    /// and no comparison to correct for.
    pub(crate) fn can_have(&self, cell: usize, metric: &str) -> bool {
        self.curve_load(cell) != Some(CurveLoad::Max) || !self.needs_due_times(metric)
    }

    fn needs_due_times(&self, metric: &str) -> bool {
        let of_jobs = metric.rsplit('/').next().unwrap_or_default();
        let metric = of_jobs.split_once('.').map_or("", |(_, metric)| metric);
        self.curve.is_some()
            && ["resp_", "lag_"]
                .iter()
                .any(|kind| metric.starts_with(kind))
    }

    /// Returns the number of cells at the closed-loop maximum.
    fn maxima(&self) -> usize {
        let loads = self.curve.as_ref().map_or(0, |curve| curve.loads.len() + 1);
        self.cells.len().checked_div(loads).unwrap_or_default()
    }

    /// Returns whether a variant has conditions on the boot, so that each boot is one repeat.
    #[must_use]
    pub fn waits_for_boots(&self) -> bool {
        self.variants.iter().any(|one| !one.requires.is_empty())
    }

    /// Returns the plan with each variant replaced by the baseline, under its own name.
    #[must_use]
    pub fn all_baseline(mut self) -> Self {
        let baseline = self.variants[self.judge.baseline].clone();
        for variant in &mut self.variants {
            variant.job.clone_from(&baseline.job);
            variant.settings.clone_from(&baseline.settings);
            // All run in this boot.
            variant.requires.clear();
        }
        for jobs in self.open_loops.chunks_mut(self.variants.len()) {
            let of_baseline = jobs[self.judge.baseline].clone();
            jobs.fill(of_baseline);
        }
        self.a_a = true;
        self
    }
}

impl LabCell {
    /// Returns the settings of all axes.
    pub(crate) fn settings(&self) -> impl Iterator<Item = &Setting> {
        self.settings.iter().map(|setting| &**setting)
    }

    /// Returns whether the cell has these values of its axes; `None` is any.
    pub(crate) fn has(&self, wanted: &[Option<usize>]) -> bool {
        let mut pairs = self.values.iter().zip(wanted);
        pairs.all(|(value, wanted)| wanted.is_none_or(|wanted| wanted == *value))
    }
}

impl Setting {
    /// Returns whether both set the same value.
    pub(crate) fn is_of_same(&self, other: &Self) -> bool {
        self.target == other.target && self.key == other.key
    }

    /// Creates an option of the jobs that the lab file does not have itself.
    pub(crate) fn of_job(key: &str, value: &str) -> Self {
        Self {
            target: Target::Job,
            key: key.to_owned(),
            value: value.to_owned(),
            literal: value.to_owned(),
            span: 0..0,
            key_span: 0..0,
        }
    }

    fn origin(&self) -> LineOrigin {
        LineOrigin::Setting {
            key: self.key_span.clone(),
            value: self.span.clone(),
        }
    }
}

impl Default for Subject {
    fn default() -> Self {
        Self::Peak(Vec::new())
    }
}

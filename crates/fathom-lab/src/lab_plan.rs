//! Experiment as its lab file describes it: cells, variants, and what is judged.
//!
//! ```text
//! axes ──► cells ┐
//!                ├─ × ─► runs: each cell with each variant, repeated
//!       variants ┘
//! ```

mod run_settings;
mod run_text;

use std::ops::Range;

use fathom_virtual::{MachineChange, MachineModel};

pub use run_settings::RunSettings;
pub use run_text::RunText;
pub(crate) use run_text::{JobFile, LineOrigin, job_with};

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
    /// Every variant is replaced with the baseline, and variants draw offsets of their own:
    /// whatever is told apart is a false alarm.
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
    pub warm_up: Option<Seconds>,
    /// Steady state in rounds.
    pub rounds: Option<Rounds>,
    /// Open-loop loads relative to the closed-loop maximum.
    pub curve: Option<Curve>,
    /// Search for the highest load that keeps a condition.
    pub search: Option<Search>,
    /// Block devices that may be written; any other is refused.
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
    /// Text of a job file.
    pub text: String,
    /// Options of the lab file, which stand over those of the text.
    pub settings: Vec<Setting>,
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
    /// Settings of all axes.
    pub settings: Vec<Setting>,
    /// Label: `numjobs=4, bs=1m`; empty without axes.
    pub label: String,
}

/// One side of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabVariant {
    /// Name.
    pub name: String,
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

/// Metrics to be judged, and how often a cell is repeated.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judge {
    /// Index of the variant that the others are compared with.
    pub baseline: usize,
    /// Metrics that are judged.
    pub metrics: Vec<JudgedMetric>,
    /// Metrics that are shown, not judged.
    pub show: Vec<String>,
    /// Repeats of a cell.
    pub repeats: Repeats,
}

/// Metric with the relative change that is too small to matter.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedMetric {
    /// Name, as in `write.bw`.
    pub metric: String,
    /// Tolerance, above 0: 0.02 for `2%`.
    pub tolerance: f64,
}

/// Number of repeats of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeats {
    /// Least number.
    pub min: u32,
    /// Largest number.
    pub max: u32,
    /// Rule that ends them early.
    pub stop: Stop,
}

/// Rule that ends the repeats of a cell before the largest number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Ends them once the interval of each judged metric is narrow enough.
    Narrow,
    /// Always the largest number.
    Never,
}

/// Published figures to print beside ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// Public source: `origin` in the lab file, else the first lines of the file, which begin with
    /// `#`; may be empty.
    pub origin: String,
    /// File, relative to the working directory.
    pub file: String,
    /// Axis or option, and the column that has its values.
    pub keys: Vec<(String, String)>,
    /// Columns with figures.
    pub columns: Vec<PublishedColumn>,
    /// Figures of the experiment's cells.
    pub figures: Vec<PublishedFigure>,
    /// Number of rows for which the experiment has no cell.
    pub rows_without_cell: usize,
}

/// Column of published figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedColumn {
    /// Metric, as in `write.bw_mib_s`.
    pub metric: String,
    /// Index of the variant.
    pub variant: usize,
    /// Name of the column in the file.
    pub column: String,
}

/// Published figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PublishedFigure {
    /// Number of the cell.
    pub cell: usize,
    /// Index of the column.
    pub column: usize,
    /// Figure, in the unit of the column's metric.
    pub value: f64,
}

/// Program beside each run, such as a target under test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Name.
    pub name: String,
    /// Command.
    pub command: String,
    /// Sign that it is ready.
    pub ready: Option<Ready>,
    /// Command whose JSON numbers become metrics.
    pub stats: Option<String>,
    /// Values for `${NAME}` in its commands, which cells and variants change.
    pub arguments: Vec<(String, String)>,
}

/// Sign that a service is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ready {
    /// A text in its output.
    Text(String),
    /// A TCP port that accepts connections.
    Port(u16),
}

/// Job that prepares each device once.
#[derive(Clone, Debug, PartialEq)]
pub struct Precondition {
    /// Options of the job in fio's language.
    pub options: Vec<(String, String)>,
    /// Bytes to be written, in capacities of the device.
    pub times_capacity: Option<f64>,
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
    /// Longest duration of one probe.
    pub probe_most: Seconds,
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

/// Duration in seconds, as lab files write it.
pub type Seconds = f64;

impl LabPlan {
    /// Returns the number of comparisons that are corrected for: cells, judged metrics and
    /// variants other than the baseline.
    #[must_use]
    pub fn comparisons(&self) -> usize {
        self.cells.len() * self.judge.metrics.len() * (self.variants.len() - 1)
    }

    /// Returns the plan with each variant replaced by the baseline, under its own name.
    #[must_use]
    pub fn all_baseline(mut self) -> Self {
        let baseline = self.variants[self.judge.baseline].clone();
        for variant in &mut self.variants {
            variant.settings.clone_from(&baseline.settings);
            variant.requires.clone_from(&baseline.requires);
        }
        self.a_a = true;
        self
    }
}

/// Returns the text of a machine file with these settings.
///
/// # Panics
/// If the machine cannot have them: the reader of the lab file refuses such settings.
fn machine_with<'a>(machine: &MachineSource, of: impl Iterator<Item = &'a Setting>) -> String {
    let changes: Vec<_> = of
        .map(|setting| MachineChange {
            key: setting.key.clone(),
            literal: setting.literal.clone(),
            origin: fathom_job::Origin::default(),
        })
        .collect();
    if changes.is_empty() {
        return machine.text.clone();
    }
    let changed = MachineModel::changed_text(&machine.path, &machine.text, &changes);
    changed.expect("the reader of the lab file tried each change")
}

impl Published {
    /// Returns the figure of a cell and variant for this metric.
    #[must_use]
    pub fn figure(&self, cell: usize, variant: usize, metric: &str) -> Option<f64> {
        let mut figures = self.figures.iter();
        let found = figures.find(|figure| {
            let column = &self.columns[figure.column];
            figure.cell == cell && column.variant == variant && column.metric == metric
        });
        found.map(|figure| figure.value)
    }
}

impl Setting {
    /// Returns whether both set the same value.
    pub(crate) fn is_of_same(&self, other: &Self) -> bool {
        self.target == other.target && self.key == other.key
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

impl Default for Repeats {
    fn default() -> Self {
        Self {
            min: 1,
            max: 1,
            stop: Stop::Never,
        }
    }
}

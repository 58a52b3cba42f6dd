//! Judgement of an experiment: metrics, repeats, and figures of others.

use fathom_stats::Improves;

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
    /// Direction in which it improves.
    pub improves: Improves,
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

impl Default for Repeats {
    fn default() -> Self {
        Self {
            min: 1,
            max: 1,
            stop: Stop::Never,
        }
    }
}

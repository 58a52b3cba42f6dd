//! Runs as a table: a row each, with a column for each metric and tag.

use std::collections::{BTreeMap, BTreeSet};

use fathom_record::Measure;

use super::{fact, unit};
use crate::store::{StoredMetric, StoredRun};

/// Columns of a table of runs.
#[derive(Clone, Debug)]
pub struct ExportTable {
    columns: Vec<ExportColumn>,
    /// Columns of a tag.
    tags: BTreeMap<String, usize>,
    /// Column of a metric's value by group, direction and metric; those of its interval follow it.
    metrics: BTreeMap<(String, &'static str, String), (usize, bool)>,
}

/// Column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportColumn {
    /// Heading: a name, and in parentheses the unit. No two columns have the same one.
    pub heading: String,
    /// Kind of its cells.
    pub kind: ExportKind,
}

/// Kind of the cells of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportKind {
    /// Whole numbers.
    Whole,
    /// Numbers.
    Number,
    /// Texts.
    Text,
    /// Moments.
    Moment,
}

/// Cell of a row; `None` stands for a value that the run does not have.
#[derive(Clone, Debug, PartialEq)]
pub enum ExportCell {
    /// Whole number.
    Whole(Option<i64>),
    /// Number.
    Number(Option<f64>),
    /// Text.
    Text(Option<String>),
    /// Milliseconds since 1970-01-01 UTC, and the same as `2026-05-28T20:26:40.123Z`.
    Moment(Option<(i64, String)>),
}

impl ExportTable {
    /// Creates the columns of runs with these metrics and names of tags.
    #[must_use]
    pub fn new(metrics: &[StoredMetric], tags: &[String]) -> Self {
        let mut table = Self {
            columns: Vec::new(),
            tags: BTreeMap::new(),
            metrics: BTreeMap::new(),
        };
        let mut headings = Headings::default();
        let fixed = FIXED.iter().map(|(heading, kind)| ExportColumn {
            heading: headings.unique((*heading).to_owned()),
            kind: *kind,
        });
        table.columns.extend(fixed);
        for tag in tags {
            table.tags.insert(tag.clone(), table.columns.len());
            table.columns.push(ExportColumn {
                heading: headings.unique(format!("tag.{tag}")),
                kind: ExportKind::Text,
            });
        }
        for metric in metrics {
            let of = &metric.measure;
            let key = (of.group.clone(), of.direction, of.metric.clone());
            let place = (table.columns.len(), metric.has_interval);
            table.metrics.insert(key, place);
            let parts: &[&str] = match metric.has_interval {
                true => &["", " low", " high"],
                false => &[""],
            };
            table.columns.extend(parts.iter().map(|part| ExportColumn {
                heading: headings.unique(with_unit(of, part)),
                kind: ExportKind::Number,
            }));
        }
        table
    }

    /// Returns the columns.
    #[must_use]
    pub fn columns(&self) -> &[ExportColumn] {
        &self.columns
    }

    /// Returns the cells of a run, one for each column.
    #[must_use]
    pub fn row(&self, run: &StoredRun) -> Vec<ExportCell> {
        let mut cells = fixed_cells(run);
        let missing = self.columns[cells.len()..]
            .iter()
            .map(|column| match column.kind {
                ExportKind::Whole => ExportCell::Whole(None),
                ExportKind::Number => ExportCell::Number(None),
                ExportKind::Text => ExportCell::Text(None),
                ExportKind::Moment => ExportCell::Moment(None),
            });
        cells.extend(missing);
        for (key, value) in run.tags() {
            if let Some(&at) = self.tags.get(&key) {
                cells[at] = ExportCell::Text(Some(value));
            }
        }
        for one in &run.measures {
            let key = (one.group.clone(), one.direction, one.metric.clone());
            let Some(&(at, has_interval)) = self.metrics.get(&key) else {
                continue;
            };
            cells[at] = ExportCell::Number(Some(one.value));
            if has_interval {
                cells[at + 1] = ExportCell::Number(one.low);
                cells[at + 2] = ExportCell::Number(one.high);
            }
        }
        cells
    }
}

/// Headings that are taken: readers find columns by them.
#[derive(Debug, Default)]
pub(super) struct Headings {
    taken: BTreeSet<String>,
}

impl Headings {
    /// Returns the heading, or with a number if another column has it.
    pub(super) fn unique(&mut self, heading: String) -> String {
        let numbered = (2..).map(|number| format!("{heading} {number}"));
        let mut names = std::iter::once(heading.clone()).chain(numbered);
        let free = names.find(|name| !self.taken.contains(name));
        let free = free.unwrap_or(heading);
        self.taken.insert(free.clone());
        free
    }
}

fn with_unit(measure: &Measure, part: &str) -> String {
    let name = measure.name();
    match unit(measure) {
        "" => format!("{name}{part}"),
        unit => format!("{name}{part} ({unit})"),
    }
}

/// Returns the cells of the columns that every table has.
fn fixed_cells(run: &StoredRun) -> Vec<ExportCell> {
    let row = &run.row;
    let text = |text: &Option<String>| ExportCell::Text(text.clone());
    #[expect(
        clippy::cast_precision_loss,
        reason = "a duration below 2⁵² ms is exact"
    )]
    let seconds = row.wall_ms.map(|ms| ms as f64 / 1e3);
    vec![
        ExportCell::Whole(Some(row.id.0)),
        ExportCell::Text(Some(row.uuid.clone())),
        moment(run),
        ExportCell::Number(seconds),
        text(&row.lab),
        text(&row.axes),
        text(&row.variant),
        ExportCell::Whole(row.repeat.map(i64::from)),
        ExportCell::Whole(row.plan_id),
        ExportCell::Whole(row.machine_id),
        text(&fact(run, "program")),
        text(&fact(run, "kernel")),
        text(&fact(run, "firmware")),
        text(&row.note),
    ]
}

/// Returns the moment when a run began; none if it is not known.
pub(super) fn moment(run: &StoredRun) -> ExportCell {
    let begun = run.row.begun_ms.filter(|&ms| ms > 0);
    let moment = begun.zip(run.row.begun.as_deref()).and_then(|(ms, begun)| {
        let text = format!("{}.{:03}Z", begun.replace(' ', "T"), ms % 1000);
        Some((i64::try_from(ms).ok()?, text))
    });
    ExportCell::Moment(moment)
}

/// Columns that every table has.
const FIXED: [(&str, ExportKind); 14] = [
    ("run", ExportKind::Whole),
    ("uuid", ExportKind::Text),
    ("begun (UTC)", ExportKind::Moment),
    ("duration (s)", ExportKind::Number),
    ("lab", ExportKind::Text),
    ("cell", ExportKind::Text),
    ("variant", ExportKind::Text),
    ("repeat", ExportKind::Whole),
    ("plan", ExportKind::Whole),
    ("machine", ExportKind::Whole),
    ("program", ExportKind::Text),
    ("kernel", ExportKind::Text),
    ("firmware", ExportKind::Text),
    ("note", ExportKind::Text),
];

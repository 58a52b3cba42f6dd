//! Table of a lab: a row per cell, a verdict per cell and judged metric.

mod notes;
mod order_notes;
mod searches;
mod steady_notes;

use fathom_record::MetricName;
use fathom_stats::median;

use super::observed::Observed;
use super::rounds::LabOutcome;
use crate::figure::interval;
use crate::judge::{Judgement, Values};
use crate::lab_plan::{LabPlan, Published};
use crate::published::error_percent;
use crate::table::{Cell, Column, Table, TableHead, with_distinct_keys};

/// Returns the table of a lab.
#[must_use]
pub fn lab_table(plan: &LabPlan, outcome: &LabOutcome) -> Table {
    let report = Report { plan, outcome };
    if let Some(search) = &plan.search {
        return searches::table(&report, search);
    }
    let mut columns: Vec<Column> = plan
        .axes
        .iter()
        .map(|axis| Column::key(axis.name.clone(), &axis.name))
        .collect();
    columns.push(Column::figure("repeats", "repeats"));
    let mut rows: Vec<Vec<Cell>> = (0..plan.cells.len()).map(|cell| report.key(cell)).collect();
    if plan.curve.is_some() {
        let (unit, suffix) = searches::unit(plan);
        columns.push(Column::figure(
            format!("asked_{suffix}"),
            &format!("asked, {unit}"),
        ));
        for (row, cell) in rows.iter_mut().zip(&outcome.results.cells) {
            row.push(cell.asked.map_or(Cell::Missing, Cell::Count));
        }
    }
    for metric in 0..outcome.results.metrics.len() {
        for (column, of_cell) in report.metric(metric) {
            columns.push(column);
            for (cell, row) in rows.iter_mut().enumerate() {
                row.push(of_cell(cell));
            }
        }
    }
    let origins = plan.published.iter().map(|one| one.origin.as_str());
    Table {
        head: TableHead {
            name: plan.name.clone(),
            about: report.about(),
            origin: origins.collect::<Vec<_>>().join("; "),
            has_plot: false,
        },
        // Axes, variants and jobs have the names that users give.
        columns: with_distinct_keys(columns),
        rows,
        notes: notes::notes(&report),
        panels: Vec::new(),
    }
}

/// A lab and its outcome.
pub(crate) struct Report<'a> {
    plan: &'a LabPlan,
    outcome: &'a LabOutcome,
}

/// Column, and its value by cell.
type Filled<'a> = (Column, Box<dyn Fn(usize) -> Cell + 'a>);

impl<'a> Report<'a> {
    pub(crate) const fn new(plan: &'a LabPlan, outcome: &'a LabOutcome) -> Self {
        Self { plan, outcome }
    }

    fn about(&self) -> String {
        let names: Vec<&str> = self
            .plan
            .variants
            .iter()
            .map(|one| one.name.as_str())
            .collect();
        let about = match names.as_slice() {
            [_] => self.plan.name.clone(),
            names => format!("{}: {}", self.plan.name, names.join(", ")),
        };
        match steady_notes::is_never_steady(self) {
            true => format!("{about} (not steady)"),
            false => about,
        }
    }

    /// Returns the cells of a row that say which it is, and its repeats.
    fn key(&self, cell: usize) -> Vec<Cell> {
        let values = self.plan.cells[cell].values.iter().zip(&self.plan.axes);
        let values = values.map(|(value, axis)| number_or_text(&axis.values[*value]));
        let repeats = self.outcome.results.repeats(cell);
        values.chain([Cell::Count(repeats.into())]).collect()
    }

    /// Returns the columns of a metric: the variants, published figures beside them, the
    /// comparisons.
    fn metric(&'a self, metric: usize) -> Vec<Filled<'a>> {
        let observed = &self.outcome.results.metrics[metric];
        let mut columns = Vec::new();
        for (variant, named) in self.plan.variants.iter().enumerate() {
            columns.push(self.values(metric, variant, &named.name));
            if observed.name.row.is_percentile {
                columns.push(self.merged(metric, variant, &named.name));
            }
            if observed.has_windows() {
                columns.push(self.within(metric, variant, &named.name));
            }
            for (nth, published) in self.published_of(metric, variant).into_iter().enumerate() {
                columns.extend(self.published(metric, variant, published, nth));
            }
        }
        for (variant, named) in self.plan.variants.iter().enumerate() {
            if observed.rule.is_some() && variant != self.plan.judge.baseline {
                columns.extend(self.comparison(metric, variant, &named.name));
            }
        }
        columns
    }

    fn values(&'a self, metric: usize, variant: usize, name: &str) -> Filled<'a> {
        let observed = &self.outcome.results.metrics[metric];
        let column = figure(observed, &key(name, observed), name);
        let value = move |cell| {
            let value = self.median(cell, variant, metric);
            value.map_or(Cell::Missing, |value| shown(observed, value))
        };
        (column, Box::new(value))
    }

    /// Returns the median of a metric's values in its unit.
    pub(crate) fn median(&self, cell: usize, variant: usize, metric: usize) -> Option<f64> {
        let results = &self.outcome.results;
        let name = &results.metrics[metric].name;
        let value = Self::middle(&results.values, (cell, variant, metric));
        value.map(|value| name.in_unit(value))
    }

    /// Returns the median over the repeats of a cell, variant and metric.
    fn middle(values: &Values, (cell, variant, metric): (usize, usize, usize)) -> Option<f64> {
        let values = values.of(cell, variant, metric);
        let mut values: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
        values.sort_by(f64::total_cmp);
        (!values.is_empty()).then(|| median(&values))
    }

    /// Returns the column of a percentile of all repeats' ops together.
    fn merged(&'a self, metric: usize, variant: usize, name: &str) -> Filled<'a> {
        let observed = &self.outcome.results.metrics[metric];
        let key = format!("{}_of_all_ops", key(name, observed));
        let heading = format!("{name}, all ops");
        let column = figure(observed, &key, heading.trim_start_matches(", "));
        let value = move |cell| {
            let value = self.outcome.results.merged(cell, variant, metric);
            let value = value.map(|value| observed.name.in_unit(value));
            value.map_or(Cell::Missing, |value| shown(observed, value))
        };
        (column, Box::new(value))
    }

    /// Returns the column of half the width of the interval within a run, in percent. For people it
    /// stands beside single runs: of repeats, how they differ says more.
    fn within(&'a self, metric: usize, variant: usize, name: &str) -> Filled<'a> {
        let observed = &self.outcome.results.metrics[metric];
        let key = format!("{}_within_percent", key(name, observed));
        let half = move |cell| {
            let half = Self::middle(&self.outcome.results.within, (cell, variant, metric));
            half.map(|half| half * 100.0)
        };
        let cells = 0..self.plan.cells.len();
        let is_single = self.plan.judge.repeats.max == 1;
        if !is_single || cells.into_iter().all(|cell| half(cell).is_none()) {
            let value = move |cell| half(cell).map_or(Cell::Missing, Cell::Exact);
            return (Column::hidden(key), Box::new(value));
        }
        let column = figure(observed, &key, "± within run, %");
        let value = move |cell| half(cell).map_or(Cell::Missing, Cell::Tenths);
        (column, Box::new(value))
    }

    /// Returns the published columns of a metric and variant.
    pub(crate) fn published_of(
        &self,
        metric: usize,
        variant: usize,
    ) -> Vec<(&'a Published, usize)> {
        let observed = &self.outcome.results.metrics[metric];
        let columns = self.plan.published.iter().flat_map(|published| {
            let columns = published.columns.iter().enumerate();
            columns.map(move |(at, column)| (published, at, column))
        });
        let of_this = columns.filter(|(_, _, column)| {
            let name = MetricName::parse(&column.metric);
            column.variant == variant && name.is_ok_and(|name| name.is_same(&observed.name))
        });
        of_this.map(|(published, at, _)| (published, at)).collect()
    }

    /// Returns the published figures and the error of ours against them; those of the second table
    /// and of further ones are numbered.
    fn published(
        &'a self,
        metric: usize,
        variant: usize,
        (published, at): (&'a Published, usize),
        nth: usize,
    ) -> [Filled<'a>; 2] {
        let observed = &self.outcome.results.metrics[metric];
        let key = key(&self.plan.variants[variant].name, observed);
        let [of_key, of_heading] = match nth {
            0 => [String::new(), String::new()],
            nth => [format!("_{}", nth + 1), format!(" {}", nth + 1)],
        };
        let heading = format!("published{of_heading}");
        let figures = figure(observed, &format!("{key}_published{of_key}"), &heading);
        let error_key = format!("{key}_error_percent{of_key}");
        let errors = figure(observed, &error_key, "error, %");
        let known = move |cell| published_figure(published, at, cell, observed);
        let error = move |cell| {
            let error = error_percent(self.median(cell, variant, metric)?, known(cell)?);
            Some(Cell::Tenths(error))
        };
        let known = move |cell| known(cell).map_or(Cell::Missing, |known| shown(observed, known));
        [
            (figures, Box::new(known)),
            (
                errors,
                Box::new(move |cell| error(cell).unwrap_or(Cell::Missing)),
            ),
        ]
    }

    /// Returns the comparison of a variant with the baseline: for people one column, for programs
    /// one per number.
    fn comparison(&'a self, metric: usize, variant: usize, name: &str) -> Vec<Filled<'a>> {
        let observed = &self.outcome.results.metrics[metric];
        let key = key(name, observed);
        let baseline = &self.plan.variants[self.plan.judge.baseline].name;
        let of = move |cell| self.judgement(cell, variant, metric);
        let heading = format!("{name} against {baseline}");
        let mut columns: Vec<Filled<'a>> = vec![(
            figure(observed, &format!("{key}_change"), &heading),
            Box::new(move |cell| of(cell).map_or(Cell::Missing, |one| Cell::Text(change(one)))),
        )];
        for (name, number) in NUMBERS {
            let column = Column::hidden(format!("{key}_{name}"));
            let value = move |cell| of(cell).and_then(number).map_or(Cell::Missing, Cell::Exact);
            columns.push((column, Box::new(value)));
        }
        let column = Column::hidden(format!("{key}_verdict"));
        let verdict = move |cell| {
            let verdict = of(cell).map(|one| one.verdict.word());
            verdict.map_or(Cell::Missing, |word| Cell::Text(word.into()))
        };
        columns.push((column, Box::new(verdict)));
        columns
    }

    /// Returns the figure of a published column for a cell, in the unit of a metric.
    pub(crate) fn published_figure(
        &self,
        (published, column): (&Published, usize),
        cell: usize,
        metric: usize,
    ) -> Option<f64> {
        let observed = &self.outcome.results.metrics[metric];
        published_figure(published, column, cell, observed)
    }

    /// Formats a value of a metric in its unit, as the table does.
    pub(crate) fn shown(&self, metric: usize, value: f64) -> String {
        shown(&self.outcome.results.metrics[metric], value).text()
    }

    pub(crate) fn judgement(
        &self,
        cell: usize,
        variant: usize,
        metric: usize,
    ) -> Option<&'a Judgement> {
        let mut all = self.outcome.judgements.iter();
        all.find(|one| (one.cell, one.variant, one.metric) == (cell, variant, metric))
    }
}

/// Function that takes a number from a comparison.
type Number = fn(&Judgement) -> Option<f64>;

/// Numbers of a comparison, for programs.
const NUMBERS: [(&str, Number); 6] = [
    ("ratio", |one| one.ratio.map(|ratio| ratio.middle)),
    ("ratio_low", |one| one.ratio.map(|ratio| ratio.low)),
    ("ratio_high", |one| one.ratio.map(|ratio| ratio.high)),
    ("ratio_coverage", |one| {
        one.ratio.map(|ratio| ratio.coverage)
    }),
    ("p_holm", |one| Some(one.p_adjusted)),
    ("repeats_to_settle", |one| one.settled_by.map(f64::from)),
];

/// Returns the figure that a published column has for a cell.
fn published_figure(
    published: &Published,
    column: usize,
    cell: usize,
    observed: &Observed,
) -> Option<f64> {
    let mut figures = published.figures.iter();
    let figure = figures.find(|one| (one.cell, one.column) == (cell, column))?;
    let name = MetricName::parse(&published.columns[column].metric).ok()?;
    Some(observed.name.in_unit(name.stored(figure.value)))
}

/// Formats a comparison: `+3.1 % [+2.0, +4.2] better`.
fn change(judgement: &Judgement) -> String {
    let word = judgement.verdict.word();
    match &judgement.ratio {
        None => word.into(),
        Some(ratio) => format!("{} {word}", interval(ratio)),
    }
}

fn figure(observed: &Observed, key: &str, heading: &str) -> Column {
    Column::figure(key, heading).in_group(label(observed))
}

/// Returns the metric with its unit, for headings and notes: `write.bw, MiB/s`.
pub(crate) fn label(observed: &Observed) -> String {
    let name = &observed.name;
    match name.unit() {
        "" => name.stored_name(),
        unit => format!("{}, {unit}", name.stored_name()),
    }
}

/// Returns the key of a variant's values: `fair_write_bw_mib_s`, without the variant if it has no
/// name.
fn key(variant: &str, observed: &Observed) -> String {
    let metric = observed.name.to_string().replace(['.', '/'], "_");
    let unit = match observed.name.unit() {
        "ns" => "_ns",
        "B/s" => "_bytes_s",
        _ => "",
    };
    match variant {
        "" => format!("{metric}{unit}"),
        variant => format!("{variant}_{metric}{unit}"),
    }
}

/// Returns a value as a cell: rates without decimals, anything else with one.
fn shown(observed: &Observed, value: f64) -> Cell {
    match observed.name.unit() {
        "IOPS" | "B/s" | "ns" => Cell::Rate(value),
        _ => Cell::Tenths(value),
    }
}

fn number_or_text(value: &str) -> Cell {
    match value.parse() {
        Ok(number) => Cell::Count(number),
        Err(_) => Cell::Text(value.into()),
    }
}

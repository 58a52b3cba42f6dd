//! Trends: the course of a metric over comparable runs, its changes, and what changed with them.
//!
//! ```text
//! runs of one plan on one machine ─► change points ─► size, interval, worse or better
//!                                                  └► subjects and tags before and after
//! ```
//!
//! Runs of a series were taken one after the other, not interleaved: a change may be due to the
//! machine's state as well as to the facts reported with it.

mod check;
mod facts;

#[cfg(test)]
mod tests;

use fathom_record::MetricName;
use fathom_stats::{Improves, RatioInterval, SERIES_MAX, change_points, median};

use serde_json::{Value, json};

pub use check::{NEWEST, NewestRuns, PROVED, RECENT, TrendCheck};
pub use facts::{FACT_RUNS_MAX, changed_facts};

use crate::figure::interval;

/// Course of a metric over comparable runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Trend {
    /// Metric.
    pub metric: MetricName,
    /// Value of each run, in order.
    pub values: Vec<f64>,
    /// Changes, in order.
    pub changes: Vec<TrendChange>,
}

/// Change of a metric's level.
#[derive(Clone, Debug, PartialEq)]
pub struct TrendChange {
    /// Index of the first run after it.
    pub at: usize,
    /// p value of the change point.
    pub p: f64,
    /// Ratio of the level after it to the level before; `None` with too few runs on a side for an
    /// interval, or values that are not positive.
    pub ratio: Option<RatioInterval>,
    /// The level after it is the worse one.
    pub is_worse: bool,
    /// Median before, from the change before it on.
    pub before: f64,
    /// Median after, up to the next change.
    pub after: f64,
}

impl Trend {
    /// Finds the changes of a metric.
    #[must_use]
    pub fn of(metric: MetricName, values: Vec<f64>) -> Self {
        let points = change_points(&values);
        let ends = points.iter().map(|point| point.at).skip(1);
        let ends = ends.chain([values.len()]);
        let mut from = 0;
        let changes = points.iter().zip(ends).map(|(point, end)| {
            let (before, after) = (&values[from..point.at], &values[point.at..end]);
            from = point.at;
            let (low, high) = (middle(before), middle(after));
            TrendChange {
                at: point.at,
                p: point.p,
                ratio: RatioInterval::of_series(newest(after, false), newest(before, true)),
                is_worse: is_worse(&metric, low, high),
                before: low,
                after: high,
            }
        });
        Self {
            changes: changes.collect(),
            metric,
            values,
        }
    }

    /// Returns the levels: the index of the first run of each, and the median up to the next.
    #[must_use]
    pub fn levels(&self) -> Vec<(usize, f64)> {
        let first = self.changes.first();
        let first = first.map_or_else(|| middle(&self.values), |change| change.before);
        let later = self.changes.iter().map(|change| (change.at, change.after));
        [(0, first)].into_iter().chain(later).collect()
    }

    /// Returns the ratios of the changes that have one.
    pub fn ratios(&self) -> impl Iterator<Item = &RatioInterval> {
        self.changes
            .iter()
            .filter_map(|change| change.ratio.as_ref())
    }
}

impl TrendChange {
    /// Returns the size of the change in words: `-6.8 % [-7.5, -6.1] worse`.
    #[must_use]
    pub fn size(&self) -> String {
        size(self.ratio.as_ref(), self.is_worse)
    }

    /// Returns the ratio of the levels as JSON.
    #[must_use]
    pub fn ratio_json(&self) -> Value {
        ratio_json(self.ratio.as_ref())
    }
}

fn size(ratio: Option<&RatioInterval>, is_worse: bool) -> String {
    let word = if is_worse { "worse" } else { "better" };
    ratio.map_or_else(
        || word.into(),
        |ratio| format!("{} {word}", interval(ratio)),
    )
}

fn ratio_json(ratio: Option<&RatioInterval>) -> Value {
    ratio.map_or(Value::Null, |ratio| {
        json!({
            "estimate": ratio.middle,
            "low": ratio.low,
            "high": ratio.high,
            "coverage": ratio.coverage,
        })
    })
}

/// Returns the values nearest to a change, as many as the tests take: the last ones of the side
/// before it, or the first ones of the side after.
fn newest(values: &[f64], is_before: bool) -> &[f64] {
    let left_out = values.len().saturating_sub(SERIES_MAX);
    match is_before {
        true => &values[left_out..],
        false => &values[..values.len() - left_out],
    }
}

fn is_worse(metric: &MetricName, before: f64, after: f64) -> bool {
    match metric.row.improves {
        Improves::Upwards => after < before,
        Improves::Downwards => after > before,
    }
}

fn middle(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    if sorted.is_empty() {
        0.0
    } else {
        median(&sorted)
    }
}

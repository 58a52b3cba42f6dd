//! Comparison of existing runs: files, directories, runs of the history.
//!
//! Runs of one lab that differ in their variant are paired by repeat, and judged as the lab does.
//! All others were taken one side after the other: the rank-sum test (Mann, Whitney) is exact for
//! them, too, but drift between the sides is not part of its model. Their verdict is therefore
//! *unclear: not interleaved*, or *unclear: order not drawn* of runs that were taken in turn,
//! unless the user accepts that.

mod groups;
mod report;
mod shared;
mod sides;
mod text;

use fathom_record::{MetricName, Record};
use fathom_stats::{
    DIFFERENCES_MAX, RatioInterval, SERIES_MAX, SIGNIFICANT, Verdict, holm, median, rank_sum,
};

use crate::counted::counted;
use crate::figure::interval_level;
use crate::import::ImportedRun;

pub use sides::{CompareSide, SideOrder};

/// Rules of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct CompareRules {
    /// Metrics to judge with the change that is too small to matter; empty for bandwidth and the
    /// 99th percentile of each direction.
    pub metrics: Vec<(MetricName, f64)>,
    /// Tolerance of the metrics that are judged by default.
    pub tolerance: f64,
    /// Judges runs that were not interleaved like runs that were.
    pub accept_drift: bool,
}

/// Result of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The first side, the baseline.
    pub before: CompareSide,
    /// The second side.
    pub after: CompareSide,
    /// Judged metrics, by group of runs.
    pub rows: Vec<ComparedMetric>,
    /// Order in which the runs of both sides were taken.
    pub order: SideOrder,
    /// Facts to know, a sentence each.
    pub notes: Vec<String>,
}

/// One metric on both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedMetric {
    /// Settings of the cell, or the plan's name; empty if all runs are of one plan.
    pub group: String,
    /// Metric.
    pub name: MetricName,
    /// Tolerance, if it is judged.
    pub tolerance: f64,
    /// Values of the first side.
    pub before: SideValues,
    /// Values of the second side.
    pub after: SideValues,
    /// Ratio of the second side to the first one; `None` of too few runs, or if it has no bounds:
    /// values are 0.
    pub ratio: Option<RatioInterval>,
    /// p value of the test; `None` with one run on a side.
    pub p: Option<f64>,
    /// The same after Holm.
    pub p_holm: Option<f64>,
    /// Verdict.
    pub verdict: ComparedVerdict,
    /// Runs a side that would settle an unclear verdict, if the estimate stays; more than
    /// [`counted_max`](Self::counted_max) would not, as no more count.
    pub settled_by: Option<u32>,
    /// Most runs a side that count: pairs of repeats, or else runs of a series.
    pub counted_max: usize,
}

/// Values of a metric on one side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SideValues {
    /// Value of each run, in order.
    pub values: Vec<f64>,
    /// Interval within the run, of a single one.
    pub interval: Option<(f64, f64)>,
    /// Number of runs that do not have the metric, and are left out.
    pub left_out: usize,
}

/// Verdict on a metric of runs that are there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparedVerdict {
    /// A verdict as on repeats of a lab.
    Judged(Verdict),
    /// The sides were not interleaved.
    NotInterleaved,
    /// The sides were interleaved, in an order that was not drawn.
    NotDrawn,
    /// Runs without the metric were left out, and the others are not worse.
    LeftOut,
    /// One run on a side shows nothing of how runs vary.
    OneRun,
}

impl ComparedVerdict {
    /// Returns the words in reports.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Judged(verdict) => verdict.word(),
            Self::NotInterleaved => "unclear: not interleaved",
            Self::NotDrawn => "unclear: order not drawn",
            Self::LeftOut => "unclear: runs left out",
            Self::OneRun => "no verdict: one run",
        }
    }

    /// Returns the first of these words, for a narrow table.
    const fn word(self) -> &'static str {
        match self {
            Self::Judged(verdict) => verdict.word(),
            Self::NotInterleaved | Self::NotDrawn | Self::LeftOut => "unclear",
            Self::OneRun => "-",
        }
    }
}

impl Comparison {
    /// Returns whether a judged metric is worse.
    #[must_use]
    pub fn is_worse(&self) -> bool {
        let worse = ComparedVerdict::Judged(Verdict::Worse);
        self.rows.iter().any(|row| row.verdict == worse)
    }

    /// Returns whether a judged metric has no verdict but `unclear` or none.
    #[must_use]
    pub fn is_unclear(&self) -> bool {
        let is_clear = |verdict| match verdict {
            ComparedVerdict::Judged(verdict) => verdict != Verdict::Unclear,
            ComparedVerdict::NotInterleaved
            | ComparedVerdict::NotDrawn
            | ComparedVerdict::LeftOut
            | ComparedVerdict::OneRun => false,
        };
        self.rows.iter().any(|row| !is_clear(row.verdict))
    }
}

impl ComparedMetric {
    /// Returns whether a side has no values.
    const fn is_missing(&self) -> bool {
        self.before.values.is_empty() || self.after.values.is_empty()
    }

    /// Returns whether runs of a side lack the metric that others have.
    const fn is_partial(&self) -> bool {
        !self.is_missing() && (self.before.left_out > 0 || self.after.left_out > 0)
    }

    /// Returns the name of the metric, after that of its group of runs.
    fn label(&self) -> String {
        match self.group.as_str() {
            "" => self.name.to_string(),
            group => format!("{group}: {}", self.name),
        }
    }
}

/// Compares the second side with the first one.
///
/// # Errors
/// A side has no runs, a run is on both sides, no run of one side belongs to one of the other, or
/// no metric has values on both sides; a sentence.
pub fn compare(
    before: CompareSide,
    after: CompareSide,
    rules: &CompareRules,
) -> Result<Comparison, String> {
    let groups = groups::matched(&before, &after)?;
    shared::refuse_shared(&before, &after)?;
    let mut notes = groups.notes.clone();
    notes.extend(sides::differences(&before, &after));
    notes.extend([&before, &after].into_iter().filter_map(sides::not_done));
    let mut rows = Vec::new();
    for group in &groups.pairs {
        let named = |side: &CompareSide| match group.label.as_str() {
            "" => side.name.clone(),
            label => format!("{}: {label}", side.name),
        };
        notes.extend(sides::copies(&named(&before), &group.before));
        notes.extend(sides::copies(&named(&after), &group.after));
        let names = match rules.metrics.is_empty() {
            true => groups::default_metrics(group, rules.tolerance),
            false => rules.metrics.clone(),
        };
        for (name, tolerance) in names {
            rows.push(row(group, name, tolerance));
        }
    }
    let missing = missing(&rows, (&before, &after));
    if rows.iter().all(ComparedMetric::is_missing) {
        return Err(nothing_compared(&missing, (&before, &after)));
    }
    let order = sides::order(&before, &after);
    judge(&mut rows, &groups.pairs, order, rules);
    notes.extend(interval_level(
        rows.iter().filter_map(|row| row.ratio.as_ref()),
    ));
    notes.extend(missing);
    notes.extend(left_out(&rows, (&before, &after)));
    notes.extend(unsettled(&rows));
    notes.extend(provable(&rows, groups.are_paired()));
    Ok(Comparison {
        order,
        before,
        after,
        rows,
        notes,
    })
}

/// Computes a row without its verdict.
fn row(group: &groups::Pair<'_>, name: MetricName, tolerance: f64) -> ComparedMetric {
    let before = values(&group.before, &name);
    let after = values(&group.after, &name);
    let is_one = before.values.len() < 2 || after.values.len() < 2;
    let (ratio, p) = match group.repeats(|run| value(run, &name)) {
        Some(pairs) => {
            // The baseline is the lower part of the ratio.
            let pairs: Vec<(f64, f64)> = pairs.iter().map(|&(a, b)| (b, a)).collect();
            // Without a ratio, as of negative numbers, nothing is shown; it is a comparison still.
            let p = RatioInterval::p_of_pairs(&pairs).unwrap_or(1.0);
            let ratio = RatioInterval::of_pairs_with_zeros(&pairs);
            (ratio, (!is_one).then_some(p))
        }
        None => {
            let p = (!is_one).then(|| rank_sum(&after.values, &before.values));
            let ratio = RatioInterval::of_series_with_zeros(&after.values, &before.values);
            (ratio, p)
        }
    };
    ComparedMetric {
        group: group.label.clone(),
        name,
        tolerance,
        before,
        after,
        ratio,
        p,
        p_holm: None,
        verdict: ComparedVerdict::OneRun,
        settled_by: None,
        counted_max: match group.is_paired() {
            true => DIFFERENCES_MAX,
            false => SERIES_MAX,
        },
    }
}

/// Gives each row its verdict; Holm's correction is over all of them.
fn judge(
    rows: &mut [ComparedMetric],
    pairs: &[groups::Pair<'_>],
    order: SideOrder,
    rules: &CompareRules,
) {
    let tested: Vec<f64> = rows.iter().filter_map(|row| row.p).collect();
    let comparisons = tested.len();
    let mut adjusted = holm(&tested).into_iter();
    for row in rows.iter_mut() {
        // A change from 0 is an infinite one: it may have a verdict, and has no ratio to show.
        let ratio = row.ratio;
        row.ratio = ratio.filter(RatioInterval::is_bounded);
        let Some(p_holm) = row.p.and_then(|_| adjusted.next()) else {
            continue;
        };
        row.p_holm = Some(p_holm);
        let pair = pairs.iter().find(|pair| pair.label == row.group);
        let is_paired = pair.is_some_and(groups::Pair::is_paired);
        row.verdict = if !is_paired && !rules.accept_drift {
            match order {
                SideOrder::InTurn => ComparedVerdict::NotDrawn,
                _ => ComparedVerdict::NotInterleaved,
            }
        } else {
            let improves = row.name.row.improves;
            let of = |ratio| Verdict::of(ratio, p_holm, row.tolerance, improves);
            match ratio.as_ref().map_or(Verdict::Unclear, of) {
                // Runs may lack it because they were slow: those that are left show no less.
                Verdict::Better | Verdict::Same if row.is_partial() => ComparedVerdict::LeftOut,
                verdict => ComparedVerdict::Judged(verdict),
            }
        };
        if row.verdict == ComparedVerdict::Judged(Verdict::Unclear) {
            row.settled_by = settled_by(row, comparisons, is_paired);
        }
    }
}

/// Returns the number of runs a side that would settle a row. Intervals of pairs and of two
/// series both shrink with the square root of that number.
fn settled_by(row: &ComparedMetric, comparisons: usize, is_paired: bool) -> Option<u32> {
    let runs = row.before.values.len().min(row.after.values.len());
    let runs = u32::try_from(runs.min(row.counted_max)).ok()?;
    let least = u32::try_from(needed_to_prove(comparisons, is_paired)).ok()?;
    let ratio = row.ratio.as_ref()?;
    ratio.repeats_to_settle(runs, row.tolerance, comparisons, least)
}

/// Returns a metric's values on one side.
fn values(runs: &[&ImportedRun], name: &MetricName) -> SideValues {
    let values: Vec<f64> = runs.iter().filter_map(|run| value(run, name)).collect();
    let interval = match runs {
        [run] => name
            .find(&run.run.measures)
            .and_then(|one| one.low.zip(one.high)),
        _ => None,
    };
    SideValues {
        left_out: runs.len() - values.len(),
        values,
        interval,
    }
}

/// Returns a metric of a run: the one that is kept, or else one computed from the record.
fn value(run: &ImportedRun, name: &MetricName) -> Option<f64> {
    if let Some(kept) = name.find(&run.run.measures) {
        return Some(kept.value);
    }
    let record = Record::from_json(run.run.record.as_deref()?).ok()?;
    name.value(&record)
}

/// Names the metrics that a side does not have.
fn missing(rows: &[ComparedMetric], (before, after): (&CompareSide, &CompareSide)) -> Vec<String> {
    let absent = rows.iter().filter(|row| row.is_missing());
    let has_it = |row: &ComparedMetric| {
        let sides = [&row.before, &row.after].map(|side| side.values.is_empty());
        match sides {
            [true, true] => format!("neither side has {}", row.label()),
            [false, _] => format!("only {} has {}", before.name, row.label()),
            [true, false] => format!("only {} has {}", after.name, row.label()),
        }
    };
    absent.map(has_it).collect()
}

/// States of each row how many runs lack its metric.
fn left_out(rows: &[ComparedMetric], sides: (&CompareSide, &CompareSide)) -> Vec<String> {
    let partial = rows.iter().filter(|row| row.is_partial());
    let told = partial.map(|row| {
        let of_sides = [(sides.0, &row.before), (sides.1, &row.after)];
        let counts = of_sides.into_iter().filter(|(_, of)| of.left_out > 0);
        let counts = counts.map(|(side, of)| {
            let all = of.left_out + of.values.len();
            format!("{} of {all} runs of {}", of.left_out, side.name)
        });
        let counts = counts.collect::<Vec<_>>().join(" and ");
        format!("{}: left out: {counts}, which do not have it", row.label())
    });
    told.collect()
}

/// States why no metric has values on both sides: those that were asked for are missing, or no
/// direction is on both sides.
fn nothing_compared(missing: &[String], (before, after): (&CompareSide, &CompareSide)) -> String {
    let why = match missing {
        [] => format!(
            "no direction was measured in all runs of both sides: {} has {}, {} has {}",
            before.name,
            before.directions(),
            after.name,
            after.directions()
        ),
        missing => missing.join(", "),
    };
    format!("no metric was compared: {why}")
}

/// States for each unclear row how many runs would settle it, and why single runs have no verdict.
fn unsettled(rows: &[ComparedMetric]) -> Vec<String> {
    let unclear = ComparedVerdict::Judged(Verdict::Unclear);
    let is_alone =
        |row: &ComparedMetric| row.verdict == ComparedVerdict::OneRun && !row.is_missing();
    let alone = rows.iter().any(is_alone);
    let alone = alone.then(|| "no verdict: one run shows nothing of how runs vary".to_owned());
    let rows = rows.iter().filter(|row| row.verdict == unclear);
    let unclear = rows.map(|row| match row.settled_by {
        Some(runs) if runs as usize > row.counted_max => format!(
            "unclear: {}: the {} runs a side that a comparison counts would not settle it: make \
             runs longer, or tolerate more",
            row.label(),
            row.counted_max
        ),
        Some(runs) => format!(
            "unclear: {}: about {runs} runs a side would settle it, if the estimate stays",
            row.label()
        ),
        None => format!("unclear: {}: {}", row.label(), why_unclear(row)),
    });
    alone.into_iter().chain(unclear).collect()
}

/// Returns why no number of runs can be named that would settle a row.
fn why_unclear(row: &ComparedMetric) -> &'static str {
    let mut values = [&row.before, &row.after]
        .into_iter()
        .flat_map(|side| &side.values);
    match row.ratio {
        Some(_) => "the estimate is at the tolerance's edge",
        None if values.any(|value| *value <= 0.0) => {
            "a change from or to 0 has no ratio, and none is proved"
        }
        None => "so few runs give no interval",
    }
}

/// States if so few runs can prove nothing, and how many could.
fn provable(rows: &[ComparedMetric], are_paired: bool) -> Option<String> {
    let tested = rows.iter().filter(|row| row.p.is_some()).count();
    let fewest = rows.iter().filter(|row| row.p.is_some());
    let fewest = fewest
        .map(|row| row.before.values.len().min(row.after.values.len()))
        .min()?;
    let needed = needed_to_prove(tested, are_paired);
    (fewest < needed).then(|| {
        let runs = counted(fewest as u64, "run");
        let prove = if fewest == 1 { "proves" } else { "prove" };
        match tested {
            1 => format!("{runs} a side {prove} nothing: take at least {needed}"),
            _ => format!(
                "{runs} a side {prove} nothing in {tested} comparisons at once: take at least \
                 {needed} or judge fewer metrics"
            ),
        }
    })
}

/// Returns the least number of runs a side that can prove a change among `comparisons`.
fn needed_to_prove(comparisons: usize, are_paired: bool) -> usize {
    match are_paired {
        true => fathom_stats::repeats_to_prove(comparisons) as usize,
        false => runs_to_prove(comparisons),
    }
}

/// Returns the least number of runs a side whose smallest p value, 2 of all ways to split them,
/// could be significant among `comparisons` comparisons.
#[expect(clippy::cast_precision_loss, reason = "small counts")]
fn runs_to_prove(comparisons: usize) -> usize {
    let mut runs = 1;
    // C(2, 1)
    let mut ways = 2.0;
    while 2.0 / ways * comparisons.max(1) as f64 > SIGNIFICANT {
        let next = (runs + 1) as f64;
        // C(2n, n) = C(2n − 2, n − 1) · (2n − 1) · 2 ÷ n
        ways *= (2.0 * next - 1.0) * 2.0 / next;
        runs += 1;
    }
    runs
}

/// Returns the median of a side.
pub(crate) fn middle(side: &SideValues) -> Option<f64> {
    let mut sorted = side.values.clone();
    sorted.sort_by(f64::total_cmp);
    (!sorted.is_empty()).then(|| median(&sorted))
}

#[cfg(test)]
mod tests;

//! Levels of a lab's runs: what varies within them and between them, and whether longer runs or
//! more repeats buy more.
//!
//! A verdict is drawn from the ratios of a repeat, in which whatever both sides share cancels. So
//! the levels are those of the ratios, too: their errors within the runs come from the intervals of
//! each run's windows, what they vary more is between the runs.

use std::collections::BTreeMap;

use fathom_core::Nanos;
use fathom_record::Record;
use fathom_stats::{
    BestLength, LevelAdvice, LevelGroup, Levels, RunCost, WithinRun, repeats_to_prove,
};

use super::executor::RunDone;
use super::journal::EarlierRun;
use super::observed::{Observed, observed};
use super::results::LabResults;
use crate::judge::Values;
use crate::lab_plan::LabPlan;
use crate::order::Slot;

/// Time that runs took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunTimes {
    runs: u64,
    measured_ms: u64,
    /// Time around what was measured: start, ramp, commands.
    around_ms: u64,
}

impl RunTimes {
    /// Adds a run; one without a record does not tell.
    pub(crate) fn add(&mut self, run: &RunDone) {
        let Some(record) = &run.record else {
            return;
        };
        let measured_ms = measured_ms(record);
        self.runs += 1;
        self.measured_ms += measured_ms;
        let whole_ms = run.wall_ms.max(record.elapsed_ms);
        self.around_ms += whole_ms.saturating_sub(measured_ms);
    }

    /// Returns the mean cost of a run, with the pause before it.
    fn cost(&self, pause: Nanos) -> Option<RunCost> {
        let seconds = |ms: u64| ms as f64 / 1e3 / self.runs as f64;
        (self.runs > 0 && self.measured_ms > 0).then(|| RunCost {
            measured: seconds(self.measured_ms),
            overhead: seconds(self.around_ms) + pause.get() as f64 / 1e9,
        })
    }
}

/// Returns half the width of a metric's interval within a run, relative to its value; `None`
/// without an interval. A lab that goes on has those of the history, so the others are the same.
pub(crate) fn half_width(run: &RunDone, observed: &Observed) -> Option<f64> {
    let name = &observed.name;
    let (value, low, high) = match run.measures.is_empty() {
        false => {
            let kept = name.find(&run.measures)?;
            (kept.value, kept.low?, kept.high?)
        }
        true => {
            let record = run.record.as_ref()?;
            let interval = name.within_run(record)?;
            (name.value(record)?, interval.low, interval.high)
        }
    };
    (value > 0.0).then(|| (high - low) / 2.0 / value)
}

impl LabPlan {
    /// Returns sentences about the levels of the runs that there are, for `--plan`; none before the
    /// first repeats, or if the lab compares nothing.
    #[must_use]
    pub fn level_sentences(&self, runs: &[EarlierRun]) -> Vec<String> {
        let Ok(metrics) = observed(self) else {
            return Vec::new();
        };
        let mut results = LabResults::new(self, metrics);
        let mut repeats: BTreeMap<(u32, usize), Vec<(Slot, RunDone)>> = BTreeMap::new();
        for run in runs {
            let repeat = (run.slot.repeat, run.slot.cell);
            let runs = repeats.entry(repeat).or_default();
            runs.push((run.slot, run.done.clone()));
        }
        repeats.values().for_each(|runs| results.add(runs));
        sentences(self, &results)
    }
}

/// Returns a sentence per judged metric.
pub(super) fn sentences(plan: &LabPlan, results: &LabResults) -> Vec<String> {
    if plan.a_a || plan.comparisons() == 0 {
        return Vec::new();
    }
    let Some(cost) = results.times.cost(plan.run.pause) else {
        return Vec::new();
    };
    let mut told = Vec::new();
    for (metric, observed) in results.metrics.iter().enumerate() {
        if observed.rule.is_some()
            && let Some(levels) = levels(plan, results, metric)
        {
            let advice = advice(plan, results, &levels, cost);
            told.push(format!("{}: {advice}", observed.name.stored_name()));
        }
    }
    if told.is_empty() {
        told.extend(missing_reason(results, cost.measured));
    }
    told
}

/// Returns the reason why there are repeats and yet no sentence about them.
fn missing_reason(results: &LabResults, measured: f64) -> Option<String> {
    let mut judged = results.metrics.iter().filter(|one| one.rule.is_some());
    let has_repeats = results.cells.iter().any(|cell| cell.repeats > 1);
    if !has_repeats || !judged.any(Observed::has_windows) {
        return None;
    }
    let length = rounded(measured);
    Some(match measured < SHORTEST_S {
        true => format!(
            "runs of {length} s are too short to tell what varies within them, and so whether \
             longer ones would buy more: that takes {SHORTEST_S} s"
        ),
        false => format!(
            "the windows of runs of {length} s say less than {} independent ones, too little to \
             tell what varies within them: longer runs would",
            WithinRun::EFFECTIVE_MIN
        ),
    })
}

/// Returns the levels of a metric's ratios to the baseline, of all cells and variants together.
fn levels(plan: &LabPlan, results: &LabResults, metric: usize) -> Option<Levels> {
    let baseline = plan.judge.baseline;
    let mut groups = Vec::new();
    for (cell, variant) in results.values.sides() {
        if variant != baseline {
            let of = |variant| {
                let of = |values: &Values| -> BTreeMap<u32, f64> {
                    values.of(cell, variant, metric).iter().copied().collect()
                };
                (of(&results.values), of(&results.within))
            };
            groups.push(group(&of(variant), &of(baseline)));
        }
    }
    let freedom: usize = groups
        .iter()
        .map(|group| group.logs.len().saturating_sub(1))
        .sum();
    (freedom >= FREEDOM_MIN)
        .then(|| Levels::of(&groups))
        .flatten()
}

/// Values and half-widths within the runs, by repeat.
type Side = (BTreeMap<u32, f64>, BTreeMap<u32, f64>);

/// Returns the ratios of both sides, where all is known of a repeat.
fn group((values, halves): &Side, (others, other_halves): &Side) -> LevelGroup {
    let mut group = LevelGroup::default();
    for (repeat, value) in values {
        let other = others.get(repeat);
        let halves = halves.get(repeat).zip(other_halves.get(repeat));
        if let (Some(other), Some((half, other_half))) = (other, halves)
            && *value > 0.0
            && *other > 0.0
        {
            group.logs.push((value / other).ln());
            group.errors.push(half.hypot(*other_half) / HALF_OF_ERROR);
        }
    }
    group
}

/// Returns the deviations of a run at both levels, and what buys more.
fn advice(plan: &LabPlan, results: &LabResults, levels: &Levels, cost: RunCost) -> String {
    // A ratio has the variance of two runs.
    let percent = |variance: f64| format!("{:.2} %", (variance / 2.0).sqrt() * 100.0);
    let repeats = (0..results.cells.len()).map(|cell| results.repeats(cell));
    let repeats = repeats.max().unwrap_or_default().max(1);
    let fewest = f64::from(repeats_to_prove(plan.comparisons())) / f64::from(repeats);
    let fewest = fewest.min(1.0);
    let BestLength { factor, time } = levels.best_length(cost, fewest);
    let length = rounded(factor * cost.measured);
    let time = (time * 100.0).round();
    let what = match levels.advice(cost, fewest) {
        LevelAdvice::Balanced => "neither longer runs nor more repeats would save a tenth of \
                                  the time"
            .to_owned(),
        LevelAdvice::LongerRuns => format!(
            "longer runs buy more: fewer ones of about {length} s give the same intervals in \
             {time} % of the time"
        ),
        LevelAdvice::MoreRepeats => format!(
            "more repeats buy more: with runs of about {length} s they give the same intervals in \
             {time} % of the time"
        ),
    };
    format!(
        "deviates by {} within a run of {} s and by {} between runs; {what}",
        percent(levels.within),
        rounded(cost.measured),
        percent(levels.between)
    )
}

/// Returns the time that a run measured: that of its longest job.
fn measured_ms(record: &Record) -> u64 {
    let longest = record.jobs.iter().map(|job| job.runtime_ms).max();
    longest.unwrap_or_default()
}

/// Formats seconds with two digits.
fn rounded(seconds: f64) -> String {
    match seconds {
        0.0..0.95 => format!("{seconds:.2}"),
        0.95..9.5 => format!("{seconds:.1}"),
        _ => format!("{seconds:.0}"),
    }
}

/// Fewest degrees of freedom, all cells together, with which the levels are told.
const FREEDOM_MIN: usize = 5;

/// Half-widths of 95 % over standard errors: Student's t of 30 and more windows is 1.96 to 2.04.
const HALF_OF_ERROR: f64 = 2.0;

/// Length from which on a run has enough windows of 100 ms, if they are independent.
const SHORTEST_S: f64 = WithinRun::EFFECTIVE_MIN * 0.1;

#[cfg(test)]
mod tests;

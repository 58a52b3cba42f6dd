//! Notes on the steady state: the rounds that count, and what was not steady in them.

use super::Report;
use super::notes::place;
use crate::lab::SteadySide;
use crate::lab_plan::Rounds;

/// Returns whether all rounds were run, and no window of them was steady.
pub(super) fn is_never_steady(report: &Report<'_>) -> bool {
    let outcome = report.outcome;
    let steadiness = outcome.steadiness.as_ref();
    !outcome.is_interrupted && steadiness.is_some_and(|steadiness| !steadiness.is_reached())
}

/// Returns notes on the last rounds, one per variant.
pub(super) fn steady_notes(report: &Report<'_>) -> Vec<String> {
    let (Some(rounds), Some(steadiness)) = (&report.plan.rounds, &report.outcome.steadiness) else {
        return Vec::new();
    };
    let (first, last) = steadiness.rounds;
    let mut notes = Vec::new();
    if is_never_steady(report) {
        notes.push(format!(
            "not steady within {last} rounds: the figures are those of rounds {first} to {last}, \
             and no steady state"
        ));
    } else if steadiness.is_reached() {
        notes.push(format!(
            "steady after {last} rounds; rounds {first} to {last} count"
        ));
    }
    let sides = steadiness.sides.iter();
    notes.extend(sides.map(|side| told(report, rounds, side)));
    notes
}

fn told(report: &Report<'_>, rounds: &Rounds, side: &SteadySide) -> String {
    let word = if side.is_steady {
        "steady"
    } else {
        "not steady"
    };
    let variant = report.plan.variants[side.variant].name.as_str();
    let of = match place(report, rounds.cell, &[variant]).as_str() {
        "" => rounds.metric.clone(),
        place => format!("{}, {place}", rounds.metric),
    };
    let Some(window) = side.window else {
        return format!("{word}: {of}: fewer than {} rounds", rounds.window);
    };
    let percent = |value: f64| 100.0 * value / window.mean;
    format!(
        "{word}: {of}: range {:.1} % of the mean, at most {} %; slope {:.1} %, at most {} %",
        percent(window.range),
        rounds.range_percent(),
        percent(window.excursion),
        rounds.slope_percent()
    )
}

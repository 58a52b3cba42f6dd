//! Notes of a lab's table: conditions, failures, and what is not settled.

use fathom_stats::{DIFFERENCES_MAX, RatioInterval, Verdict};
use fathom_virtual::MachineModel;

use super::order_notes::order_notes;
use super::steady_notes::steady_notes;
use super::{Report, label, published_figure};
use crate::counted::counted;
use crate::figure::interval_level;
use crate::judge::Judgement;
use crate::lab::levels;
use crate::lab_plan::{LabPlan, Stop};
use crate::published::{error_percent, mean_and_worst};

/// Returns the notes.
pub(super) fn notes(report: &Report<'_>) -> Vec<String> {
    let mut notes = vec![conditions(report)];
    notes.extend(steady_notes(report));
    if report.plan.curve.is_some() {
        notes.push(CURVE.into());
    }
    notes.extend(judged(report));
    let judgements = report.outcome.judgements.iter();
    notes.extend(interval_level(
        judgements.filter_map(|one| one.ratio.as_ref()),
    ));
    if report.plan.a_a {
        notes.push("A/A: every variant is the baseline; any change is a false alarm".into());
    }
    notes.extend(errors(report));
    notes.extend(failures(report));
    notes.extend(disturbances(report));
    notes.extend(unsettled(report));
    let levels = levels::sentences(report.plan, &report.outcome.results).into_iter();
    notes.extend(levels.map(|told| format!("levels: {told}")));
    notes.extend(order_notes(report.plan, &report.outcome.results));
    notes.extend(boots(report));
    if report.outcome.is_interrupted && report.outcome.waiting.is_empty() {
        notes.push(interrupted(report));
    }
    notes
}

/// Returns what a lab whose repeats span boots says of them.
fn boots(report: &Report<'_>) -> Vec<String> {
    if !report.plan.waits_for_boots() {
        return Vec::new();
    }
    let mut notes = vec![BOOTS.to_owned()];
    let waiting = &report.outcome.waiting;
    notes.extend(waiting.iter().map(|one| one.phrase(report.plan)));
    if !waiting.is_empty() {
        notes.push("runs are left: boot the host as needed, then give the same command".into());
    }
    notes
}

/// Note on repeats that span boots.
const BOOTS: &str = "repeats are boots: within a repeat, the order is that in which the host was \
                     booted, not drawn; alternate it";

/// Note on the loads of a curve.
const CURVE: &str = "loads are shares of the median rate of the baseline at `max`, a closed loop, \
                     and are asked of all jobs together, in an open loop";

fn conditions(report: &Report<'_>) -> String {
    let plan = report.plan;
    let place = plan.place();
    format!(
        "{place}; order and offsets drawn with seed {}; medians of the repeats",
        plan.seed
    )
}

impl LabPlan {
    /// Returns the place of the runs, as a phrase.
    pub(crate) fn place(&self) -> String {
        let Some(machine) = &self.machine else {
            return "measured on this machine".into();
        };
        let model = MachineModel::parse(&machine.path, &machine.text).ok();
        match model.and_then(|model| model.noise()) {
            None => format!("modelled on {}, in virtual time", machine.path),
            Some(noise) => format!(
                "modelled on {}, in virtual time, with noise that is assumed: {noise}",
                machine.path
            ),
        }
    }
}

fn judged(report: &Report<'_>) -> Option<String> {
    let plan = report.plan;
    if plan.variants.len() < 2 || plan.judge.metrics.is_empty() {
        return None;
    }
    let metrics = plan.judge.metrics.iter().map(|metric| {
        let percent = metric.tolerance * 100.0;
        format!("{} ± {percent} %", metric.metric)
    });
    let metrics = metrics.collect::<Vec<_>>().join(", ");
    let repeats = &plan.judge.repeats;
    let repeats = match repeats.stop {
        Stop::Never if plan.rounds.is_some() => format!("{} rounds that count", repeats.min),
        Stop::Never => format!("{} repeats", repeats.max),
        Stop::Narrow if repeats.min == repeats.max => format!("{} repeats", repeats.max),
        Stop::Narrow => format!(
            "{} to {} repeats, until the intervals are narrow",
            repeats.min, repeats.max
        ),
    };
    let comparisons = counted(plan.comparisons() as u64, "comparison");
    Some(format!(
        "judged: {metrics}, {repeats}; verdicts allow for {comparisons}"
    ))
}

/// Returns a note per published column with the errors of ours against it.
fn errors(report: &Report<'_>) -> Vec<String> {
    let results = &report.outcome.results;
    let mut notes = Vec::new();
    for (metric, observed) in results.metrics.iter().enumerate() {
        for (variant, named) in report.plan.variants.iter().enumerate() {
            let columns = report.published_of(metric, variant);
            for (nth, (published, at)) in columns.into_iter().enumerate() {
                let error = |cell: usize| {
                    let ours = report.median(cell, variant, metric)?;
                    let known = published_figure(published, at, cell, observed)?;
                    Some(error_percent(ours, known))
                };
                let errors: Vec<f64> = (0..results.cells.len()).filter_map(error).collect();
                if let Some((mean, worst)) = mean_and_worst(&errors) {
                    let of = format!("{} {}", named.name, published.columns[at].metric);
                    let number = match nth {
                        0 => String::new(),
                        nth => format!(" (published {})", nth + 1),
                    };
                    notes.push(format!(
                        "{}: error against {}{number}: mean {mean:.1} %, worst \
                         {worst:.1} %",
                        of.trim_start(),
                        counted(errors.len() as u64, "published figure")
                    ));
                }
            }
        }
    }
    notes
}

pub(super) fn failures(report: &Report<'_>) -> Vec<String> {
    let results = &report.outcome.results;
    let mut reasons = results.cells.iter().map(|cell| cell.failure.as_ref());
    if let Some(Some(why)) = reasons.next()
        && results.cells.len() > 1
        && reasons.all(|other| other == Some(why))
    {
        let first = why.lines().next().unwrap_or_default();
        return vec![format!(
            "failed: all {} cells: {first}",
            results.cells.len()
        )];
    }
    let mut notes: Vec<String> = results
        .cells
        .iter()
        .enumerate()
        .filter_map(|(cell, state)| {
            let why = state.failure.as_deref()?;
            let first = why.lines().next().unwrap_or_default();
            Some(match place(report, cell, &[]).as_str() {
                "" => format!("failed: {first}"),
                cell => format!("failed: {cell}: {first}"),
            })
        })
        .collect();
    shorten(&mut notes);
    if results.retried > 0 {
        let repeats = counted(results.retried, "repeat");
        let were = if results.retried == 1 { "was" } else { "were" };
        notes.push(format!("{repeats} {were} done again after an error"));
    }
    notes
}

pub(super) fn disturbances(report: &Report<'_>) -> Vec<String> {
    let mut disturbed: Vec<_> = report.outcome.results.disturbed.iter().collect();
    // Runs of before an interruption come in another order.
    disturbed.sort_by_key(|run| (run.repeat, run.cell, run.variant));
    let one = |run: &crate::lab::Disturbance| {
        let variant = report.plan.variants[run.variant].name.as_str();
        let repeat = format!("repeat {}", run.repeat + 1);
        let of = place(report, run.cell, &[variant, &repeat]);
        format!("disturbed: {of}: {}", run.what)
    };
    let first = report.outcome.results.first_round;
    let counting = disturbed.iter().copied().filter(|run| run.repeat >= first);
    let mut notes: Vec<String> = counting.map(one).collect();
    let count = notes.len();
    shorten(&mut notes);
    if count > 0 {
        let runs = counted(count as u64, "run");
        let were = if count == 1 { "was" } else { "were" };
        let are = if count == 1 { "is" } else { "are" };
        let figures = match report.plan.search {
            Some(_) => "probes",
            None => "medians",
        };
        notes.push(format!(
            "{runs} {were} disturbed, and {are} included in the {figures}"
        ));
    }
    notes
}

/// Returns what is unclear, with the repeats that would settle it, and what is unstable: a note per
/// reason.
fn unsettled(report: &Report<'_>) -> Vec<String> {
    let of = |one: &Judgement| {
        let metric = label(&report.outcome.results.metrics[one.metric]);
        let metric = metric.split(',').next().unwrap_or_default();
        let variant = &report.plan.variants[one.variant].name;
        place(report, one.cell, &[variant, metric])
    };
    let cells = &report.outcome.results.cells;
    let judgements = &report.outcome.judgements;
    // For a cell that failed, the failure is reported instead.
    let unclear = judgements
        .iter()
        .filter(|one| one.verdict == Verdict::Unclear && cells[one.cell].failure.is_none());
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    let mut add =
        |why: String, place: String| match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, places)) => places.push(place),
            None => reasons.push((why, vec![place])),
        };
    for one in unclear {
        let (why, place) = match one.settled_by {
            Some(repeats) if repeats as usize > DIFFERENCES_MAX => {
                let why = format!(
                    "even {DIFFERENCES_MAX} repeats, the most allowed, would not settle it; make \
                     runs longer, or tolerate more"
                );
                (why, of(one))
            }
            Some(repeats) => (SETTLED_BY.into(), format!("{}: about {repeats}", of(one))),
            None => (why_unclear(one).into(), of(one)),
        };
        add(format!("unclear: {why}"), place);
    }
    for one in judgements.iter().filter(|one| one.is_unstable) {
        add(UNSTABLE.into(), of(one));
    }
    let notes = reasons.into_iter();
    notes
        .map(|(why, places)| format!("{why}: {}", listed(&places)))
        .collect()
}

/// Joins the first places, and says how many more there are.
fn listed(places: &[String]) -> String {
    let shown = &places[..places.len().min(NOTES_MAX)];
    let mut text = shown.join("; ");
    if places.len() > shown.len() {
        text.push_str(&format!("; and {} more", places.len() - shown.len()));
    }
    text
}

/// Reason of comparisons that a number of repeats settles.
const SETTLED_BY: &str = "more repeats would settle it, if the estimate stays";

/// Beginning of the note on unstable cells.
const UNSTABLE: &str = "unstable: the interval is 5 times as wide as the median cell's";

/// Returns why no number of repeats can be named that would settle a comparison.
const fn why_unclear(one: &Judgement) -> &'static str {
    match (&one.ratio, one.repeats) {
        (Some(_), _) => "the estimate is at the tolerance's edge",
        (None, 0..RatioInterval::PAIRS_MIN) => "values are missing",
        (None, _) => "a change from or to 0 has no ratio, and none is proved",
    }
}

/// Returns the name of a part of a cell; a lab of one cell has none for it.
pub(super) fn place(report: &Report<'_>, cell: usize, parts: &[&str]) -> String {
    let cell = report.plan.cells[cell].label.as_str();
    let all = std::iter::once(cell).chain(parts.iter().copied());
    all.filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(", ")
}

/// Returns the note of a lab that was interrupted.
pub(super) fn interrupted(report: &Report<'_>) -> String {
    let next = match report.outcome.continues {
        true => "continues",
        false => "starts over",
    };
    format!("interrupted: some runs are missing; the same command {next}")
}

/// Leaves the first notes, and says how many there were.
fn shorten(notes: &mut Vec<String>) {
    if notes.len() > NOTES_MAX {
        let more = notes.len() - NOTES_MAX;
        notes.truncate(NOTES_MAX);
        let kind = notes[0].split(':').next().unwrap_or_default().to_owned();
        notes.push(format!("{kind}: and {more} more"));
    }
}

/// Most notes of a kind.
const NOTES_MAX: usize = 8;

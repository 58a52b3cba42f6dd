//! Sides of a comparison, and the circumstances in which they differ.

use std::collections::BTreeSet;

use crate::figure::{printable, shortened};
use crate::finished::{FinishedRun, RunEnd};
use crate::import::ImportedRun;
use crate::subject;

/// Runs of one side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CompareSide {
    /// Name that the user gave.
    pub name: String,
    /// Runs, in any order.
    pub runs: Vec<ImportedRun>,
    /// Place of each run among the files, the same under each of their names; empty of runs of a
    /// history.
    pub files: Vec<String>,
}

/// Order in which the runs of both sides were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SideOrder {
    /// One side after the other, with this time between them, ms.
    Apart(u64),
    /// In turn: the sides change more than once, and no run of one overlaps a run of the other.
    InTurn,
    /// Runs of both sides overlap in time.
    Overlapping,
    /// The start of a run is not known.
    Unknown,
}

impl CompareSide {
    /// Lists the directions that a run has numbers of; `none` without any.
    pub(super) fn directions(&self) -> String {
        let measures = self.runs.iter().flat_map(|run| &run.run.measures);
        let directions: BTreeSet<&str> = measures.map(|one| one.direction).collect();
        match directions.len() {
            0 => "none".into(),
            _ => Vec::from_iter(directions).join(" and "),
        }
    }
}

/// Returns the differences of the sides in plan, machine and subject, a sentence each.
pub(super) fn differences(before: &CompareSide, after: &CompareSide) -> Vec<String> {
    let circumstances: [(&str, FactsOf); 3] = [
        ("the jobs differ", |run| {
            run.plan.lines().map(str::to_owned).collect()
        }),
        ("the machines differ", |run| facts(&run.machine)),
        ("the subject differs", |run| facts(&run.subject)),
    ];
    let told = circumstances.into_iter().filter_map(|(what, of)| {
        let (old, new) = (all(before, of), all(after, of));
        let listed = |some: Vec<&String>| {
            let some: Vec<&str> = some.into_iter().map(String::as_str).collect();
            shortened(&printable(&some.join(", ")), DIFFERENCE_LENGTH)
        };
        let gone = listed(old.difference(&new).collect());
        let come = listed(new.difference(&old).collect());
        match (gone.as_str(), come.as_str()) {
            ("", "") => None,
            ("", _) => Some(format!("{what}: the second side adds {come}")),
            (_, "") => Some(format!("{what}: the first side alone has {gone}")),
            _ => Some(format!("{what}: {gone} → {come}")),
        }
    });
    told.collect()
}

/// States how many runs of a side were cut or failed, and what the first of them says.
pub(super) fn not_done(side: &CompareSide) -> Option<String> {
    let runs = side.runs.iter().map(|run| &run.run);
    let mut ended = runs.filter(|run| run.end != RunEnd::Done);
    let first = ended.next()?;
    let count = 1 + ended.count();
    let why = match &first.note {
        Some(note) => format!(": {}", printable(note)),
        None => String::new(),
    };
    let ended = match first.end {
        RunEnd::Failed => "failed",
        RunEnd::Cut | RunEnd::Done => "was cut",
    };
    let (name, all) = (&side.name, side.runs.len());
    Some(format!(
        "{name}: {count} of {all} runs did not run to the end; the first {ended}{why}"
    ))
}

/// States that the runs of a side are identical in every metric. Intervals and tests assume
/// independent runs, which these are not.
pub(super) fn copies(name: &str, runs: &[&ImportedRun]) -> Option<String> {
    let [first, rest @ ..] = runs else {
        return None;
    };
    let is_copy = |run: &&ImportedRun| run.run.measures == first.run.measures;
    let measured = !first.run.measures.is_empty() && !rest.is_empty();
    (measured && rest.iter().all(is_copy)).then(|| {
        format!(
            "{name}: the {} runs are identical in every metric, as copies or modelled runs with \
             one seed are: intervals and verdicts say nothing about run-to-run variation",
            runs.len()
        )
    })
}

/// Returns the order in which the runs of both sides were taken.
pub(super) fn order(before: &CompareSide, after: &CompareSide) -> SideOrder {
    let (Some(first), Some(second)) = (times(before), times(after)) else {
        return SideOrder::Unknown;
    };
    let of_side =
        |side: bool, times: Vec<(u64, u64)>| times.into_iter().map(move |one| (one, side));
    let mut all: Vec<_> = of_side(false, first).chain(of_side(true, second)).collect();
    all.sort_unstable();
    // Time from the last end of the other side to the start of a run, where the sides change.
    let mut ended = [None; 2];
    let mut gaps = Vec::new();
    let mut last = None;
    for ((begun, end), side) in all {
        let own = &mut ended[usize::from(side)];
        *own = (*own).max(Some(end));
        if let Some(other) = ended[usize::from(!side)] {
            gaps.extend((last != Some(side)).then(|| begun.checked_sub(other)));
        }
        last = Some(side);
    }
    match gaps[..] {
        [Some(ms)] => SideOrder::Apart(ms),
        _ if gaps.iter().all(Option::is_some) => SideOrder::InTurn,
        _ => SideOrder::Overlapping,
    }
}

/// Returns the start and the end of each run; `None` if a start is not known.
fn times(side: &CompareSide) -> Option<Vec<(u64, u64)>> {
    let times = side.runs.iter().map(|run| {
        let begun = run.begun_ms.filter(|&begun| begun > 0)?;
        Some((begun, begun.saturating_add(run.run.wall_ms)))
    });
    times.collect()
}

/// Returns the facts that all runs of a side have in common or any of them has.
fn all(side: &CompareSide, of: FactsOf) -> BTreeSet<String> {
    side.runs.iter().flat_map(|run| of(&run.run)).collect()
}

/// Returns the entries of a JSON object, nested ones with their path.
fn facts(json: &str) -> Vec<String> {
    subject::facts(json)
        .into_iter()
        .map(|(key, value)| format!("{key} {value}"))
        .collect()
}

/// Lists the facts of a run's circumstance.
type FactsOf = fn(&FinishedRun) -> Vec<String>;

/// Most characters of one side of a difference.
const DIFFERENCE_LENGTH: usize = 200;

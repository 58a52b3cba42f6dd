//! Sides of a comparison, and the circumstances in which they differ.

use std::collections::BTreeSet;

use crate::figure::{printable, shortened};
use crate::finished::FinishedRun;
use crate::import::ImportedRun;
use crate::subject;

/// Runs of one side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CompareSide {
    /// Name that the user gave.
    pub name: String,
    /// Runs, in any order.
    pub runs: Vec<ImportedRun>,
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

/// Returns the time between the sides, ms; `None` if they overlap or it is not known.
pub(super) fn apart_ms(before: &CompareSide, after: &CompareSide) -> Option<u64> {
    let (first, second) = (span(before)?, span(after)?);
    let (earlier, later) = match first.0 <= second.0 {
        true => (first, second),
        false => (second, first),
    };
    later.0.checked_sub(earlier.1)
}

/// Returns the start of the first run and the end of the last.
fn span(side: &CompareSide) -> Option<(u64, u64)> {
    let begun = side
        .runs
        .iter()
        .map(|run| run.begun_ms.filter(|&begun| begun > 0));
    let begun: Option<Vec<u64>> = begun.collect();
    let begun = begun?;
    let ended = side.runs.iter().zip(&begun);
    let ended = ended.map(|(run, begun)| begun.saturating_add(run.run.wall_ms));
    Some((begun.iter().copied().min()?, ended.max()?))
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

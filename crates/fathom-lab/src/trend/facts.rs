//! Facts that changed with a level: what the runs after a change share and those before do not.

use std::collections::{BTreeMap, BTreeSet};

use crate::subject;

/// Returns the facts that changed between two levels, as `kernel 6.12.1 → 6.12.9`; a fact that one
/// side lacks has a dash there. The sides are the subjects or tags of their runs, as JSON objects,
/// in the order of the runs.
///
/// A fact counts if most runs of each side agree about it, and the sides differ: an outlier, beside
/// the change or within a level, neither hides nor fakes it. A fact that few runs of a side share
/// (the commit of each night) counts if the sides have no value in common; the result then has the
/// values of the runs beside the change.
#[must_use]
pub fn changed_facts(before: &[impl AsRef<str>], after: &[impl AsRef<str>]) -> Vec<String> {
    let (before, after) = (all_facts(before), all_facts(after));
    let keys: BTreeSet<&String> = before
        .iter()
        .chain(&after)
        .flat_map(|run| run.keys())
        .collect();
    let changed = keys.into_iter().filter_map(|key| {
        let (old, new) = change(&values(&before, key), &values(&after, key))?;
        let shown = |value: Option<&str>| value.unwrap_or(ABSENT).to_owned();
        Some(format!("{key} {} → {}", shown(old), shown(new)))
    });
    changed.collect()
}

fn all_facts(side: &[impl AsRef<str>]) -> Vec<BTreeMap<String, String>> {
    let runs = side.iter();
    runs.map(|run| subject::facts(run.as_ref())).collect()
}

/// Returns the values of a fact before and after a change, if it changed there.
fn change<'a>(before: &[Fact<'a>], after: &[Fact<'a>]) -> Option<(Fact<'a>, Fact<'a>)> {
    if let (Some(old), Some(new)) = (prevailing(before), prevailing(after)) {
        return (old != new).then_some((old, new));
    }
    let is_shared = before.iter().any(|value| after.contains(value));
    match (before.last(), after.first()) {
        (Some(old), Some(new)) if !is_shared => Some((*old, *new)),
        _ => None,
    }
}

/// Returns the value that at least two thirds of the runs have.
fn prevailing<'a>(values: &[Fact<'a>]) -> Option<Fact<'a>> {
    let mut counts = BTreeMap::new();
    for value in values {
        *counts.entry(*value).or_insert(0) += 1;
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    most.filter(|(_, count)| 3 * count >= 2 * values.len())
        .map(|(value, _)| value)
}

fn values<'a>(runs: &'a [BTreeMap<String, String>], key: &str) -> Vec<Fact<'a>> {
    let value = |run: &'a BTreeMap<String, String>| run.get(key).map(String::as_str);
    runs.iter().map(value).collect()
}

/// Value of a fact in a run; `None` if the run lacks it.
type Fact<'a> = Option<&'a str>;

/// Sign of a fact that a run lacks.
const ABSENT: &str = "–";

/// Most runs of a side that are asked for their facts, those nearest to the change: enough to tell
/// an outlier from a level, and few to read.
pub const FACT_RUNS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(before: &[&str], after: &[&str], want: &[&str]) {
        assert_eq!(changed_facts(before, after), want);
    }

    const OLD: &str = r#"{"kernel": "6.1", "program": "a", "schedulers": {"sda": "none"}}"#;
    const NEW: &str = r#"{"kernel": "6.2", "program": "a", "schedulers": {"sda": "bfq"}, "x": 1}"#;

    #[test]
    fn facts_that_differ_are_listed() {
        let changed = ["kernel 6.1 → 6.2", "schedulers.sda none → bfq", "x – → 1"];
        check(&[OLD], &[NEW], &changed);
        check(&[OLD], &[OLD], &[]);
        check(&["not JSON"], &["{}"], &[]);
        check(&[], &[NEW], &[]);
    }

    #[test]
    fn outliers_neither_hide_nor_feign_a_change() {
        let changed = ["kernel 6.1 → 6.2", "schedulers.sda none → bfq", "x – → 1"];
        // One run of the other kind beside the change, on either side or on both.
        check(&[OLD, OLD, NEW], &[NEW; 3], &changed);
        check(&[OLD; 3], &[OLD, NEW, NEW], &changed);
        check(&[OLD, OLD, NEW], &[OLD, NEW, NEW], &changed);
        check(&[OLD; 5], &[NEW, OLD, OLD, OLD, OLD], &[]);
        check(&[OLD, OLD, OLD, OLD, NEW], &[OLD; 5], &[]);
    }

    #[test]
    fn a_fact_of_each_run_is_told_beside_the_change() {
        let commits = [
            r#"{"commit": "1"}"#,
            r#"{"commit": "2"}"#,
            r#"{"commit": "3"}"#,
        ];
        let later = [
            r#"{"commit": "4"}"#,
            r#"{"commit": "5"}"#,
            r#"{"commit": "6"}"#,
        ];
        check(&commits, &later, &["commit 3 → 4"]);
        // A fact that comes and goes on both sides did not change there.
        check(&[OLD, NEW, OLD, NEW], &[NEW, OLD, NEW, OLD], &[]);
    }
}

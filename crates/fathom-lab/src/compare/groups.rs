//! Runs of both sides that belong together: of one cell of a lab, or of one plan.

use std::collections::{BTreeMap, BTreeSet};

use fathom_record::MetricName;

use super::{CompareSide, value};
use crate::counted::counted;
use crate::figure::shortened;
use crate::finished::RunEnd;
use crate::import::ImportedRun;
use crate::subject::job_names;

/// Groups of both sides.
pub(super) struct Matched<'a> {
    /// Groups that both sides have.
    pub(super) pairs: Vec<Pair<'a>>,
    /// Groups that one side lacks, a sentence each.
    pub(super) notes: Vec<String>,
}

/// Runs of one group.
pub(super) struct Pair<'a> {
    /// Name of the group, which no other has; empty for the only one.
    pub(super) label: String,
    /// Settings of its cell, or its plan.
    key: String,
    /// Runs of the first side.
    pub(super) before: Vec<&'a ImportedRun>,
    /// Runs of the second side.
    pub(super) after: Vec<&'a ImportedRun>,
}

/// Finds the groups that both sides have. Sides of one group each belong together whatever their
/// plans: their difference may be what is compared.
pub(super) fn matched<'a>(
    before: &'a CompareSide,
    after: &'a CompareSide,
) -> Result<Matched<'a>, String> {
    for side in [before, after] {
        if side.runs.is_empty() {
            return Err(format!("{}: no runs that measured anything", side.name));
        }
    }
    let (first, mut second) = (grouped(before), grouped(after));
    let [of_first, of_second] =
        [first.len(), second.len()].map(|groups| counted(groups as u64, "set"));
    if first.len() == 1 && second.len() == 1 {
        let pair = Pair {
            label: String::new(),
            key: String::new(),
            before: first.into_values().flatten().collect(),
            after: second.into_values().flatten().collect(),
        };
        return Ok(Matched {
            pairs: vec![pair],
            notes: Vec::new(),
        });
    }
    let (mut pairs, mut notes) = (Vec::new(), Vec::new());
    let lacking =
        |key: &str, side: &CompareSide| format!("{}: no runs of {}", side.name, label(key));
    for (key, before) in first {
        match second.remove(key) {
            Some(of_second) => pairs.push(Pair {
                label: label(key),
                key: key.to_owned(),
                before,
                after: of_second,
            }),
            None => notes.push(lacking(key, after)),
        }
    }
    notes.extend(second.keys().map(|key| lacking(key, before)));
    tell_apart(&mut pairs);
    if pairs.is_empty() {
        return Err(format!(
            "{} ({of_first} of jobs) and {} ({of_second}) have no jobs in common: compare those \
             that belong together one by one",
            before.name, after.name
        ));
    }
    Ok(Matched { pairs, notes })
}

impl Matched<'_> {
    /// Returns whether the runs are repeats of one lab.
    pub(super) fn are_paired(&self) -> bool {
        self.pairs.iter().all(Pair::is_paired)
    }
}

impl Pair<'_> {
    /// Returns whether the runs are repeats of one lab, in which the variants' order was drawn.
    /// Each side has one run of a repeat: several are of different variants.
    pub(super) fn is_paired(&self) -> bool {
        let labs = |runs: &[&ImportedRun]| -> Option<Vec<i64>> {
            let repeats: BTreeSet<_> = runs.iter().map(|run| run.repeat).collect();
            let labs = runs.iter().map(|run| Some(run.repeat?.0)).collect();
            (repeats.len() == runs.len()).then_some(labs)?
        };
        let (Some(before), Some(after)) = (labs(&self.before), labs(&self.after)) else {
            return false;
        };
        let mut all = before.iter().chain(&after);
        before
            .first()
            .is_some_and(|first| all.all(|lab| lab == first))
    }

    /// Returns the values of both sides in each repeat; `None` of runs that are not paired.
    pub(super) fn repeats(
        &self,
        value: impl Fn(&ImportedRun) -> Option<f64>,
    ) -> Option<Vec<(f64, f64)>> {
        if !self.is_paired() {
            return None;
        }
        let of_after: BTreeMap<_, _> = self.after.iter().map(|run| (run.repeat, *run)).collect();
        let pairs = self.before.iter().filter_map(|run| {
            let other = of_after.get(&run.repeat)?;
            Some((value(run)?, value(other)?))
        });
        Some(pairs.collect())
    }
}

/// Returns the metrics to judge by default: bandwidth, and the 99th percentile of clat, of each
/// direction that both sides have. If runs lack the percentile, it is the mean.
pub(super) fn default_metrics(group: &Pair<'_>, tolerance: f64) -> Vec<(MetricName, f64)> {
    let sides = [&group.before, &group.after];
    let in_all = |name: &MetricName| {
        // Runs that failed may have none at all: they do not decide on the metric of the others.
        let counts =
            |run: &&&ImportedRun| run.run.end == RunEnd::Done || !run.run.measures.is_empty();
        let mut runs = sides.into_iter().flatten().filter(counts);
        runs.all(|run| value(run, name).is_some())
    };
    let on_both = |name: &MetricName| {
        let mut sides = sides.into_iter();
        sides.all(|runs| runs.iter().any(|run| value(run, name).is_some()))
    };
    // Cheaper than to look for what no run has in each record.
    let is_measured = |direction: &&str| {
        let mut measures = sides
            .into_iter()
            .flatten()
            .flat_map(|run| &run.run.measures);
        measures.any(|one| one.group.is_empty() && one.direction == *direction)
    };
    let mut metrics = Vec::new();
    for direction in ["read", "write", "trim"].into_iter().filter(is_measured) {
        let candidates = [&["bw"][..], &["clat_p99", "clat_mean"]];
        for names in candidates {
            let names = names
                .iter()
                .filter_map(|metric| MetricName::parse(&format!("{direction}.{metric}")).ok());
            let names: Vec<MetricName> = names.collect();
            let complete = names.iter().find(|name| in_all(name));
            let known = complete.or_else(|| names.iter().rev().find(|name| on_both(name)));
            metrics.extend(known.map(|name| (name.clone(), tolerance)));
        }
    }
    metrics
}

/// Groups the runs of a side by the settings of their cell, or else by plan.
fn grouped(side: &CompareSide) -> BTreeMap<&str, Vec<&ImportedRun>> {
    let mut groups: BTreeMap<&str, Vec<&ImportedRun>> = BTreeMap::new();
    for run in &side.runs {
        let cell = run.run.tags.iter().find(|(key, _)| key == "axes");
        let key = cell.map_or(run.run.plan.as_str(), |(_, axes)| axes.as_str());
        groups.entry(key).or_default().push(run);
    }
    groups
}

/// Returns the name of a group: the settings of a cell, or the names of a plan's jobs.
fn label(key: &str) -> String {
    let names = job_names(key);
    let label = match names.is_empty() {
        true => key.to_owned(),
        false => names.join(", "),
    };
    shortened(&label, LABEL_LENGTH)
}

/// Adds what differs to the names of groups that share one, such as plans with jobs of the same
/// names.
fn tell_apart(pairs: &mut [Pair<'_>]) {
    let names: Vec<String> = pairs.iter().map(|pair| pair.label.clone()).collect();
    for (at, name) in names.iter().enumerate() {
        let is_same = |other: &usize| names[*other] == *name && *other != at;
        let others: Vec<usize> = (0..names.len()).filter(is_same).collect();
        if others.is_empty() {
            continue;
        }
        let is_shared = |line: &str| {
            let mut others = others.iter();
            others.all(|&other| pairs[other].key.lines().any(|its| its == line))
        };
        let own = pairs[at].key.lines().filter(|line| !is_shared(line));
        let own = own.collect::<Vec<_>>().join(", ");
        let longer = shortened(&format!("{name}: {own}"), LABEL_LENGTH);
        let is_taken = pairs.iter().any(|pair| pair.label == longer);
        pairs[at].label = match own.is_empty() || is_taken {
            true => format!("{name} #{}", at + 1),
            false => longer,
        };
    }
}

/// Most characters of a group's name.
const LABEL_LENGTH: usize = 60;

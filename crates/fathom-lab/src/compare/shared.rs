//! Runs that are on both sides of a comparison.

use std::collections::{HashMap, HashSet};

use fathom_record::Measure;

use super::CompareSide;
use crate::counted::counted;
use crate::figure::printable;
use crate::import::ImportedRun;
use crate::subject;

/// Refuses sides that share runs: tests take them for independent.
pub(super) fn refuse_shared(before: &CompareSide, after: &CompareSide) -> Result<(), String> {
    let (first, second) = (known(before), known(after));
    let first = Known::of(&first);
    let shared = second.iter().filter(|run| first.has(run));
    let shared: Vec<String> = shared.map(KnownRun::name).collect();
    if shared.is_empty() {
        return Ok(());
    }
    let are = if shared.len() == 1 { "is" } else { "are" };
    let runs = counted(shared.len() as u64, "run");
    let mut names = shared[..shared.len().min(NAMED_MAX)].join(", ");
    if let Some(more @ 1..) = shared.len().checked_sub(NAMED_MAX) {
        names.push_str(&format!(" and {more} more"));
    }
    Err(format!(
        "{runs} {are} on both sides, which tests take for independent: {names}\n\
         hint: name each run on one side"
    ))
}

/// Run with what identifies it.
struct KnownRun<'a> {
    run: &'a ImportedRun,
    /// Its place among the files, if it is from one.
    file: Option<&'a str>,
    /// Another run of the model with the same seed is equal in all but its identity.
    is_modelled: bool,
    /// Its metrics that are numbers, by name: a history has no others, and another order.
    measures: Vec<&'a Measure>,
}

/// Runs of a side by what identifies them, so that sides of thousands of runs take no time.
struct Known<'a> {
    names: HashSet<&'a str>,
    files: HashSet<&'a str>,
    records: HashSet<(Times, &'a str)>,
    /// Those that agree in times, plan and values, which may be copies.
    alike: HashMap<(Times, &'a str, Vec<u64>), Vec<&'a KnownRun<'a>>>,
}

/// Start and duration of a run, ms.
type Times = (Option<u64>, u64);

impl<'a> Known<'a> {
    fn of(runs: &'a [KnownRun<'a>]) -> Self {
        let mut known = Self {
            names: runs
                .iter()
                .filter_map(|one| one.run.uuid.as_deref())
                .collect(),
            files: runs.iter().filter_map(|one| one.file).collect(),
            records: runs.iter().filter_map(KnownRun::record).collect(),
            alike: HashMap::new(),
        };
        for run in runs {
            known.alike.entry(run.likeness()).or_default().push(run);
        }
        known
    }

    /// Returns whether a run of the other side is one of these.
    fn has(&self, run: &KnownRun<'_>) -> bool {
        let has_name = run
            .run
            .uuid
            .as_deref()
            .is_some_and(|uuid| self.names.contains(uuid));
        if has_name || run.file.is_some_and(|file| self.files.contains(file)) {
            return true;
        }
        if run.is_modelled {
            return false;
        }
        let alike = self.alike.get(&run.likeness());
        run.record()
            .is_some_and(|record| self.records.contains(&record))
            || alike.is_some_and(|runs| runs.iter().any(|other| run.is_copy(other)))
    }
}

impl<'a> KnownRun<'a> {
    fn times(&self) -> Times {
        (self.run.begun_ms, self.run.run.wall_ms)
    }

    fn record(&self) -> Option<(Times, &'a str)> {
        Some((self.times(), self.run.run.record.as_deref()?))
    }

    fn likeness(&self) -> (Times, &'a str, Vec<u64>) {
        // Adding 0 makes of -0 the 0 that it equals.
        let values = self.measures.iter().map(|one| (one.value + 0.0).to_bits());
        (self.times(), &self.run.run.plan, values.collect())
    }

    /// Returns whether a run that left its record is the other one, by that. Exported runs with
    /// identities of their own and without records are different ones.
    fn is_copy(&self, other: &Self) -> bool {
        let (one, two) = (self.run, other.run);
        if one.begun_ms != two.begun_ms || one.run.wall_ms != two.run.wall_ms {
            return false;
        }
        match (&one.run.record, &two.run.record) {
            (Some(one), Some(two)) => one == two,
            _ if one.uuid.is_some() && two.uuid.is_some() => false,
            _ => {
                let has_any = !self.measures.is_empty();
                has_any && one.run.plan == two.run.plan && self.measures == other.measures
            }
        }
    }

    fn name(&self) -> String {
        let own = self.run.uuid.as_deref().or(self.file);
        printable(own.unwrap_or("a run without a name"))
    }
}

fn known(side: &CompareSide) -> Vec<KnownRun<'_>> {
    let files = side.files.iter().map(|file| Some(file.as_str()));
    let files = files.chain(std::iter::repeat(None));
    let runs = side.runs.iter().zip(files).map(|(run, file)| {
        let measures = run.run.measures.iter();
        let mut measures: Vec<&Measure> = measures.filter(|one| one.value.is_finite()).collect();
        measures.sort_by_key(|one| (&one.group, one.direction, &one.metric));
        KnownRun {
            run,
            file,
            is_modelled: subject::is_modelled(&run.run.machine),
            measures,
        }
    });
    runs.collect()
}

/// Most runs that a message names.
const NAMED_MAX: usize = 5;

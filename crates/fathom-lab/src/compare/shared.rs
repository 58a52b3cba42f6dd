//! Runs that are on both sides of a comparison.

use fathom_record::Measure;

use super::CompareSide;
use crate::counted::counted;
use crate::figure::printable;
use crate::import::ImportedRun;
use crate::subject;

/// Refuses sides that share runs: tests take them for independent.
pub(super) fn refuse_shared(before: &CompareSide, after: &CompareSide) -> Result<(), String> {
    let (first, second) = (known(before), known(after));
    let shared = second
        .iter()
        .filter(|run| first.iter().any(|other| run.is_same(other)));
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

impl KnownRun<'_> {
    fn is_same(&self, other: &Self) -> bool {
        let (one, two) = (self.run, other.run);
        let is_named_alike = one.uuid.is_some() && one.uuid == two.uuid
            || self.file.is_some() && self.file == other.file;
        is_named_alike || !self.is_modelled && self.is_copy(other)
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

//! Ranks that all write the same part of a file.

use std::path::Path;

use fathom_host::target_kind::TargetKind;
use fathom_job::{Job, Plan, depends_on_rank};

use crate::plan_warning::{PlanWarning, PlanWarningKind};
use crate::translate::{FileSetup, JobSetup};

/// Returns a warning per job whose place in a shared file is the same on all ranks. `is_shared`
/// returns whether hosts share the file of a path; ranks of one host share all files.
pub fn by_ranks(
    plan: &Plan,
    setups: &[JobSetup],
    is_shared: &dyn Fn(&Path) -> bool,
) -> Vec<PlanWarning> {
    let mut warnings: Vec<PlanWarning> = Vec::new();
    let place = &plan.place;
    if place.rank.ranks < 2 {
        return warnings;
    }
    for setup in setups.iter().filter(|setup| has_same_place(&setup.job)) {
        // Clones would repeat it.
        if warnings.iter().any(|warning| warning.job == setup.name) {
            continue;
        }
        let mut files = setup.files.iter().take(FILES_COMPARED_MAX);
        let all_write = |file: &&FileSetup| {
            let holds_data = matches!(
                file.found,
                TargetKind::Missing | TargetKind::Regular(_) | TargetKind::Block { .. }
            );
            let is_shared = || place.on_host > 0 || is_shared(Path::new(&file.path));
            holds_data && file.may_write(&setup.job.options) && is_shared()
        };
        if let Some(file) = files.find(all_write) {
            warnings.push(PlanWarning {
                kind: PlanWarningKind::RangeSharedByRanks,
                job: setup.name.clone(),
                message: format!("all ranks write the same part of {}", file.path),
                hint: "give each rank a file (`filename=f.$rank`) or a part of it \
                       (`offset=($rank*1g)`), or let one write (`ranks=0`)"
                    .into(),
            });
        }
    }
    warnings
}

/// Returns whether a job that several ranks have works at the same place on each.
fn has_same_place(job: &Job) -> bool {
    let options = &job.options;
    let ranks = job.place.rank.ranks;
    let is_single = options.placement.is_single(ranks);
    let is_named_by_client =
        job.place.client.is_some() && options.directory.is_some() && options.filename.is_none();
    let mut written = job.typed.iter().chain(job.inherited.iter());
    let differs = written.any(|typed| {
        let places = PLACES.contains(&typed.name.as_str());
        places && depends_on_rank(&typed.value)
    });
    let is_other = is_single || options.replay.replays() || differs;
    let is_prefixed = is_named_by_client && options.files.unique;
    options.has_local_files() && options.moves_data() && !is_other && !is_prefixed
}

/// Options that decide where a job works.
const PLACES: [&str; 6] = [
    "filename",
    "filename_format",
    "directory",
    "opendir",
    "offset",
    "offset_increment",
];

/// Files looked at per job: of many, the first are like the others.
const FILES_COMPARED_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use fathom_engine::Registry;

    use super::*;
    use crate::fixture::{self, FakeFiles};
    use crate::translate::translate;

    #[track_caller]
    fn check(rank: &str, words: &str, is_shared: bool, is_told: bool) {
        let words = format!("--rank={rank} --name=t --size=1m {words}");
        let plan = fixture::plan(&words, Registry::built_in().infos());
        let setups = translate(&plan, &FakeFiles::default(), &mut || 0).setups;
        let warnings = by_ranks(&plan, &setups, &|_| is_shared);
        assert_eq!(
            warnings.len(),
            usize::from(is_told),
            "{words}: {warnings:?}"
        );
    }

    #[test]
    fn ranks_that_write_the_same_bytes_are_told_of() {
        let on_shared = |words, is_told| check("1/4", words, true, is_told);
        on_shared("--rw=write --filename=/mnt/f", true);
        on_shared("--rw=randrw --numjobs=2", true);
        on_shared("--rw=read", false);
        on_shared("--rw=write --filename=/mnt/f.$rank", false);
        on_shared("--rw=write --filename=/mnt/$hostname/f", false);
        on_shared("--rw=write --filename=/mnt/f.$ranks", true);
        on_shared("--rw=write --offset=($rank*1m)", false);
        on_shared("--rw=write --ranks=1", false);
        on_shared("--rw=write --ranks=1-2", true);
        on_shared("--rw=write --ioengine=null", false);
        check("1/4", "--rw=write", false, false);
        check("0/1", "--rw=write", true, false);
    }
}

//! Verified files that several jobs write at the same time.

use std::sync::Arc;

use fathom_workload::GenerationMap;

use crate::error::RunProblem;
use crate::plan_warning::{PlanWarning, PlanWarningKind};
use crate::problem_kind::ProblemKind;
use crate::translate::pattern::writes;
use crate::translate::{FileSetup, JobSetup};

/// Returns a warning per job that verifies what another one writes at the same time.
pub fn shared(setups: &[JobSetup]) -> Vec<PlanWarning> {
    let mut warnings: Vec<PlanWarning> = Vec::new();
    for setup in setups.iter().filter(|setup| verifies(setup)) {
        // Clones would repeat it.
        if warnings.iter().any(|warning| warning.job == setup.name) {
            continue;
        }
        if let Some((other, file)) = sharer(setup, setups) {
            warnings.push(PlanWarning {
                kind: PlanWarningKind::VerifyShared,
                job: setup.name.clone(),
                message: message(setup, other, file),
                hint: "give each job its own file or part of it, or add `stonewall`".into(),
            });
        }
    }
    warnings
}

/// Refuses trims of several ranges in a file that another job of the run verifies: they are not
/// tracked, so that what they discard would be taken for corruption.
pub(super) fn untracked_ranges(setup: &JobSetup) -> Option<RunProblem> {
    let worker = &setup.worker;
    let file = setup
        .files
        .iter()
        .zip(&worker.generations)
        .find_map(|(file, map)| map.as_ref().and(Some(file)))
        .filter(|_| worker.trim_ranges > 1)?;
    let message = format!(
        "another job verifies {}, and cannot tell what trims of several ranges discard",
        file.path
    );
    let problem = RunProblem::new(ProblemKind::Contradiction, message);
    Some(problem.hint("write `num_range=1`, or verify in a run of its own"))
}

/// Returns whether a job verifies what it writes.
fn verifies(setup: &JobSetup) -> bool {
    setup.worker.verify.is_some() && changes(setup)
}

fn changes(setup: &JobSetup) -> bool {
    setup.job.options.moves_data() && writes(&setup.job.options)
}

/// Returns another job that writes some of the same bytes at the same time, and the file.
fn sharer<'a>(
    setup: &'a JobSetup,
    setups: &'a [JobSetup],
) -> Option<(&'a JobSetup, &'a FileSetup)> {
    let others = setups.iter().filter(|other| {
        let same_time = other.place.wave == setup.place.wave;
        same_time && other.place.number != setup.place.number && changes(other)
    });
    let mut shared = others.flat_map(|other| {
        mapped(other).filter_map(move |(theirs, map)| {
            let mut ours = mapped(setup);
            let (file, _) =
                ours.find(|(ours, own)| Arc::ptr_eq(own, map) && ours.overlaps(theirs))?;
            Some((other, file))
        })
    });
    shared.next()
}

/// Returns the first files of a job and the maps of their writes: of a file with two names, there
/// is one.
fn mapped(setup: &JobSetup) -> impl Iterator<Item = (&FileSetup, &Arc<GenerationMap>)> {
    let files = setup.files.iter().zip(&setup.worker.generations);
    let files = files.filter_map(|(file, map)| Some((file, map.as_ref()?)));
    files.take(FILES_COMPARED_MAX)
}

fn message(setup: &JobSetup, other: &JobSetup, file: &FileSetup) -> String {
    let path = &file.path;
    let pair = match other.name == setup.name {
        true => "its clones write".to_owned(),
        false => format!("it and `{}` write", other.name),
    };
    let maps = &setup.worker.generations;
    let is_uniform = maps.iter().flatten().all(|map| map.is_uniform());
    let effect = match (other.worker.verify.is_some(), is_uniform) {
        (false, _) => format!("blocks that `{}` overwrites are not verified", other.name),
        (true, false) => {
            "they verify in different ways, so each checks only blocks of its own that are still \
             there when it reads them back"
                .to_owned()
        }
        (true, true) => {
            "a block is checked against its latest write, whichever job's, and read back by that \
             job alone; the numbers of reads vary from run to run"
                .to_owned()
        }
    };
    let is_mixed = [setup, other]
        .iter()
        .any(|one| one.job.options.engine.name == "mmap");
    let mixed = match is_mixed {
        // Other engines write through the kernel, which locks the file or its pages.
        true => {
            "; `ioengine=mmap` copies without a lock, so a block that two jobs write at once may \
             mix both, which is reported as a mismatch though the storage is intact"
        }
        false => "",
    };
    format!("{pair} the same bytes of {path} at the same time: {effect}{mixed}")
}

/// Files compared per job: jobs that share files usually share one of the first.
const FILES_COMPARED_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::FakeFiles;
    use crate::testing::plan;
    use crate::translate::translate;

    #[track_caller]
    fn check(words: &str, want: Option<&str>) {
        let setups = translate(&plan(words), &FakeFiles::default(), &mut || 1).setups;
        let warnings = shared(&setups);
        let message = warnings.first().map(|warning| warning.message.as_str());
        match (message, want) {
            (Some(message), Some(want)) => assert!(message.contains(want), "{words}: {message}"),
            (message, want) => assert_eq!(message, want, "{words}"),
        }
    }

    #[test]
    fn jobs_that_write_what_another_verifies_are_named() {
        let one = "--name=a --size=1m --filename=f --rw=randwrite --verify=crc32c";
        let other = |words: &str| format!("{one} --name=b --size=1m --filename=f {words}");
        check(one, None);
        check(
            &format!("{one} --numjobs=2"),
            Some("its clones write the same bytes of f"),
        );
        check(&format!("{one} --numjobs=2 --offset_increment=1m"), None);
        check(
            &format!("{one} --numjobs=2 --ioengine=mmap"),
            Some("`ioengine=mmap` copies without a lock"),
        );
        check(
            &other("--rw=write --verify=crc32c"),
            Some(
                "it and `b` write the same bytes of f at the same time: a block is checked against",
            ),
        );
        check(&other("--rw=write --verify=md5"), Some("in different ways"));
        check(
            &other("--rw=write"),
            Some("that `b` overwrites are not verified"),
        );
        check(&other("--rw=write --stonewall"), None);
        check(&other("--rw=read"), None);
        check(
            "--name=a --size=1m --filename=f --rw=write --numjobs=2",
            None,
        );
    }
}

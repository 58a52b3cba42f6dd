//! Checks of replays: what a log does instead of what options say.

use std::collections::BTreeSet;

use super::taken::TakenFiles;
use crate::error::RunProblem;
use crate::problem_kind::ProblemKind;
use crate::translate::JobSetup;
use crate::translate::pattern::writes;

/// Returns a problem if a replay changes data, which `--readonly` forbids.
pub(super) fn changes(setup: &JobSetup) -> Option<RunProblem> {
    let replay = setup.replay.as_ref()?;
    writes(&setup.job.options).then(|| {
        let message = format!("{} writes or trims, which --readonly forbids", replay.log);
        RunProblem::new(ProblemKind::ReadOnly, message)
            .hint("leave such ops out: `replay_skip=write,trim`")
            .at(&setup.job, "read_iolog")
    })
}

/// Returns a problem for each log of a replay in whose file a job's data are: writing or laying out
/// that file would destroy the log.
pub fn logs_as_data(setups: &[JobSetup]) -> Vec<RunProblem> {
    let (mut seen, mut data) = (BTreeSet::new(), None);
    let logs = setups.iter().flat_map(|setup| {
        let logs = setup.job.options.replay.logs.iter();
        logs.map(|log| (&setup.job, log))
    });
    let mut problems = Vec::new();
    for (job, log) in logs.filter(|(_, log)| seen.insert(log.as_str())) {
        let data = data.get_or_insert_with(|| TakenFiles::data(setups));
        if let Some(message) = data.conflict(log) {
            let problem = RunProblem::new(ProblemKind::Contradiction, message);
            let hint = "copy the log, or name another file for the data with `replay_redirect`";
            problems.push(problem.hint(hint).at(job, "read_iolog"));
        }
    }
    problems
}

/// Returns a problem if not all direct ops are multiples of the `block` bytes of `name`.
pub(super) fn alignment(setup: &JobSetup, block: u64, name: &str) -> Option<RunProblem> {
    let replay = setup.replay.as_ref()?;
    (!replay.survey.is_aligned(block)).then(|| {
        let log = &replay.log;
        let message =
            format!("{log}: not all ops are multiples of the {block} B logical block of {name}");
        RunProblem::new(ProblemKind::UnalignedBlockSize, message)
            .hint("remove `direct`")
            .at(&setup.job, "read_iolog")
    })
}

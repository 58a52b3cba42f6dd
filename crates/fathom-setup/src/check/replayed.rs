//! Checks of replays: what a log does instead of what options say.

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

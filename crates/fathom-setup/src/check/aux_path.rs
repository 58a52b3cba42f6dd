//! Folder of the files that verification saves (`--aux-path`).

use std::path::Path;

use fathom_job::{Job, Settings};

use crate::error::RunProblem;
use crate::problem_kind::ProblemKind;
use crate::translate::JobSetup;

/// Returns a problem if jobs need the folder and there is none. fio drops their files silently.
pub(super) fn check(settings: &Settings, setups: &[JobSetup]) -> Option<RunProblem> {
    let folder = settings.aux_path.as_deref()?;
    let job = setups
        .iter()
        .map(|setup| &setup.job)
        .find(|job| needs(job))?;
    if Path::new(folder).is_dir() {
        return None;
    }
    let message = format!("cannot save verify states or blocks: {folder}: not a directory");
    let problem = RunProblem::new(ProblemKind::NoAuxPath, message);
    Some(
        problem
            .hint("create it, or name another one with `--aux-path`")
            .at(job, "verify"),
    )
}

fn needs(job: &Job) -> bool {
    let own = &job.options.verification;
    own.saves_state || own.loads_state || own.dumps
}

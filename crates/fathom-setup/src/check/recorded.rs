//! Checks of recordings (`write_iolog`).

use std::collections::HashMap;
use std::path::Path;

use fathom_host::output_file::is_same_file;
use fathom_iolog::can_name;

use crate::error::RunProblem;
use crate::problem_kind::ProblemKind;
use crate::translate::JobSetup;

/// Returns the problems of the recordings: names that a log cannot hold, and logs that would
/// overwrite each other or the data.
pub fn recordings(setups: &[JobSetup]) -> Vec<RunProblem> {
    let mut problems = Vec::new();
    let mut sections = HashMap::new();
    for setup in setups.iter().filter(|setup| setup.worker.records) {
        let job = &setup.job;
        let log = job.options.replay.record.as_deref().unwrap_or_default();
        let section = setup.place.section;
        let mut refuse = |message: String, hint: &str| {
            let problem = RunProblem::new(ProblemKind::Contradiction, message).hint(hint);
            problems.push(problem.at(job, "write_iolog"));
        };
        match sections.insert(plain(log), section) {
            None => {}
            Some(other) if other == section => {
                // Clones are alike: one problem is enough.
                continue;
            }
            Some(_) => {
                let hint = "name a log of its own in each section";
                refuse(format!("{log}: two jobs record to one log"), hint);
            }
        }
        if job.options.numjobs > 1 {
            let hint = "write a section for each clone, with a log of its own";
            refuse(format!("{log}: the clones of a job share one log"), hint);
        }
        if let Some(file) = setup.files.iter().find(|file| !can_name(&file.path)) {
            let name = &file.path;
            let message = format!("`{name}`: a log cannot hold a file name with blanks");
            refuse(message, "rename the file");
        }
        if holds_data(setups, log) {
            let hint = "name another file";
            refuse(format!("{log}: a job's data are in this file"), hint);
        }
    }
    problems
}

/// Returns true if a job's data are in the file `log`, links followed.
pub(super) fn holds_data(setups: &[JobSetup], log: &str) -> bool {
    let mut data = setups.iter().flat_map(|setup| &setup.files);
    data.any(|file| {
        plain(&file.path) == plain(log) || is_same_file(Path::new(&file.path), Path::new(log))
    })
}

/// Returns a path without `./` in front.
fn plain(path: &str) -> &Path {
    let path = Path::new(path);
    path.strip_prefix(".").unwrap_or(path)
}

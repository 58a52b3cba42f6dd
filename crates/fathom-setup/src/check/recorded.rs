//! Checks of recordings (`write_iolog`).

use std::collections::HashMap;
use std::path::Path;

use fathom_host::FileIdentity;
use fathom_iolog::can_name;
use fathom_job::Settings;

use super::taken::TakenFiles;
use crate::error::RunProblem;
use crate::problem_kind::ProblemKind;
use crate::translate::JobSetup;

/// Returns the problems of the recordings: names that a log cannot hold, and logs that would
/// overwrite each other, the data or a file that was named for the run.
pub fn recordings(settings: &Settings, setups: &[JobSetup]) -> Vec<RunProblem> {
    let mut problems = Vec::new();
    let (mut sections, mut taken) = (HashMap::new(), None);
    for setup in setups.iter().filter(|setup| setup.worker.records) {
        let job = &setup.job;
        let log = job.options.replay.record.as_deref().unwrap_or_default();
        let section = setup.place.section;
        let mut refuse = |message: String, hint: &str| {
            let problem = RunProblem::new(ProblemKind::Contradiction, message).hint(hint);
            problems.push(problem.at(job, "write_iolog"));
        };
        match sections.insert(FileIdentity::of(Path::new(log)), section) {
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
        let taken = taken.get_or_insert_with(|| TakenFiles::data(setups).named(settings));
        if let Some(message) = taken.conflict(log) {
            refuse(message, "name another file");
        }
    }
    problems
}

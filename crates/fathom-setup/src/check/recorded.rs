//! Checks of recordings (`write_iolog`).

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use fathom_host::FileIdentity;
use fathom_iolog::can_name;

use crate::error::RunProblem;
use crate::problem_kind::ProblemKind;
use crate::translate::{FileSetup, JobSetup};

/// Returns the problems of the recordings: names that a log cannot hold, and logs that would
/// overwrite each other or the data.
pub fn recordings(setups: &[JobSetup]) -> Vec<RunProblem> {
    let mut problems = Vec::new();
    let (mut sections, mut data) = (HashMap::new(), None);
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
        let data = data.get_or_insert_with(|| DataFiles::of(setups));
        if let Some(message) = data.conflict(log) {
            refuse(message, "name another file");
        }
    }
    problems
}

/// Files of this host in which the data of jobs are, or will be.
#[derive(Debug)]
pub struct DataFiles(BTreeSet<FileIdentity>);

impl DataFiles {
    /// Returns the files of these jobs.
    #[must_use]
    pub fn of(setups: &[JobSetup]) -> Self {
        let setups = setups.iter().filter(|setup| setup.has_local_files());
        let files = setups.flat_map(|setup| &setup.files);
        let identity = |file: &FileSetup| FileIdentity::of(Path::new(&file.path));
        Self(files.map(identity).collect())
    }

    /// Returns the reason not to write to `path` if it is one of them, under whatever name.
    #[must_use]
    pub fn conflict(&self, path: &str) -> Option<String> {
        let is_data = self.0.contains(&FileIdentity::of(Path::new(path)));
        is_data.then(|| format!("{path}: a job's data are in this file"))
    }
}

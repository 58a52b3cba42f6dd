//! Files of a run that nothing else of it may be written over.

use std::collections::BTreeMap;
use std::path::Path;

use fathom_host::FileIdentity;
use fathom_job::Settings;

use crate::error::RunProblem;
use crate::problem_kind::ProblemKind;
use crate::translate::JobSetup;

/// Files of this host that belong to a run, by whatever name, each with what it is.
#[derive(Debug, Default)]
pub struct TakenFiles(BTreeMap<FileIdentity, String>);

impl TakenFiles {
    /// Returns the files in which the data of these jobs are, or will be.
    #[must_use]
    pub fn data(setups: &[JobSetup]) -> Self {
        let mut all = Self::default();
        let setups = setups.iter().filter(|setup| setup.has_local_files());
        for file in setups.flat_map(|setup| &setup.files) {
            all.add(&file.path, || "a job's data are in this file".to_owned());
        }
        all
    }

    /// Adds the files that were named for the run.
    #[must_use]
    pub fn named(mut self, settings: &Settings) -> Self {
        for file in [settings.inputs(), settings.outputs()].concat() {
            self.add(file.path, || format!("this is the {}", file.what));
        }
        self
    }

    /// Adds the logs that jobs replay or record.
    #[must_use]
    pub fn recorded(self, setups: &[JobSetup]) -> Self {
        let mut all = self.replayed(setups);
        for setup in setups.iter().filter(|setup| setup.worker.records) {
            let log = setup.job.options.replay.record.as_deref();
            all.add(log.unwrap_or_default(), || "a job records to it".to_owned());
        }
        all
    }

    fn replayed(mut self, setups: &[JobSetup]) -> Self {
        let logs = setups
            .iter()
            .flat_map(|setup| &setup.job.options.replay.logs);
        for log in logs.filter(|log| *log != STANDARD_INPUT) {
            self.add(log, || "a job replays this log".to_owned());
        }
        self
    }

    fn add(&mut self, path: &str, what: impl FnOnce() -> String) {
        let identity = FileIdentity::of(Path::new(path));
        self.0.entry(identity).or_insert_with(what);
    }

    /// Returns the reason not to write to `path` if it is one of them, under whatever name.
    #[must_use]
    pub fn conflict(&self, path: &str) -> Option<String> {
        let what = self.0.get(&FileIdentity::of(Path::new(path)))?;
        Some(format!("{path}: {what}"))
    }
}

/// Returns a problem for each output of the run that would replace a log that jobs replay, or one
/// of the files with their `data`.
pub(crate) fn outputs(
    settings: &Settings,
    setups: &[JobSetup],
    data: impl FnOnce() -> TakenFiles,
) -> Vec<RunProblem> {
    let mut outputs = settings.outputs();
    // Pipes and devices are written to, never replaced.
    outputs.retain(|output| {
        let path = Path::new(output.path);
        path.is_file() || !path.exists()
    });
    if outputs.is_empty() {
        return Vec::new();
    }
    let taken = data().replayed(setups);
    let problems = outputs.iter().filter_map(|output| {
        let message = format!("{}: {}", output.option, taken.conflict(output.path)?);
        Some(RunProblem::new(ProblemKind::OutputIsInput, message).hint("use another output file"))
    });
    problems.collect()
}

/// Name of standard input in `read_iolog`.
const STANDARD_INPUT: &str = "-";

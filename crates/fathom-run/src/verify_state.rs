//! Verify states: loaded before the run (`verify_state_load`), saved when a job has ended, was
//! interrupted or has failed (`verify_state_save`).
//!
//! One file per job, in the current directory and with fio's name, `local-JOB-N-verify.state`. It
//! is written beside and renamed, so that an earlier one is whole until then.

use std::fs::{self, File};
use std::io::{self, Write};
use std::sync::Arc;

use fathom_record::Warning;
use fathom_setup::translate::JobSetup;
use fathom_setup::{ProblemKind, RunProblem};
use fathom_workload::{FileState, GenerationMap, VerifyState};

/// State file to save for one job.
#[derive(Clone, Debug)]
pub(crate) struct StateFile {
    name: String,
    job: String,
    paths: Vec<String>,
}

impl StateFile {
    /// Returns the state file of a job that saves one.
    pub(crate) fn of(setup: &JobSetup) -> Option<Self> {
        let saves = setup.job.options.verification.saves_state && setup.worker.verify.is_some();
        saves.then(|| Self {
            name: name_of(setup),
            job: setup.name.clone(),
            paths: setup.files.iter().map(|file| file.path.clone()).collect(),
        })
    }

    /// Saves what is known of the files; returns a warning if that fails.
    pub(crate) fn save(&self, maps: &[Option<Arc<GenerationMap>>]) -> Option<Warning> {
        let files = self.paths.iter().zip(maps).filter_map(|(path, map)| {
            let map = map.as_ref()?;
            Some(FileState::of(path.clone(), map))
        });
        let state = VerifyState {
            job: self.job.clone(),
            files: files.collect(),
        };
        let error = write(&self.name, &state.encode()).err()?;
        Some(Warning {
            code: "verify_state".into(),
            job: self.job.clone(),
            message: format!("cannot save the verify state: {}: {error}", self.name),
            hint: "run in a directory that can be written".into(),
        })
    }
}

/// Loads the states that jobs ask for, and returns what is wrong with them.
pub(crate) fn load(setups: &mut [JobSetup]) -> Vec<RunProblem> {
    let wanting = setups
        .iter_mut()
        .filter(|setup| setup.job.options.verification.loads_state);
    wanting.filter_map(|setup| load_one(setup).err()).collect()
}

fn load_one(setup: &mut JobSetup) -> Result<(), RunProblem> {
    let name = name_of(setup);
    let refused = |why: String, hint: &str| {
        let message = format!("cannot load the verify state: {name}: {why}");
        RunProblem::new(ProblemKind::VerifyState, message)
            .hint(hint)
            .at(&setup.job, "verify_state_load")
    };
    let again = "write the data with `verify_state_save=1`, in this directory and as this job";
    let bytes = fs::read(&name).map_err(|error| refused(error.to_string(), again))?;
    let state = VerifyState::decode(&bytes).map_err(|error| refused(error.to_string(), again))?;
    if state.job != setup.name {
        return Err(refused(format!("it is of job `{}`", state.job), again));
    }
    let mut maps = Vec::new();
    for file in &setup.files {
        let saved = state.files.iter().find(|saved| saved.path == file.path);
        let Some(saved) = saved else {
            return Err(refused(format!("it has no file `{}`", file.path), again));
        };
        let map = GenerationMap::restored(saved.layout, saved.entries.clone());
        maps.push(Some(Arc::new(map)));
    }
    setup.worker.generations = maps;
    if let Some(verify) = &mut setup.worker.verify {
        verify.has_state = true;
    }
    Ok(())
}

/// Returns fio's name of a job's state file.
fn name_of(setup: &JobSetup) -> String {
    let job = setup.name.replace('/', ".");
    format!("local-{job}-{}-verify.state", setup.place.number - 1)
}

/// Writes a file beside its name, and renames it.
fn write(name: &str, bytes: &[u8]) -> io::Result<()> {
    let part = format!("{name}.part");
    let written = File::create(&part).and_then(|mut file| {
        file.write_all(bytes)?;
        // Before the rename: a crash must not leave a name without content.
        file.sync_all()
    });
    written
        .and_then(|()| fs::rename(&part, name))
        .inspect_err(|_| {
            let _gone = fs::remove_file(&part);
        })
}

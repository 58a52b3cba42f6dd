//! Verify states: loaded before the run (`verify_state_load`), kept while it lasts, and saved when
//! it has ended, was interrupted or has failed (`verify_state_save`).
//!
//! One file per job, in the current directory or below `--aux-path`, with fio's name,
//! `local-JOB-N-verify.state`. It is written beside and renamed, so that an earlier one is whole
//! until then. States are saved when the last job has ended, not each with its job: a later job may
//! write the same blocks. For runs that are killed, see `unfinished.rs`.

mod unfinished;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fathom_record::Warning;
use fathom_setup::outcome::JobOutcome;
use fathom_setup::translate::JobSetup;
use fathom_setup::{ProblemKind, RunProblem};
use fathom_workload::{FileState, GenerationMap, StateError, VerifyState};

use crate::create_anew::create_anew;

use unfinished::UnfinishedState;

/// States that jobs of a run save.
#[derive(Debug, Default)]
pub(crate) struct SavedStates {
    folder: PathBuf,
    unfinished: UnfinishedState,
}

impl SavedStates {
    /// Moves the maps of the jobs that save states to a file, for the case that the run is killed;
    /// returns a warning if there can be none.
    pub(crate) fn begin(setups: &mut [JobSetup], folder: &Path) -> (Self, Option<Warning>) {
        let (unfinished, warning) = UnfinishedState::begin(setups, folder);
        let states = Self {
            folder: folder.to_owned(),
            unfinished,
        };
        (states, warning)
    }

    /// Saves what is known of the files of each job that has run, and adds a warning to those of
    /// which that fails.
    pub(crate) fn save(mut self, setups: &[JobSetup], outcomes: &mut [Option<JobOutcome>]) {
        let jobs = setups
            .iter()
            .zip(outcomes)
            .filter(|(setup, _)| saves(setup));
        for (setup, outcome) in jobs {
            let Some(outcome) = outcome.as_mut().filter(|job| job.results.is_some()) else {
                continue;
            };
            let path = path_of(setup, &self.folder);
            if let Err(error) = write(&path, &state_of(setup).encode()) {
                // What was kept for a kill says the same.
                self.unfinished.leave(&path);
                outcome.warnings.push(cannot_save(setup, &path, &error));
            }
        }
    }
}

/// Returns whether a job saves its state. One that only reads has none, as in fio: that of the job
/// that wrote the data is worth more.
fn saves(setup: &JobSetup) -> bool {
    let knows_files = setup.worker.generations.iter().any(Option::is_some);
    setup.job.options.verification.saves_state && setup.worker.verify.is_some() && knows_files
}

fn state_of(setup: &JobSetup) -> VerifyState {
    let files = setup.files.iter().zip(&setup.worker.generations);
    let files = files.filter_map(|(file, map)| {
        let map = map.as_ref()?;
        Some(FileState::of(file.path.clone(), map))
    });
    VerifyState {
        is_complete: true,
        boot: String::new(),
        jobs: vec![setup.name.clone()],
        files: files.collect(),
    }
}

fn cannot_save(setup: &JobSetup, path: &Path, error: &io::Error) -> Warning {
    Warning {
        code: "verify_state".into(),
        job: setup.name.clone(),
        message: format!("cannot save the verify state: {}: {error}", path.display()),
        hint: "run in a directory that can be written, or name one with `--aux-path`".into(),
    }
}

/// Loads the states that jobs ask for, and returns what is wrong with them.
pub(crate) fn load(setups: &mut [JobSetup], folder: &Path) -> Vec<RunProblem> {
    let mut states: BTreeMap<String, FileState> = BTreeMap::new();
    let mut problems = Vec::new();
    for setup in setups.iter().filter(|setup| loads(setup)) {
        match load_one(setup, folder) {
            Ok(files) => files.into_iter().for_each(|file| add(&mut states, file)),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() && !states.is_empty() {
        restore(setups, states);
    }
    problems
}

/// Returns whether a job loads a state.
fn loads(setup: &JobSetup) -> bool {
    setup.job.options.verification.loads_state
}

fn add(states: &mut BTreeMap<String, FileState>, file: FileState) {
    match states.get_mut(&file.path) {
        // Of another job on the same file.
        Some(state) => state.merge(&file),
        None => {
            states.insert(file.path.clone(), file);
        }
    }
}

/// Gives the files' states to the jobs that load them, and to those that share a map with them:
/// otherwise the writes of the latter would be taken for damage.
fn restore(setups: &mut [JobSetup], states: BTreeMap<String, FileState>) {
    let is_uniform = |path: &str| {
        let mut shared = setups.iter().flat_map(|setup| {
            let files = setup.files.iter().zip(&setup.worker.generations);
            files.filter_map(|(file, map)| map.as_ref().filter(|_| file.path == path))
        });
        shared.all(|map| map.is_uniform())
    };
    let maps: BTreeMap<_, _> = states
        .into_iter()
        .map(|(path, state)| {
            let map = GenerationMap::restored(state.layout, state.entries);
            let map = map.shared(is_uniform(&path));
            (path, Arc::new(map))
        })
        .collect();
    for setup in setups {
        let loads = loads(setup);
        if loads {
            setup.worker.generations.resize(setup.files.len(), None);
        }
        let files = setup.files.iter().zip(&mut setup.worker.generations);
        for (file, map) in files.filter(|(_, map)| loads || map.is_some()) {
            if let Some(restored) = maps.get(&file.path) {
                *map = Some(Arc::clone(restored));
            }
        }
        if let Some(verify) = setup.worker.verify.as_mut().filter(|_| loads) {
            verify.has_state = true;
        }
    }
}

/// Returns the states of a job's files.
fn load_one(setup: &JobSetup, folder: &Path) -> Result<Vec<FileState>, RunProblem> {
    let path = path_of(setup, folder);
    let refused = |why: String, hint: &str| {
        let message = format!("cannot load the verify state: {}: {why}", path.display());
        RunProblem::new(ProblemKind::VerifyState, message)
            .hint(hint)
            .at(&setup.job, "verify_state_load")
    };
    let again = "write the data with `verify_state_save=1`, in this directory and as this job";
    // Of a later run than the complete one, which was killed.
    let read = match read(&unfinished_of(&path)) {
        Err(error) if error.kind() == ErrorKind::NotFound => read(&path),
        read => read,
    };
    let bytes = read.map_err(|error| refused(error.to_string(), again))?;
    let state = VerifyState::decode(&bytes).map_err(|error| refused(error.to_string(), again))?;
    if !state.is_complete && state.boot != boot() {
        let why = "the run was cut off with its host: entries that had not reached the disk are \
                   missing, so blocks that are intact would be reported";
        let hint = "verify without `verify_state_load`; for a check of each acknowledged write, \
                    run the job on a host that keeps its power (docs/VERIFY.md, After a power cut)";
        return Err(refused(why.into(), hint));
    }
    if !state.jobs.contains(&setup.name) {
        return Err(refused(
            format!("it is of job `{}`", state.jobs.join("`, `")),
            again,
        ));
    }
    let mut files = state.files;
    take_paths_of(setup, folder, &mut files);
    files.retain(|saved| setup.files.iter().any(|file| file.path == saved.path));
    let is_missing = |path: &String| !files.iter().any(|saved| saved.path == *path);
    if let Some(file) = setup.files.iter().find(|file| is_missing(&file.path)) {
        return Err(refused(format!("it has no file `{}`", file.path), again));
    }
    if let Some(why) = other_blocks(setup, &files) {
        let hint = "read with the `bs`, `verify_interval` and `offset` of the job that wrote";
        return Err(refused(why, hint));
    }
    let by_sync = setup.job.options.verification.by_sync;
    if by_sync && !files.iter().all(|file| file.by_sync) {
        let why = "it holds all completed writes, not those that an fsync covers";
        let hint = "write the data with `verify_policy=fsynced`, or verify without it";
        return Err(refused(why.into(), hint));
    }
    Ok(files)
}

/// Returns what is wrong if a job reads other blocks than those that a state knows, none of which
/// it could check.
fn other_blocks(setup: &JobSetup, saved: &[FileState]) -> Option<String> {
    let reads = setup.worker.verify_interval();
    let mut ranges = setup.files.iter().zip(&setup.worker.pattern.files);
    ranges.find_map(|(file, range)| {
        let saved = saved.iter().find(|saved| saved.path == file.path)?;
        let written = saved.layout.interval;
        let (step, start) = (saved.layout.block_bytes, saved.layout.start);
        if written > 0 && written != reads {
            let name = &file.path;
            Some(format!(
                "the verified blocks of `{name}` have {written} B, and the job reads blocks of \
                 {reads} B"
            ))
        } else if !start.abs_diff(range.offset).is_multiple_of(step.into()) {
            let (name, offset) = (&file.path, range.offset);
            Some(format!(
                "the blocks of `{name}` begin every {step} B from {start} on, and the job's at \
                 {offset}"
            ))
        } else {
            None
        }
    })
}

/// Gives the saved files the paths by which the job calls them. The run that saved them may have
/// named them from another directory; that of the state is often its own.
fn take_paths_of(setup: &JobSetup, folder: &Path, files: &mut [FileState]) {
    if !setup.job.options.engine.opens_local_files() {
        return;
    }
    let found = |path: &Path| fs::canonicalize(path).ok();
    let own: Vec<_> = setup
        .files
        .iter()
        .map(|file| found(file.path.as_ref()))
        .collect();
    for saved in files {
        if setup.files.iter().any(|file| file.path == saved.path) {
            continue;
        }
        let places = [PathBuf::from(&saved.path), folder.join(&saved.path)];
        let same = places
            .iter()
            .filter_map(|place| found(place))
            .find_map(|place| own.iter().position(|own| own.as_ref() == Some(&place)));
        if let Some(file) = same {
            saved.path.clone_from(&setup.files[file].path);
        }
    }
}

/// Returns the identity of this boot; empty where the kernel has none.
fn boot() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    boot.trim().to_owned()
}

/// Returns the path of a job's state, with fio's name.
fn path_of(setup: &JobSetup, folder: &Path) -> PathBuf {
    let job = setup.name.replace('/', ".");
    folder.join(format!(
        "local-{job}-{}-verify.state",
        setup.place.number - 1
    ))
}

/// Returns the path of the state of a job that has not ended yet.
fn unfinished_of(path: &Path) -> PathBuf {
    path.with_extension("state.unfinished")
}

/// Reads a state file. One that does not begin as a state is not read further, whatever its size.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    // A pipe would wait for its writer, and a device may have no end.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    Read::by_ref(&mut file)
        .take(START_BYTES)
        .read_to_end(&mut bytes)?;
    if VerifyState::decode(&bytes) != Err(StateError::NoState) {
        file.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Writes a file beside its name, and renames it.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let part = path.with_extension("state.part");
    let written = create_anew(&part).and_then(|mut file| {
        file.write_all(bytes)?;
        // Before the rename: a crash must not leave a name without content.
        file.sync_all()
    });
    written
        .and_then(|()| fs::rename(&part, path))
        .inspect_err(|_| {
            let _gone = fs::remove_file(&part);
        })
}

/// Bytes that tell a state from other files.
const START_BYTES: u64 = 64;

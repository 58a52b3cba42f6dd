//! Translation of a plan into one `JobSetup` per clone.
//!
//! All defaults that depend on other options are resolved here, so workers and engines see only
//! final values. Nothing is written; the file system is read through `FileSystemProbe`.

pub mod content;
pub(crate) mod files;
mod generations;
mod limits;
mod notes;
mod pace;
pub mod pattern;
mod placement_scheme;
mod precondition;
pub mod priority;
mod replayed;
mod seeds;
mod shared_state;
mod sizes;
mod zone_sets;
mod zones;

use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use fathom_core::{Direction, Errno, FileIndex, PerDirection, PlacementRange, RemoteFile};
use fathom_host::target_kind::{FileSystemProbe, TargetKind};
use fathom_job::{Job, Options, Plan, ZoneMode};
use fathom_workload::{FileRange, PatternConfig, Tolerate, WorkerConfig, ZoneSet};

use self::notes::Warnings;
pub use self::replayed::replayed_targets;
pub use self::seeds::entropy;
use self::shared_state::SharedState;
use crate::error::RunProblem;
use crate::groups::{JobPlace, places};
use crate::outcome::JobFailure;
use crate::plan_warning::PlanWarning;
use crate::problem_kind::ProblemKind;
use crate::replay::ReplayPlan;
use crate::timelines;

/// One clone of a job with every option resolved, ready to be checked and run.
///
/// [`translate`] creates it, the checks and lint read it, and a driver turns it into an engine and
/// a worker; [`collect`](crate::collect) uses it once more to complete the job's record. It never
/// changes in between, so all of them agree on what the job is. It shares its job instead of
/// borrowing it, so that parts of it can move to other threads.
#[derive(Clone, Debug)]
pub struct JobSetup {
    /// Position in the run.
    pub place: JobPlace,
    /// The job, shared by its clones.
    pub job: Arc<Job>,
    /// Name in the report; all clones but the first have the section's name.
    pub name: String,
    /// Configuration of the worker.
    pub worker: WorkerConfig,
    /// Files, in the worker's order.
    pub files: Vec<FileSetup>,
    /// Buffer size per slot in bytes.
    pub buffer_bytes: u32,
    /// `error_dump`: report the first tolerated error.
    pub tells_errors: bool,
    /// Clock ID of the job's start time in the report.
    pub start_clock: u32,
    /// Ranges of the files whose writes a device places under identifiers of their own.
    pub placement_ranges: Arc<[PlacementRange]>,
    /// Log that the job replays.
    pub replay: Option<Arc<ReplayPlan>>,
    /// Reason for which the job ends before its first op, if there is one.
    pub early_end: Option<EarlyEnd>,
}

impl JobSetup {
    /// Returns true if the data are in files or devices of this machine, which are laid out,
    /// checked and cached; false for an engine without data and for data elsewhere.
    #[must_use]
    pub fn has_local_files(&self) -> bool {
        self.job.options.has_local_files()
    }

    /// Returns true if the job moves data of files or devices of this machine, through the page
    /// cache or past it.
    #[must_use]
    pub fn has_local_data(&self) -> bool {
        self.has_local_files() && self.job.options.moves_data()
    }

    /// Returns true if the job's trims of a file reset zones of its device.
    #[must_use]
    pub fn resets_by_trims(&self, file: &FileSetup) -> bool {
        let mut pairs = self.files.iter().zip(self.zone_sets());
        pairs.any(|(one, set)| one.path == file.path && !set.is_emulated())
    }

    /// Returns the zones of the files, the same set for all names of a device.
    pub(crate) fn zone_sets(&self) -> impl Iterator<Item = &ZoneSet> {
        let access = self.worker.zoned.iter();
        access.flat_map(|access| access.sets.iter().map(AsRef::as_ref))
    }
}

/// Reason for which a job ends before its first op. Only a run in which jobs fail alone
/// ([`Session::jobs_fail_alone`](crate::Session::jobs_fail_alone)) comes to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EarlyEnd {
    /// The job has no files (`nrfiles=0`) and ends without an error, as in fio.
    NoFiles,
    /// The job fails.
    Failure(JobFailure),
}

impl EarlyEnd {
    /// Creates the end of a job that fails by this problem.
    #[must_use]
    pub fn of(problem: &RunProblem) -> Self {
        let errno = problem.errno.unwrap_or(Errno::EINVAL);
        Self::Failure(JobFailure::new(errno, problem.message.as_str()))
    }
}

/// One file of a job.
#[derive(Clone, Debug)]
pub struct FileSetup {
    /// Path of the file.
    pub path: String,
    /// Kind of the target, once the preceding jobs are laid out.
    pub found: TargetKind,
    /// Size in bytes that it needs before the job starts.
    pub bytes: u64,
    /// Start of the job's range.
    pub offset: u64,
    /// Length of the job's range in bytes.
    pub length: u64,
    /// Directions of the job's ops on this file, where the log of a replay determines them;
    /// otherwise each file may have ops of all of the job's directions.
    pub used: Option<PerDirection<bool>>,
}

impl FileSetup {
    /// Returns true if the ranges of two jobs in one file have bytes in common.
    #[must_use]
    pub const fn overlaps(&self, other: &Self) -> bool {
        let end = self.offset.saturating_add(self.length);
        let other_end = other.offset.saturating_add(other.length);
        self.offset < other_end && other.offset < end
    }

    /// Returns true if a job with these options writes or trims the file.
    pub fn may_write(&self, options: &Options) -> bool {
        match self.used {
            Some(used) => used.write || used.trim || options.engine.always_writes,
            None => pattern::writes(options),
        }
    }

    /// Returns true if a job with these options reads the file, not counting verification.
    pub fn may_read(&self, options: &Options) -> bool {
        match self.used {
            // A file without ops is opened and perhaps synced: any mode will do.
            Some(used) => used.read || !used.write && !used.trim,
            None => pattern::uses(options, Direction::Read),
        }
    }

    /// Returns the size of the file when the job starts.
    pub fn file_bytes(&self) -> u64 {
        self.found.bytes().unwrap_or(0).max(self.bytes)
    }

    /// Returns whether the job's smallest op fits into its range of the file. A sequential op only
    /// has to start there.
    pub(crate) fn has_room_for_an_op(&self, options: &Options) -> bool {
        let reach = match options.random {
            false if self.length > 0 => self.file_bytes().saturating_sub(self.offset),
            _ => self.length,
        };
        self.length.max(reach) >= pattern::smallest(options)
    }
}

/// Result of translating a plan.
#[derive(Debug, Default)]
pub struct Translation {
    /// All clones, by thread number.
    pub setups: Vec<JobSetup>,
    /// Warnings for the user.
    pub warnings: Vec<PlanWarning>,
    /// Problems; the jobs concerned have no setups.
    pub problems: Vec<RunProblem>,
}

/// Translates a plan, collecting the problems of all jobs.
pub fn translate(
    plan: &Plan,
    probe: &dyn FileSystemProbe,
    entropy: &mut dyn FnMut() -> u64,
) -> Translation {
    let mut translation = Translation::default();
    let (mut bases, mut jobs) = (HashMap::new(), HashMap::new());
    let mut failed = HashSet::new();
    let mut planned = Planned {
        probe,
        files: HashMap::new(),
        shared_state: SharedState::default(),
        surveys: replayed::Surveys::default(),
        zones: zone_sets::ZoneSets::default(),
        schemes: placement_scheme::Schemes::default(),
    };
    for place in places(&plan.jobs) {
        let job = jobs
            .entry(place.section)
            .or_insert_with(|| Arc::new(plan.jobs[place.section].clone()));
        let base = *bases
            .entry(place.section)
            .or_insert_with(|| seeds::base(job.options.randseed, job.options.randrepeat, entropy));
        let seed = seeds::of_job(seeds::of_section(base, job), place.number);
        let problem = match setup(job, place, seed, &mut planned) {
            Ok((setup, warnings, problem)) => {
                planned.add(&setup);
                // Clones would repeat the same warnings.
                if place.clone == 0 {
                    translation.warnings.extend(warnings);
                }
                translation.setups.push(setup);
                problem
            }
            Err(problem) => Some(problem),
        };
        // Clones mostly fail alike, so one problem per section is reported.
        let problem = problem.filter(|_| failed.insert(place.section));
        translation.problems.extend(problem);
    }
    (translation.problems).extend(zones::shared_by_verify(&translation.setups));
    generations::share(&mut translation.setups, probe);
    timelines::share(&mut translation.setups);
    translation
}

/// File system as it will be once the preceding jobs have laid out their files.
struct Planned<'a> {
    probe: &'a dyn FileSystemProbe,
    files: HashMap<String, TargetKind>,
    shared_state: SharedState,
    surveys: replayed::Surveys,
    zones: zone_sets::ZoneSets,
    schemes: placement_scheme::Schemes,
}

impl Planned<'_> {
    fn kind(&self, path: &str) -> Result<TargetKind, RunProblem> {
        if let Some(found) = self.files.get(path) {
            return Ok(*found);
        }
        self.probe.kind(path).map_err(|error| {
            let errno = Errno::of(&error).unwrap_or(Errno::EINVAL);
            let message = format!("{path}: {error}");
            let problem = RunProblem::new(ProblemKind::FileClosedToUs, message).errno(errno);
            match error.kind() {
                // Only devices are opened for their size.
                ErrorKind::PermissionDenied => problem.hint("run as root, or join its group"),
                _ => problem,
            }
        })
    }

    /// Returns the kind of a file on another machine, which `option` names: as fixed as a block
    /// device.
    fn remote(&self, job: &Job, option: &str, path: &str) -> Result<TargetKind, RunProblem> {
        let (engine, values) = (job.options.engine, &job.options.engine_values);
        match self.probe.remote(engine, values, path) {
            Ok(Some(file)) => match remote_direction(job, file, path) {
                Some(problem) => Err(problem),
                None => Ok(TargetKind::Block {
                    bytes: file.bytes,
                    logical_block: file.block_bytes,
                }),
            },
            Ok(None) => Ok(TargetKind::Missing),
            Err(error) => {
                let problem = RunProblem::new(ProblemKind::FileUnreadable, error.to_string());
                let problem = match error.hint.is_empty() {
                    true => problem,
                    false => problem.hint(error.hint),
                };
                Err(problem.at(job, option))
            }
        }
    }

    fn add(&mut self, setup: &JobSetup) {
        if !setup.has_local_files() {
            return;
        }
        let names = setup.job.options.engine.name_work();
        let directories = names.is_some_and(|names| names.directories);
        for file in setup
            .files
            .iter()
            .filter(|file| file.found.is_file_or_missing())
        {
            if directories {
                self.files.insert(file.path.clone(), TargetKind::Directory);
                continue;
            }
            let bytes = file.found.bytes().unwrap_or(0).max(file.bytes);
            self.files
                .insert(file.path.clone(), TargetKind::Regular(bytes));
        }
    }
}

/// Refuses ops of a direction that a file on another machine does not take.
fn remote_direction(job: &Job, file: RemoteFile, path: &str) -> Option<RunProblem> {
    let excess = pattern::excess(&job.options, file.directions)?;
    let message = match excess.direction {
        Direction::Write => format!("{path} is read-only"),
        other => format!("{path} takes no {}s", other.name()),
    };
    let problem = RunProblem::new(ProblemKind::EngineCannot, message).hint(excess.hint);
    Some(problem.at(job, excess.option))
}

/// Setup of a clone, its warnings, and the problem that ends it early, if there is one.
type Translated = (JobSetup, Vec<PlanWarning>, Option<RunProblem>);

/// Translates one clone.
fn setup(
    job: &Arc<Job>,
    place: JobPlace,
    seed: u64,
    planned: &mut Planned<'_>,
) -> Result<Translated, RunProblem> {
    let mut warnings = Warnings::of(job);
    let (job, replay) = &replayed::replayed(job, place, planned, &mut warnings)?;
    let options = &job.options;
    let depth = limits::depth(options);
    let found = match replay {
        Some(replay) => replayed::files(job, replay, planned),
        None => files::files(job, place, seed, planned),
    };
    let ((mut files, mut sizes), problem) = or_early_end(found)?;
    zones::limit_to_whole_zones(job, planned, &mut files, &mut sizes, &mut warnings)?;
    note_all(options, &files, &sizes, &mut warnings);
    let mut pattern =
        pattern_over(&files, options, seed).map_err(|problem| problem.at(job, "bs"))?;
    pattern.zones = pattern.zones.or(zones::order(job, &files, planned)?);
    let bytes = precondition::bytes_per_pass(options, &pattern, sizes.bytes_per_pass)
        .map_err(|problem| problem.at(job, "sprandom"))?;
    let verify = content::verify_in(&pattern, job, place.number)?;
    let worker = WorkerConfig {
        pattern,
        depth,
        trim_ranges: options.trims.ranges,
        batching: pace::batching(options, depth),
        bytes_per_pass: limits::bytes_per_pass(options, bytes),
        loops: limits::loops(options, sizes.loops),
        bytes_in_all: sizes.bytes_in_all,
        runtime: options.runtime.filter(|runtime| !runtime.is_zero()),
        time_based: limits::has_no_last_pass(options),
        ramp: limits::ramp(options),
        start_delay: limits::start_delay(options, seed),
        rate: pace::rates(options).map_err(|problem| problem.at(job, "rate_iops"))?,
        rate_min: pace::rate_minimums(options)
            .map_err(|problem| problem.at(job, "rate_iops_min"))?,
        rate_cycle: options.rate_cycle,
        serialize_overlap: options.serialize_overlap && depth > 1,
        fill: options.fill_device,
        think: pace::think(options, planned.probe.cycles_hz()),
        sync: content::sync_rules(options),
        sync_filesystems: file_systems(options, &files),
        recreate_each_pass: options.files.unlink_each_loop && options.has_local_files(),
        tolerate: tolerate(options),
        verify,
        is_dry_run: options.verification.dry_run.is_some(),
        generations: Vec::new(),
        buffers: content::buffers(options, seed, bytes_of(&files)),
        measure: content::measure(options),
        timeline: None,
        priorities: priority::of_ops(options),
        invalidate: options.invalidate && !options.pre_read,
        block_lives: limits::block_lives(options)?,
        zoned: zones::access(job, place.number, &files, planned)?,
        limits: planned
            .shared_state
            .limits(job, place, limits::ops_limit(options))?,
        replay: replayed::config(options),
        records: options.replay.record.is_some() && replay.is_none(),
    };
    let setup = JobSetup {
        place,
        job: Arc::clone(job),
        name: job.clone_name(place.clone).to_owned(),
        worker,
        early_end: early_end(problem.as_ref(), files.is_empty()),
        files,
        buffer_bytes: limits::buffer_bytes(options).map_err(|problem| problem.at(job, "bs"))?,
        tells_errors: options.lifecycle.error_dump,
        start_clock: options.process.job_start_clock_id,
        placement_ranges: planned.schemes.of(job)?,
        replay: replay.clone(),
    };
    Ok((setup, warnings.list, problem))
}

/// Warns of options whose effect may not be the one meant.
fn note_all(
    options: &Options,
    files: &[FileSetup],
    sizes: &sizes::ResolvedSizes,
    warnings: &mut Warnings<'_>,
) {
    zones::note_without_effect(options, warnings);
    notes::cut_sizes(sizes, warnings);
    notes::files(options, files, warnings);
    shared_state::note_windows(options, warnings);
}

/// Keeps a problem that ends only the job, with nothing in place of what it prevents.
fn or_early_end<T: Default>(
    found: Result<T, RunProblem>,
) -> Result<(T, Option<RunProblem>), RunProblem> {
    match found {
        Ok(found) => Ok((found, None)),
        Err(problem) if problem.kind.is_of_one_job() => Ok((T::default(), Some(problem))),
        Err(problem) => Err(problem),
    }
}

/// Returns the pattern of a job's ops on these files.
fn pattern_over(
    files: &[FileSetup],
    options: &Options,
    seed: u64,
) -> Result<PatternConfig, RunProblem> {
    let ranges = files.iter().map(|file| range(options, file)).collect();
    let pattern = pattern::pattern(options, ranges, seed)?;
    Ok(match options.replay.found {
        Some(_) => replayed::pattern(pattern, files),
        None => pattern,
    })
}

/// Returns the reason why a job ends before its first op, if there is one.
fn early_end(problem: Option<&RunProblem>, no_files: bool) -> Option<EarlyEnd> {
    match problem {
        Some(problem) => Some(EarlyEnd::of(problem)),
        None => no_files.then_some(EarlyEnd::NoFiles),
    }
}

/// Returns the range of a file in which ops are placed. As in fio, zones extend to the end of the
/// file and `size` limits only the bytes transferred.
fn range(options: &Options, file: &FileSetup) -> FileRange {
    FileRange {
        offset: file.offset,
        length: match options.zones.mode {
            ZoneMode::Strided => file
                .file_bytes()
                .saturating_sub(file.offset)
                .max(file.length),
            ZoneMode::None | ZoneMode::Zbd => file.length,
        },
        file: file.file_bytes(),
    }
}

/// Returns the total length of a job's ranges.
fn bytes_of(files: &[FileSetup]) -> u64 {
    files.iter().map(|file| file.length).sum()
}

/// Returns the first file of each directory, for `end_syncfs`: files of one directory share a file
/// system.
fn file_systems(options: &Options, files: &[FileSetup]) -> Vec<FileIndex> {
    if !options.files.end_syncfs {
        return Vec::new();
    }
    let mut seen = HashSet::new();
    let new = (0..)
        .zip(files)
        .filter(|(_, file)| seen.insert(Path::new(&file.path).parent()));
    new.map(|(number, _)| FileIndex::new(number)).collect()
}

/// Returns the errors that the job tolerates.
fn tolerate(options: &Options) -> Tolerate {
    Tolerate {
        read: options.continue_on_error.read,
        write: options.continue_on_error.write,
        verify: options.continue_on_error.verify,
        listed: options.lifecycle.ignore_error.clone(),
    }
}

#[cfg(test)]
mod tests;

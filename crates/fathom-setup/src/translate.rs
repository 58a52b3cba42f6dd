//! From what was written to what is done: a plan becomes one `JobSetup` for each clone.
//!
//! Every default that depends on other options is filled in here; the worker and the engines read
//! final values only. Nothing is written: the file system is looked at through `FileSystemProbe`.

pub mod content;
mod files;
mod pace;
pub mod pattern;
pub mod priority;
mod seeds;
mod sizes;
mod ties;

use std::collections::{HashMap, HashSet};
use std::path::Path;

use fathom_core::{Direction, FileIndex, Nanos};
use fathom_host::target_kind::{FileSystemProbe, TargetKind};
use fathom_job::{Job, Options, Plan, ZoneMode};
use fathom_record::Warning;
use fathom_workload::{FileRange, Tolerate, WorkerConfig};

pub use self::seeds::entropy;
use self::ties::Ties;
use crate::error::{Problem, RunError};
use crate::groups::{Place, places};

/// One clone of a job, ready to be checked and run.
#[derive(Clone, Debug)]
pub struct JobSetup {
    /// Where it stands in the run.
    pub place: Place,
    /// Its name; the clones behind the first have the section's.
    pub name: String,
    /// What its worker does.
    pub worker: WorkerConfig,
    /// Its files, in the worker's order.
    pub files: Vec<FileSetup>,
    /// Bytes of one slot's buffer.
    pub buffer_bytes: u32,
    /// Files are neither made nor opened (`ioengine=null`).
    pub diskless: bool,
    /// `error_dump`: what it went past is told.
    pub tells_errors: bool,
    /// The clock of its start in the report.
    pub start_clock: u32,
}

/// One file of a job.
#[derive(Clone, Debug)]
pub struct FileSetup {
    /// Where it is.
    pub path: String,
    /// What lies there, or will when the jobs before have laid out theirs.
    pub found: TargetKind,
    /// What it must hold before the job starts.
    pub bytes: u64,
    /// The job works from here…
    pub offset: u64,
    /// …for so many bytes.
    pub length: u64,
}

impl FileSetup {
    /// Bytes it will hold when the job starts.
    pub fn whole(&self) -> u64 {
        self.found.bytes().unwrap_or(0).max(self.bytes)
    }
}

/// What a plan comes to.
#[derive(Debug, Default)]
pub struct Translation {
    /// Every clone, in the order of thread numbers.
    pub setups: Vec<JobSetup>,
    /// What the user should know.
    pub warnings: Vec<Warning>,
    /// What cannot be done; the setups of these jobs are left out.
    pub problems: Vec<Problem>,
}

impl Translation {
    /// Returns itself, or every problem if there is one.
    ///
    /// # Errors
    /// The problems.
    pub fn checked(self) -> Result<Self, RunError> {
        if self.problems.is_empty() {
            return Ok(self);
        }
        Err(RunError {
            problems: self.problems,
        })
    }
}

/// Translates a whole plan; problems of all jobs are collected.
pub fn translate(
    plan: &Plan,
    probe: &dyn FileSystemProbe,
    entropy: &mut dyn FnMut() -> u64,
) -> Translation {
    let mut translation = Translation::default();
    let mut bases = HashMap::new();
    let mut failed = HashSet::new();
    let mut planned = Planned {
        probe,
        files: HashMap::new(),
        ties: Ties::default(),
    };
    for place in places(&plan.jobs) {
        let job = &plan.jobs[place.section];
        let base = *bases
            .entry(place.section)
            .or_insert_with(|| seeds::base(job.options.randseed, job.options.randrepeat, entropy));
        let seed = seeds::of_job(base, place.number);
        match setup(job, place, seed, &mut planned) {
            Ok((setup, warnings)) => {
                planned.add(&setup);
                // Clones would only say the same again.
                if place.clone == 0 {
                    translation.warnings.extend(warnings);
                }
                translation.setups.push(setup);
            }
            // Clones mostly fail alike: one of a section speaks for all.
            Err(problem) if failed.insert(place.section) => translation.problems.push(problem),
            Err(_) => {}
        }
    }
    translation
}

/// The file system as it will be when the jobs before have laid out their files.
struct Planned<'a> {
    probe: &'a dyn FileSystemProbe,
    files: HashMap<String, TargetKind>,
    ties: Ties,
}

impl Planned<'_> {
    fn kind(&self, path: &str) -> Result<TargetKind, Problem> {
        if let Some(found) = self.files.get(path) {
            return Ok(*found);
        }
        self.probe
            .kind(path)
            .map_err(|error| Problem::new("file_unreadable", format!("{path}: {error}")))
    }

    fn add(&mut self, setup: &JobSetup) {
        if setup.diskless {
            return;
        }
        for file in setup
            .files
            .iter()
            .filter(|file| file.found.is_file_or_missing())
        {
            let bytes = file.found.bytes().unwrap_or(0).max(file.bytes);
            self.files
                .insert(file.path.clone(), TargetKind::Regular(bytes));
        }
    }
}

/// One clone's setup, and what is to be said about it.
fn setup(
    job: &Job,
    place: Place,
    seed: u64,
    planned: &mut Planned<'_>,
) -> Result<(JobSetup, Vec<Warning>), Problem> {
    let options = &job.options;
    let mut warnings = Warnings::of(job);
    let diskless = !options.has_local_files();
    let depth = depth(options);
    let (files, sizes) = files::files(job, place, seed, diskless, planned)?;
    if sizes.files.iter().any(|file| file.cut) {
        warnings.add(
            "size_beyond_device",
            "`size` is more than the device holds; the job works on what is there",
            "leave `size` out to use the whole device",
        );
    }
    ties::note_windows(options, &mut warnings);
    let ranges = files.iter().map(|file| range(options, file)).collect();
    let pattern =
        pattern::pattern(options, ranges, seed).map_err(|problem| problem.at(job, "bs"))?;
    let worker = WorkerConfig {
        pattern,
        depth,
        batching: pace::batching(options, depth),
        bytes_per_pass: bytes_per_pass(options, sizes.bytes_per_pass),
        loops: sizes.loops,
        bytes_in_all: sizes.bytes_in_all,
        runtime: options.runtime.filter(|runtime| !runtime.is_zero()),
        time_based: time_based(options),
        ramp: ramp(options),
        start_delay: start_delay(options, seed),
        rate: pace::rates(options).map_err(|problem| problem.at(job, "rate_iops"))?,
        rate_min: pace::rate_minimums(options)
            .map_err(|problem| problem.at(job, "rate_iops_min"))?,
        rate_cycle: options.rate_cycle,
        serialize_overlap: options.serialize_overlap && depth > 1,
        fill: options.fill_device,
        think: pace::think(options, planned.probe.cycles_hz()),
        sync: content::sync_rules(options),
        sync_filesystems: file_systems(options, &files),
        recreate_each_pass: options.files.unlink_each_loop && !diskless,
        tolerate: tolerate(options),
        verify: content::verify(options, place.number)
            .map_err(|problem| problem.at(job, "verify"))?,
        buffers: content::buffers(options, seed, bytes_of(&files)),
        measure: content::measure(options),
        priorities: priority::of_ops(options),
        invalidate: options.invalidate && !options.pre_read,
        limits: planned.ties.limits(job, place, ops_limit(options))?,
    };
    let setup = JobSetup {
        place,
        name: job.clone_name(place.clone).to_owned(),
        worker,
        files,
        buffer_bytes: buffer_bytes(options).map_err(|problem| problem.at(job, "bs"))?,
        diskless,
        tells_errors: options.lifecycle.error_dump,
        start_clock: options.process.job_start_clock_id,
    };
    Ok((setup, warnings.list))
}

/// The part of a file that ops are placed in. As in fio, zones go on to the file's end; `size`
/// bounds what is moved in them.
fn range(options: &Options, file: &FileSetup) -> FileRange {
    FileRange {
        offset: file.offset,
        length: match options.zones.mode {
            ZoneMode::Strided => file.whole().saturating_sub(file.offset).max(file.length),
            ZoneMode::None | ZoneMode::Zbd => file.length,
        },
        file: file.whole(),
    }
}

/// What a job works on, in all.
fn bytes_of(files: &[FileSetup]) -> u64 {
    files.iter().map(|file| file.length).sum()
}

/// Of files in one directory the first: they are in one file system.
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

/// One of bytes ends when they are moved, and not before.
fn ramp(options: &Options) -> Nanos {
    match options.ramp_size {
        0 => options.ramp_time,
        _ => Nanos::new(u64::MAX / 2),
    }
}

/// Ops in flight at most: one for synchronous engines, whatever was asked (the parser says so).
fn depth(options: &Options) -> u32 {
    let asked = options.iodepth.max(1);
    if options.is_synchronous(asked) {
        1
    } else {
        asked
    }
}

/// Errors that the job goes past.
fn tolerate(options: &Options) -> Tolerate {
    Tolerate {
        read: options.continue_on_error.read,
        write: options.continue_on_error.write,
        verify: options.continue_on_error.verify,
        listed: options.lifecycle.ignore_error.clone(),
    }
}

/// `time_based` needs a `runtime`; the parser says so where there is none.
fn time_based(options: &Options) -> bool {
    let bounded = options.runtime.is_some_and(|runtime| !runtime.is_zero());
    options.time_based && bounded
}

/// `number_ios` over all passes; as in fio, `time_based` goes on all the same. One pass of ops of
/// one size is ended by its bytes, which costs nothing.
fn ops_limit(options: &Options) -> Option<u64> {
    let ops = options.number_ios.filter(|_| !time_based(options))?;
    let by_bytes = options.loops <= 1 && only_size(options).is_some();
    (!by_bytes).then(|| ops.saturating_mul(options.loops.max(1).into()))
}

/// The bytes of a pass, or of the ops that `number_ios` leaves of it.
fn bytes_per_pass(options: &Options, bytes: u64) -> u64 {
    let ops = options.number_ios.filter(|_| !time_based(options));
    match (ops, only_size(options), ops_limit(options)) {
        (Some(ops), Some(size), None) => bytes.min(ops.saturating_mul(size)),
        _ => bytes,
    }
}

/// The size of all ops, if there is only one.
fn only_size(options: &Options) -> Option<u64> {
    let mut sizes: Vec<_> = pattern::sized(options)
        .flat_map(|direction| <[u64; 2]>::from(pattern::bounds(options, direction)))
        .collect();
    sizes.dedup();
    match sizes[..] {
        [size] => Some(size),
        _ => None,
    }
}

fn start_delay(options: &Options, seed: u64) -> Nanos {
    let (low, high) = options.startdelay;
    Nanos::new(seeds::within(
        seed,
        START_DELAY,
        low.get(),
        high.get().max(low.get()),
    ))
}

/// A slot's buffer holds the largest op that moves data.
fn buffer_bytes(options: &Options) -> Result<u32, Problem> {
    let moved = [Direction::Read, Direction::Write];
    let moves = moved.iter().any(|&d| pattern::uses(options, d));
    let largest = pattern::sized(options)
        .filter(|&direction| moves && direction != Direction::Trim)
        .map(|direction| pattern::bounds(options, direction).1)
        .max();
    u32::try_from(largest.unwrap_or(0))
        .map_err(|_| Problem::new("block_size_too_large", "a block size is not below 4 GiB"))
}

/// What is to be said about one job.
struct Warnings<'a> {
    job: &'a str,
    list: Vec<Warning>,
}

impl<'a> Warnings<'a> {
    const fn of(job: &'a Job) -> Self {
        Self {
            job: job.name.as_str(),
            list: Vec::new(),
        }
    }

    fn add(&mut self, code: &str, message: impl Into<String>, hint: &str) {
        self.list.push(Warning {
            code: code.into(),
            job: self.job.into(),
            message: message.into(),
            hint: hint.into(),
        });
    }
}

/// What a drawn number is for, so that no two uses share one.
const START_DELAY: u64 = 1;

#[cfg(test)]
mod tests;

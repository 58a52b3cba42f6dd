//! Checks of the whole plan before the first file is created: dangerous targets, options that
//! cannot work, and sizes that make no sense. One pass reports every problem of every job.

mod atomic;
mod aux_path;
mod engine_fit;
pub mod pollers;
mod process;
mod recorded;
mod replayed;
pub mod scheduler;
pub mod shared_range;
mod streams;
pub(crate) mod taken;
mod trims;
mod verify_map;
mod verify_shared;
mod write_protected;
pub(crate) mod zone_names;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use fathom_core::{Direction, Errno, SlotLimit};
use fathom_host::block_tree::BlockTree;
use fathom_host::control_groups::MemoryLimit;
use fathom_host::probe;
use fathom_host::safety::Guard;
use fathom_host::storage::storage_under;
use fathom_host::target_kind::TargetKind;
use fathom_job::{BlockSize, Job, Plan, Settings, engine_files};
use fathom_workload::Worker;

use crate::error::RunProblem;
use crate::problem_kind::ProblemKind;
use crate::translate::pattern::{bounds, draws_in, smallest, writes};
use crate::translate::{FileSetup, JobSetup};

pub use self::atomic::write_bytes;
pub use self::recorded::recordings;
pub use self::replayed::logs_as_data;
pub(crate) use self::streams::wants as wants_streams;
pub use self::streams::{placement, write_streams};
pub use self::taken::TakenFiles;
pub use self::verify_map::verify_maps;
pub use self::verify_shared::shared as verified_by_many;
pub use self::zone_names::by_two_names;

/// Returns every problem that prevents the plan from running.
pub fn check(plan: &Plan, settings: &Settings, setups: &[JobSetup]) -> Vec<RunProblem> {
    let mut checker = Checker {
        problems: Vec::new(),
        looked_at: HashSet::new(),
        used: HashSet::new(),
        blocks: HashMap::new(),
        contradictory: HashSet::new(),
        guard: Guard::new(BlockTree::default()),
        tree: BlockTree::default(),
    };
    for (section, job) in plan.jobs.iter().enumerate() {
        checker.job(job, settings);
        let own = setups.iter().filter(|setup| setup.place.section == section);
        for setup in own.filter(|setup| setup.early_end.is_none()) {
            // The setup's job is the plan's, with what a replay has found in its log.
            let job = &setup.job;
            checker.setup(job, setup);
            if settings.read_only
                && let Some(problem) = replayed::changes(setup)
            {
                checker.of_section(setup, problem);
            }
            if settings.read_only && setup.has_local_files() {
                checker.problems.extend(to_lay_out(job, setup));
            }
        }
    }
    checker.problems.extend(aux_path::check(settings, setups));
    checker.problems.extend(memory(setups));
    checker.problems.extend(slot_limit(setups));
    checker.problems
}

struct Checker {
    problems: Vec<RunProblem>,
    /// Files already checked: path, modified by the job.
    looked_at: HashSet<(String, bool)>,
    /// Files whose use by a job is already checked: section, path.
    used: HashSet<(usize, String)>,
    /// Logical blocks of the storage under files.
    blocks: HashMap<String, u64>,
    /// Problems of a section that are reported once instead of per clone.
    contradictory: HashSet<(usize, ProblemKind)>,
    guard: Guard,
    tree: BlockTree,
}

impl Checker {
    /// Checks a job independently of its files.
    fn job(&mut self, job: &Job, settings: &Settings) {
        let options = &job.options;
        if settings.read_only && writes(&job.options) && !options.replay.replays() {
            let message = match options.engine.always_writes {
                true => "the job's engine changes files, which --readonly forbids",
                false => "the job writes or trims, which --readonly forbids",
            };
            self.add(job, "rw", RunProblem::new(ProblemKind::ReadOnly, message));
        }
        let commands = ["exec_prerun", "exec_postrun"];
        let has = [
            &options.lifecycle.exec_prerun,
            &options.lifecycle.exec_postrun,
        ];
        for (option, _) in commands
            .into_iter()
            .zip(has)
            .filter(|(_, has)| has.is_some())
        {
            if settings.no_exec {
                let message = format!("`{option}` runs a command, which --no-exec forbids");
                self.add(job, option, RunProblem::new(ProblemKind::NoExec, message));
            }
        }
        if let Some(&cpu) = options.cpus_allowed.iter().flatten().max()
            && cpu >= probe::cpus_configured()
        {
            let count = probe::cpus_configured();
            let message = format!("no such CPU: {cpu}: this machine has {count}");
            let hint = format!("choose CPUs from 0 to {}", count.saturating_sub(1));
            let problem = RunProblem::new(ProblemKind::NoSuchCpu, message).hint(hint);
            self.add(job, "cpus_allowed", problem);
        }
        let fit = engine_fit::check(job);
        for (option, problem) in process::check(options).into_iter().chain(fit) {
            self.add(job, option, problem);
        }
        if let Some(buffers) = &options.memory.file {
            let (path, allowed) = (Path::new(buffers), options.allow_mounted_write);
            if let Err(refusal) = self.guard.check(path, true, allowed) {
                self.add(job, "mem", refusal.into());
            } else if path.is_dir() {
                let problem = RunProblem::new(
                    ProblemKind::IsADirectory,
                    format!("{buffers} is a directory"),
                );
                self.add(job, "mem", problem.hint("name a file in it"));
            }
        }
        for directory in options.directory.iter().flatten() {
            if options.has_local_files() && !Path::new(directory).is_dir() {
                let message = format!("no such directory: {directory}");
                let problem = RunProblem::new(ProblemKind::NoDirectory, message).hint("create it");
                self.add(job, "directory", problem);
            }
        }
    }

    /// Checks one clone and its files.
    fn setup(&mut self, job: &Job, setup: &JobSetup) {
        let options = &job.options;
        let fits = |file: &FileSetup| file.has_room_for_an_op(options);
        if let Some(file) = setup.files.first()
            && setup.replay.is_none()
            && !setup.files.iter().any(fits)
        {
            let message = format!(
                "block size {} B exceeds the job's range of {} B in {}",
                smallest(options),
                file.length,
                file.path
            );
            let problem = RunProblem::new(ProblemKind::BlockSizeBeyondFile, message);
            let written = |name: &&str| job.typed.iter().any(|typed| typed.name == *name);
            let option = ["bs", "bsrange", "bssplit"].into_iter().find(written);
            let problem = problem.hint("reduce `bs` or increase `size`");
            self.add(job, option.unwrap_or("size"), problem);
            return;
        }
        if let Err(error) = Worker::check(&setup.worker) {
            let problem = RunProblem::new(ProblemKind::Contradiction, error.to_string());
            self.of_section(setup, problem.at(job, "rw"));
        }
        if let Some(problem) = verify_shared::untracked_ranges(setup)
            && setup.place.clone == 0
        {
            self.add(job, "num_range", problem);
        }
        // Clones differ in no size.
        if job.options.has_remote_files() && setup.place.clone == 0 {
            let known = setup.files.iter().find(|file| file.found.bytes().is_some());
            known
                .into_iter()
                .for_each(|file| self.alignment(setup, file));
        }
        if job.options.has_devices() {
            setup.files.iter().for_each(|file| self.device(setup, file));
        }
        if !setup.has_local_files() {
            return;
        }
        for (option, path) in engine_files(job, setup.place.clone) {
            if self.looked_at.insert((path.clone(), true)) {
                let allowed = job.options.allow_mounted_write;
                let refused = self.guard.check(Path::new(&path), true, allowed).err();
                if let Some(refusal) = refused {
                    self.add(job, option.name, refusal.into());
                }
            }
        }
        for file in &setup.files {
            let first = self
                .looked_at
                .insert((file.path.clone(), changes(job, file)));
            if first && let Some(problem) = self.file(setup, file) {
                self.add(job, "filename", problem);
                continue;
            }
            // Clones may differ in their offsets.
            if job.options.direct {
                self.alignment(setup, file);
            }
            let key = (setup.place.section, file.path.clone());
            if self.used.insert(key) {
                self.ops_on(job, file);
            }
        }
    }

    /// Checks a device that takes commands.
    fn device(&mut self, setup: &JobSetup, file: &FileSetup) {
        let job = &*setup.job;
        let writes = file.may_write(&job.options);
        if !self.looked_at.insert((file.path.clone(), writes)) {
            return;
        }
        let (path, allowed) = (Path::new(&file.path), job.options.allow_mounted_write);
        if let Err(refusal) = self.guard.check_passthrough(path, writes, allowed) {
            return self.add(job, "filename", refusal.into());
        }
        if writes && let Some(problem) = write_protected::check(path, &self.tree) {
            return self.add(job, "filename", problem);
        }
        let TargetKind::Block { logical_block, .. } = file.found else {
            return;
        };
        if setup.worker.verify.is_some() && !logical_block.is_power_of_two() {
            let message = format!(
                "{}: blocks of {logical_block} B end with metadata, which verification would take \
                 for data",
                file.path
            );
            let problem = RunProblem::new(ProblemKind::UnalignedBlockSize, message);
            let hint = "use a namespace that transfers its metadata apart, or remove `verify`";
            self.add(job, "verify", problem.hint(hint).errno(Errno::EINVAL));
        }
    }

    /// Returns what keeps a job from opening or creating a file.
    fn file(&self, setup: &JobSetup, file: &FileSetup) -> Option<RunProblem> {
        let job = &*setup.job;
        let path = Path::new(&file.path);
        let allowed = job.options.allow_mounted_write;
        if let Err(refusal) = self.guard.check(path, changes(job, file), allowed) {
            return Some(refusal.into());
        }
        let names = job.options.engine.name_work();
        let wrong =
            names.and_then(|names| engine_fit::name_target(names, file, changes(job, file)));
        match file.found {
            _ if wrong.is_some() => wrong,
            TargetKind::Missing if job.options.verification.only => {
                let message = format!("{} does not exist: there is nothing to verify", file.path);
                let problem = RunProblem::new(ProblemKind::FileUnreadable, message);
                Some(problem.hint("write it first, by the same job without `verify_only`"))
            }
            TargetKind::Missing => missing(job, path),
            _ if names.is_some() && path.exists() => None,
            TargetKind::Directory => {
                let message = format!("{} is a directory", file.path);
                let problem = RunProblem::new(ProblemKind::IsADirectory, message);
                Some(problem.hint("name a file in it, or use `directory=`"))
            }
            // Planned by an earlier job, which will lay it out.
            TargetKind::Regular(_) if !path.exists() => missing(job, path),
            TargetKind::Regular(_) => closed(job, file),
            TargetKind::Block { .. } if changes(job, file) => {
                write_protected::check(path, &self.tree)
            }
            TargetKind::Stream | TargetKind::Block { .. } => None,
        }
    }

    /// Checks that a file takes the ops of a job.
    fn ops_on(&mut self, job: &Job, file: &FileSetup) {
        if let Some((option, problem)) = trims::check(&job.options, file, &self.tree) {
            self.add(job, option, problem);
        }
        if job.options.direct {
            if let Some(problem) = streams::check(&job.options, file) {
                self.add(job, "dataplacement", problem);
            }
            if let Some((option, problem)) = atomic::check(&job.options, file) {
                self.add(job, option, problem);
            }
        }
    }

    /// Checks that direct ops are multiples of the device's logical block. As in fio, the job
    /// itself would fail with EINVAL.
    fn alignment(&mut self, setup: &JobSetup, file: &FileSetup) {
        let block = match file.found {
            TargetKind::Block { logical_block, .. } => u64::from(logical_block),
            _ => self.block_under(&file.path),
        };
        // Unknown: the kernel decides.
        if block == 0 {
            return;
        }
        let problem = match setup.replay {
            Some(_) => replayed::alignment(setup, block, &file.path),
            None => unaligned(&setup.job, file, block),
        };
        if let Some(problem) = problem {
            self.of_section(setup, problem.errno(Errno::EINVAL));
        }
    }

    /// Returns the logical block of the storage under a file, 0 if unknown.
    fn block_under(&mut self, path: &str) -> u64 {
        if let Some(&block) = self.blocks.get(path) {
            return block;
        }
        let block = storage_under(Path::new(path), &self.tree).logical_block_bytes;
        self.blocks.insert(path.to_owned(), block);
        block
    }

    /// Adds a problem that clones would repeat.
    fn of_section(&mut self, setup: &JobSetup, problem: RunProblem) {
        if self
            .contradictory
            .insert((setup.place.section, problem.kind))
        {
            self.problems.push(problem);
        }
    }

    fn add(&mut self, job: &Job, option: &str, problem: RunProblem) {
        self.problems.push(problem.at(job, option));
    }
}

/// Returns a problem if direct ops of a job are no multiples of the `block` bytes of a file.
fn unaligned(job: &Job, file: &FileSetup, block: u64) -> Option<RunProblem> {
    let name = &file.path;
    let mut sizes = sizes_in_use(job).into_iter();
    if let Some(size) = sizes.find(|size| !size.is_multiple_of(block)) {
        let message = format!(
            "block size {size} B is not a multiple of the {block} B logical block of {name}"
        );
        let hint = match job.options.has_remote_files() {
            true => format!("make `bs` a multiple of {block}"),
            false => format!("make `bs` a multiple of {block}, or remove `direct`"),
        };
        let problem = RunProblem::new(ProblemKind::UnalignedBlockSize, message);
        return Some(problem.hint(hint).at(job, "bs"));
    }
    let offset = file.offset;
    (!offset.is_multiple_of(block)).then(|| {
        let message =
            format!("offset {offset} B is not a multiple of the {block} B logical block of {name}");
        RunProblem::new(ProblemKind::UnalignedOffset, message).at(job, "offset")
    })
}

/// Returns true if a job modifies a file: writes, trims, extends or removes it.
fn changes(job: &Job, file: &FileSetup) -> bool {
    let grows = file.found.bytes().is_some_and(|bytes| bytes < file.bytes);
    let removed = job.options.unlink || job.options.files.unlink_each_loop;
    file.may_write(&job.options) || file.found.is_file_or_missing() && (grows || removed)
}

/// Returns a problem if `--readonly` prevents a layout that the job needs.
fn to_lay_out(job: &Job, setup: &JobSetup) -> Option<RunProblem> {
    let mut files = setup.files.iter();
    let (short, errno) = files.find_map(|file| {
        let (bytes, errno) = match &std::fs::metadata(&file.path) {
            Ok(found) if !found.is_file() => return None,
            Ok(found) => (found.len(), Errno::EIO),
            Err(_) => (0, Errno::ENOENT),
        };
        (bytes < file.bytes).then_some((file, errno))
    })?;
    let message = format!(
        "refusing extend of file due to read-only: {}: {} B needed",
        short.path, short.bytes
    );
    let problem = RunProblem::new(ProblemKind::ReadOnlyLayout, message).errno(errno);
    let problem = problem.hint("create the file first, without `--readonly`");
    (!writes(&job.options)).then(|| problem.at(job, "filename"))
}

/// Returns a problem if a missing file cannot be created.
fn missing(job: &Job, path: &Path) -> Option<RunProblem> {
    let name = path.display();
    if !job.options.allow_file_create {
        let message = format!("{name} does not exist, and allow_file_create=0 forbids creating it");
        return Some(RunProblem::new(ProblemKind::FileCreateForbidden, message));
    }
    let parent = existing_parent(path);
    if !parent.is_dir() {
        let message = format!("{} is not a directory", parent.display());
        let problem = RunProblem::new(ProblemKind::NotADirectory, message);
        return Some(problem.errno(Errno::ENOTDIR));
    }
    let error = probe::check_create_in(&parent).err()?;
    let parent = parent.display();
    let (why, errno) = match Errno::of(&error) {
        Some(Errno::EROFS) => ("is on a read-only file system", Errno::EROFS),
        _ => ("is not writable", Errno::EACCES),
    };
    let message = format!("cannot create {name}: {parent} {why}");
    let problem = RunProblem::new(ProblemKind::DirectoryNotWritable, message);
    Some(problem.hint("choose another `directory=`").errno(errno))
}

/// Returns the nearest existing ancestor of `path`; the directories below it would be created.
fn existing_parent(path: &Path) -> PathBuf {
    let above = path.ancestors().skip(1).find(|above| above.exists());
    match above {
        Some(above) if !above.as_os_str().is_empty() => above.to_owned(),
        _ if path.is_absolute() => PathBuf::from("/"),
        _ => PathBuf::from("."),
    }
}

/// Returns a problem if an existing file cannot be opened as the job needs it.
fn closed(job: &Job, file: &FileSetup) -> Option<RunProblem> {
    let path = Path::new(&file.path);
    let writes = file.may_write(&job.options);
    let grows = file.found.bytes().is_some_and(|bytes| bytes < file.bytes);
    let error = probe::try_open(path, writes || grows).err()?;
    let name = path.display();
    let (message, hint) = if writes || !grows || probe::try_open(path, false).is_err() {
        let hint = "change its permissions, or run as its owner";
        (format!("{name}: {error}"), hint)
    } else {
        let (has, needed) = (file.found.bytes().unwrap_or(0), file.bytes);
        let message = format!(
            "cannot extend {name} from {has} B to the {needed} B that the job needs: {error}"
        );
        (message, "reduce `size`, or run as the file's owner")
    };
    let problem = RunProblem::new(ProblemKind::FileClosedToUs, message);
    let problem = match Errno::of(&error) {
        Some(errno) => problem.errno(errno),
        None => problem,
    };
    let denied = error.kind() == std::io::ErrorKind::PermissionDenied;
    Some(if denied { problem.hint(hint) } else { problem })
}

/// Returns the op sizes that the job may issue.
fn sizes_in_use(job: &Job) -> Vec<u64> {
    let options = &job.options;
    let used = Direction::ALL.into_iter().filter(|&d| draws_in(options, d));
    used.flat_map(|direction| match &options.block_sizes[direction] {
        BlockSize::Split(parts) => parts.iter().map(|&(size, _)| size).collect(),
        // Sizes in between are multiples of the smallest.
        BlockSize::Fixed(_) | BlockSize::Range { .. } => {
            let (smallest, largest) = bounds(options, direction);
            vec![smallest, largest]
        }
    })
    .collect()
}

/// Returns a problem if the buffers of the jobs that run together exceed the memory. Otherwise the
/// OOM killer would end the program, not just the job.
fn memory(setups: &[JobSetup]) -> Option<RunProblem> {
    let per_job = |setup: &JobSetup| {
        let slot = u128::from(setup.buffer_bytes) + SLOT_BYTES;
        let in_memory = setup.job.options.engine.files_in_memory;
        let files = setup.files.iter().filter(|_| in_memory);
        let files: u128 = files.map(|file| u128::from(file.bytes)).sum();
        u128::from(setup.worker.depth) * slot + files
    };
    let mut by_wave: BTreeMap<u32, u128> = BTreeMap::new();
    for setup in setups {
        *by_wave.entry(setup.place.wave).or_default() += per_job(setup);
    }
    let needed = by_wave.into_values().max().unwrap_or_default();
    let memory = MemoryLimit::detect();
    // The limit of a control group includes the program itself.
    let own = if memory.is_of_group { PROGRAM_BYTES } else { 0 };
    (memory.bytes > 0 && needed + own > u128::from(memory.bytes)).then(|| {
        let message = format!(
            "the buffers of the jobs that run together need {needed} B, more than {} {} B of \
             memory",
            memory.owner(),
            memory.bytes
        );
        let mut jobs = setups.iter().map(|setup| &setup.job.options);
        let hint = match jobs.any(|options| options.engine.files_in_memory) {
            true => "reduce `size`, `iodepth`, `bs` or `numjobs`",
            false => "reduce `iodepth`, `bs` or `numjobs`",
        };
        let hint = match memory.is_of_group {
            true => format!("{hint}, or raise the group's limit"),
            false => hint.to_owned(),
        };
        RunProblem::new(ProblemKind::TooMuchMemory, message).hint(hint)
    })
}

/// The kernel limits how many ops some engines may have in flight in the whole system. Each engine
/// is tried by itself before files are laid out; whether all that run together fit is only known
/// from the sum.
fn slot_limit(setups: &[JobSetup]) -> Option<RunProblem> {
    let number = |name: &str| -> Option<u64> {
        let text = std::fs::read_to_string(Path::new("/proc/sys/fs").join(name)).ok()?;
        text.trim().parse().ok()
    };
    let mut by_wave: BTreeMap<(&str, u32), (u64, SlotLimit, &Job)> = BTreeMap::new();
    for setup in setups {
        let job = &*setup.job;
        let Some(limit) = job.options.engine.slot_limit else {
            continue;
        };
        let wave = by_wave.entry((limit.limit, setup.place.wave));
        wave.or_insert((0, limit, job)).0 += u64::from(setup.worker.depth);
    }
    let &(needed, limit, job) = by_wave.values().max_by_key(|(needed, ..)| *needed)?;
    let (most, used) = (number(limit.limit)?, number(limit.used)?);
    let left = most.saturating_sub(used);
    (needed > left).then(|| {
        let message = format!(
            "the jobs that run together ask {} for {needed} ops in flight, and fs.{} leaves {left}",
            job.options.engine.name, limit.limit
        );
        let problem = RunProblem::new(ProblemKind::TooMuchAio, message);
        let hint = "reduce `iodepth` or `numjobs`, or raise that sysctl";
        problem.hint(hint).at(job, "iodepth")
    })
}

/// Estimated bytes per op in flight in the worker and the engine, apart from its buffer.
const SLOT_BYTES: u128 = 256;
/// Estimated memory of the program itself, apart from the jobs' buffers.
const PROGRAM_BYTES: u128 = 8 << 20;

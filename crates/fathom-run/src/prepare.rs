//! Files before and after the jobs: layout, `pre_read` and `unlink`.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use fathom_core::Direction;
use fathom_host::block_tree::BlockTree;
use fathom_host::safety::Guard;
use fathom_record::Warning;
use fathom_setup::translate::pattern::uses;
use fathom_setup::translate::{EarlyEnd, JobSetup};
use fathom_setup::{RunError, RunProblem};
use fathom_setup::{RunEvent, Session};
use fathom_sys::clock::Clock;
use fathom_workload::BufferFill;

use crate::checked;
use crate::layout::{
    FileContent, LayoutError, LayoutErrorKind, LayoutEvent, LayoutFile, LayoutJob, LayoutOptions,
    LayoutReport, lay_out as lay_out_jobs,
};
use crate::merge;
use crate::peer_access::PeerAccess;
use crate::shared_layout::LayoutShare;

/// Returns what is to be laid out: the files of all jobs, except those that create their own
/// (`create_on_open`) or none (`verify_only`), and those that will fail alone.
pub(crate) fn layout_jobs(setups: &[JobSetup], failing: &[Warning]) -> Vec<LayoutJob> {
    let wanted = setups.iter().enumerate().filter(|(_, setup)| {
        let options = &setup.job.options;
        let fails = failing.iter().any(|told| told.job == setup.job.name);
        let needs = setup.early_end.is_none() && setup.has_local_files();
        let names = options.engine.name_work();
        let made_by_ops = names.is_some_and(|names| !names.laid_out);
        let creates = !options.create_on_open && !options.verification.only;
        needs && creates && !options.fills() && !fails && !made_by_ops
    });
    wanted
        .map(|(index, setup)| layout_job(index, setup))
        .collect()
}

/// Merges traces, and lays out this rank's share of the files; then looks again at those that
/// other ranks have laid out. Returns a warning for each failure that does not prevent the run,
/// such as one that ends a job early.
pub(crate) fn prepare(
    setups: &mut [JobSetup],
    share: &LayoutShare,
    clock: Clock,
    session: &mut Session<'_>,
    peers: &PeerAccess<'_>,
) -> Result<Vec<Warning>, RunError> {
    let mut warnings = match lay_out(&share.own, clock, session) {
        Ok(report) => notes(&report),
        // Ranks have agreed on who lays out which file.
        Err(error) if error.errno().is_some() && session.jobs_fail_alone && peers.is_alone() => {
            lay_out_apart(setups, &share.own, clock, session)?
        }
        Err(error) => return Err(problem(setups, &error).into()),
    };
    merge::write_all(setups, session.stops)?;
    peers.get().laid_out();
    peers.wait(session.stops, |peers| peers.files_ready());
    // Of a run that stops, nothing is missed.
    if !share.others.is_empty() && peers.see().stop().is_none() {
        let report = lay_out(&share.others, clock, session);
        warnings.extend(notes(&report.map_err(|error| problem(setups, &error))?));
    }
    Ok(warnings)
}

/// Lays out the files of each job by themselves, as fio does, and ends the jobs whose files cannot
/// be laid out.
fn lay_out_apart(
    setups: &mut [JobSetup],
    jobs: &[LayoutJob],
    clock: Clock,
    session: &mut Session<'_>,
) -> Result<Vec<Warning>, RunError> {
    let (mut warnings, mut done) = (Vec::new(), Vec::new());
    for job in jobs {
        match lay_out(std::slice::from_ref(job), clock, session) {
            Ok(report) => {
                warnings.extend(notes(&report));
                done.push(report);
            }
            Err(error) if error.errno().is_some() => {
                let problem = problem(setups, &error);
                setups[job.index].early_end = Some(EarlyEnd::of(&problem));
                warnings.push(checked::warning_of(problem));
            }
            Err(mut error) => {
                let reports = done.into_iter().rev();
                error
                    .left_behind
                    .extend(reports.flat_map(LayoutReport::undo));
                return Err(problem(setups, &error).into());
            }
        }
    }
    Ok(warnings)
}

fn lay_out(
    jobs: &[LayoutJob],
    clock: Clock,
    session: &mut Session<'_>,
) -> Result<LayoutReport, LayoutError> {
    let stops = session.stops;
    let options = LayoutOptions {
        clock,
        stop: &|| stops() > 0,
    };
    let tell = &mut *session.tell;
    lay_out_jobs(jobs, &options, &mut |event| {
        tell(match *event {
            LayoutEvent::Starting { job, files, bytes } => {
                RunEvent::LayingOut { job, files, bytes }
            }
            LayoutEvent::Progress(progress) => RunEvent::LayoutProgress(progress),
            LayoutEvent::Finished => RunEvent::LaidOut,
        });
    })
}

/// Returns the failures of a layout that do not prevent the run.
fn notes(report: &LayoutReport) -> Vec<Warning> {
    let notes = report.notes.iter().map(|note| Warning {
        code: "layout".into(),
        job: String::new(),
        message: note.clone(),
        hint: String::new(),
    });
    notes.collect()
}

fn layout_job(index: usize, setup: &JobSetup) -> LayoutJob {
    let options = &setup.job.options;
    let content = match &setup.worker.buffers.fill {
        BufferFill::Pattern(pattern) => FileContent::Pattern(pattern.clone()),
        BufferFill::Zero => FileContent::Zeros,
        BufferFill::Random => FileContent::Random {
            seed: setup.worker.pattern.seed,
        },
    };
    let uses = |direction| uses(options, direction);
    let written = options.overwrite || uses(Direction::Read) || uses(Direction::Trim);
    let files = setup.files.iter().map(|file| LayoutFile {
        path: file.path.clone().into(),
        length: file.bytes,
        written,
    });
    let names = options.engine.name_work();
    let (files, directories) = match names.is_some_and(|names| names.directories) {
        false => (files.collect(), Vec::new()),
        true => (Vec::new(), files.map(|file| file.path).collect()),
    };
    LayoutJob {
        index,
        name: setup.name.clone(),
        files,
        directories,
        content,
        fallocate: options.fallocate,
        fsync: options.create_fsync,
        may_create: options.allow_file_create,
        keep_cached: !options.invalidate && !options.create_fsync,
        in_parallel: !options.create_serialize,
    }
}

/// Converts a layout error into a problem of the first job that uses the file.
fn problem(setups: &[JobSetup], error: &LayoutError) -> RunProblem {
    let mut problem = RunProblem::new(error.problem_kind(), error.to_string());
    if !error.hint().is_empty() {
        problem = problem.hint(error.hint());
    }
    if let Some(errno) = error.errno() {
        problem = problem.errno(errno);
    }
    let wants = |setup: &&JobSetup| {
        let mut files = setup.files.iter();
        files.any(|file| Path::new(&file.path) == error.path)
    };
    let option = match error.kind {
        LayoutErrorKind::NoRoom { .. } => "size",
        LayoutErrorKind::Interrupted => return problem,
        _ => "filename",
    };
    match setups.iter().find(wants) {
        Some(setup) => problem.at(&setup.job, option),
        None => problem,
    }
}

/// Reads the files of jobs with `pre_read=1` into the page cache.
pub(crate) fn pre_read(setups: &[JobSetup], stops: &dyn Fn() -> u32) {
    let wanted = |setup: &&JobSetup| setup.has_local_files() && setup.job.options.pre_read;
    let mut buffer = vec![0; PRE_READ_BYTES];
    for file in setups.iter().filter(wanted).flat_map(|setup| &setup.files) {
        // The job reports files that cannot be opened or read.
        let Ok(mut opened) = File::open(&file.path) else {
            continue;
        };
        let mut left = file.bytes;
        while left > 0 && stops() == 0 {
            match opened.read(&mut buffer) {
                Ok(count) if count > 0 => left = left.saturating_sub(count as u64),
                _ => break,
            }
        }
    }
}

/// Files that a run leaves behind and that are to be removed (`unlink=1`). Dropping it keeps them.
#[derive(Debug, Default)]
pub struct Leftovers {
    entries: Vec<Leftover>,
}

#[derive(Debug)]
struct Leftover {
    job: String,
    path: PathBuf,
    is_directory: bool,
    /// `allow_mounted_write`.
    is_forced: bool,
}

impl Leftovers {
    /// Returns the files of the jobs with `unlink=1`.
    pub(crate) fn of(setups: &[JobSetup]) -> Self {
        let mut entries = Vec::new();
        for setup in setups {
            let options = &setup.job.options;
            if !setup.has_local_files() || !options.unlink {
                continue;
            }
            let names = options.engine.name_work();
            let is_directory = names.is_some_and(|names| names.directories);
            let files = setup.files.iter();
            let files = files.filter(|file| is_directory || file.found.is_file_or_missing());
            entries.extend(files.map(|file| Leftover {
                job: setup.name.clone(),
                path: (*file.path).into(),
                is_directory,
                is_forced: options.allow_mounted_write,
            }));
        }
        Self { entries }
    }

    /// Removes the files, once no other rank uses them. Returns a warning for each one that stays:
    /// it has become the backing file of a device in use, or its directory cannot be written.
    #[must_use]
    pub fn remove(self) -> Vec<Warning> {
        let guard = Guard::new(BlockTree::default());
        let kept = self.entries.into_iter().filter_map(|entry| {
            if entry.is_directory {
                // Not if it is gone, or has other content than the job's.
                let _kept = std::fs::remove_dir(&entry.path);
                return None;
            }
            let (message, hint) = match guard.check_free(&entry.path) {
                Err(refusal) if !entry.is_forced => (
                    format!("`unlink` is ignored: {refusal}"),
                    "remove the file when the device is no longer in use",
                ),
                _ => match std::fs::remove_file(&entry.path) {
                    Ok(()) => return None,
                    // Already removed if another clone or rank shares the file.
                    Err(error) if error.kind() == ErrorKind::NotFound => return None,
                    Err(error) => (
                        format!("cannot remove {}: {error}", entry.path.display()),
                        "remove it as its owner, or as root",
                    ),
                },
            };
            Some(Warning {
                code: "file_kept".into(),
                job: entry.job,
                message,
                hint: hint.into(),
            })
        });
        kept.collect()
    }
}

/// Bytes per read: large enough that the device, not the system calls, sets the speed.
const PRE_READ_BYTES: usize = 1 << 20;

//! Merged traces as files (`merge_blktrace_file`).

use std::io::{self, Read, Write};
use std::path::Path;

use fathom_host::HostError;
use fathom_host::output_file::{self, Destination, OutputFile, OutputStream, Stop};
use fathom_job::{Job, Plan, Settings};
use fathom_setup::check::TakenFiles;
use fathom_setup::merge::MergePlan;
use fathom_setup::replay::ReplayError;
use fathom_setup::translate::JobSetup;
use fathom_setup::{ProblemKind, RunError, RunProblem};

/// Merges the traces of a plan into their files; no job is run.
///
/// # Errors
/// A trace cannot be read or merged, a file cannot be written, or the merge was stopped. An earlier
/// file is whole then.
pub fn merge_traces(
    plan: &Plan,
    settings: &Settings,
    stops: &dyn Fn() -> u32,
) -> Result<(), RunError> {
    let merges = merges(plan.jobs.iter())?;
    if merges.is_empty() {
        let message = "no job has `merge_blktrace_file`";
        let problem = RunProblem::new(ProblemKind::Contradiction, message);
        return Err(problem
            .hint("name the file, and the traces in `read_iolog`")
            .into());
    }
    let taken = TakenFiles::default().named(settings);
    for (job, merge) in merges {
        check_one(job, &merge, &taken)?;
        write(job, &merge, stops)?;
    }
    Ok(())
}

/// Returns a problem for each merged trace that cannot be written, or whose file is taken. Nothing
/// is created.
pub(crate) fn check(setups: &[JobSetup], taken: &TakenFiles) -> Result<(), RunError> {
    for (job, merge) in merges_of(setups)? {
        check_one(job, &merge, taken)?;
    }
    Ok(())
}

/// Writes all merged traces of a run.
pub(crate) fn write_all(setups: &[JobSetup], stops: &dyn Fn() -> u32) -> Result<(), RunError> {
    let mut merges = merges_of(setups)?.into_iter();
    merges.try_for_each(|(job, merge)| write(job, &merge, stops))
}

fn merges_of(setups: &[JobSetup]) -> Result<Vec<(&Job, MergePlan)>, RunError> {
    merges(setups.iter().map(|setup| &*setup.job))
}

/// Returns each merge once, with its first job: clones share theirs.
fn merges<'a>(jobs: impl Iterator<Item = &'a Job>) -> Result<Vec<(&'a Job, MergePlan)>, RunError> {
    let mut merges: Vec<(&Job, MergePlan)> = Vec::new();
    for job in jobs {
        let Some(merge) = MergePlan::of_job(job)? else {
            continue;
        };
        match merges
            .iter()
            .find(|(_, other)| other.output == merge.output)
        {
            None => merges.push((job, merge)),
            Some((_, other)) if *other == merge => {}
            Some(_) => {
                let message = format!("{}: two jobs merge different traces into it", merge.output);
                return Err(refused(
                    job,
                    message,
                    "name a file of its own in each section",
                ));
            }
        }
    }
    Ok(merges)
}

fn check_one(job: &Job, merge: &MergePlan, taken: &TakenFiles) -> Result<(), RunError> {
    let output = Path::new(&merge.output);
    if merge
        .traces()
        .any(|trace| output_file::is_same_file(Path::new(trace), output))
    {
        let message = format!("{}: one of the traces is in this file", merge.output);
        return Err(refused(job, message, "name another file"));
    }
    if let Some(message) = taken.conflict(&merge.output) {
        return Err(refused(job, message, "name another file"));
    }
    output_file::check(output).map_err(|error| not_written(job, merge, &error))
}

/// Writes one merged trace beside its name, and renames it.
fn write(job: &Job, merge: &MergePlan, stops: &dyn Fn() -> u32) -> Result<(), RunError> {
    let unwritten = |error: &dyn std::error::Error| not_written(job, merge, error);
    let of_trace = |error: io::Error| {
        let error = ReplayError::of(&merge.output, error);
        let problem = RunProblem::new(ProblemKind::ReplayLog, error.to_string());
        RunError::from(problem.hint(error.hint()).at(job, "read_iolog"))
    };
    let is_stopped = || stops() > 0;
    let interrupted = || {
        let message = format!("interrupted while merging into {}", merge.output);
        RunError::from(RunProblem::new(ProblemKind::LayoutInterrupted, message))
    };
    let failed = |error: HostError| match error {
        HostError::NoReader => interrupted(),
        error => unwritten(&error),
    };
    let mut stream = merge.stream().map_err(of_trace)?;
    let output = Output::create(Path::new(&merge.output), &is_stopped);
    let mut output = output.map_err(failed)?;
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        if is_stopped() {
            return Err(interrupted());
        }
        let count = stream.read(&mut piece).map_err(of_trace)?;
        if count == 0 {
            break;
        }
        let written = output.write_all(&piece[..count], &is_stopped);
        written.map_err(failed)?;
    }
    output.finish().map_err(|error| unwritten(&error))
}

/// Destination of a merged trace.
enum Output {
    /// A file, put in place when it is complete.
    File(OutputFile),
    /// A pipe or a device, whose reader is waited for until a stop request.
    Stream(OutputStream),
}

impl Output {
    fn create(path: &Path, stop: &dyn Fn() -> bool) -> Result<Self, HostError> {
        Ok(match Destination::of(path)? {
            Destination::Stream => Self::Stream(OutputStream::open(path, stop)?),
            _ => Self::File(OutputFile::create(path, &Stop::never())?),
        })
    }

    fn write_all(&mut self, bytes: &[u8], stop: &dyn Fn() -> bool) -> Result<(), HostError> {
        match self {
            Self::File(file) => Ok(file.write_all(bytes)?),
            Self::Stream(stream) => stream.write_all(bytes, stop),
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::File(file) => file.finish(),
            Self::Stream(_) => Ok(()),
        }
    }
}

fn not_written(job: &Job, merge: &MergePlan, error: &dyn std::error::Error) -> RunError {
    let message = format!("cannot write the merged trace {}: {error}", merge.output);
    let problem = RunProblem::new(ProblemKind::LogNotWritable, message);
    let hint = "name a file in a directory that has space and can be written to";
    problem.hint(hint).at(job, "merge_blktrace_file").into()
}

fn refused(job: &Job, message: String, hint: &'static str) -> RunError {
    let problem = RunProblem::new(ProblemKind::Contradiction, message).hint(hint);
    problem.at(job, "merge_blktrace_file").into()
}

/// Bytes per write.
const PIECE_BYTES: usize = 1 << 18;

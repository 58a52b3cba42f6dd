//! Checks that a job asks its engine only for what the engine does.

use std::fs;
use std::path::Path;

use fathom_core::{NameWork, OptionEffect, Storage};
use fathom_host::target_kind::TargetKind;
use fathom_job::{Job, Options, Verify};

use crate::error::RunProblem;
use crate::problem_kind::ProblemKind;
use crate::translate::FileSetup;
use crate::translate::files;
use crate::translate::pattern::{bounds, excess, sized};

/// Returns the problems of a job with its engine, each with the option that causes it.
pub(super) fn check(job: &Job) -> Vec<(&'static str, RunProblem)> {
    let options = &job.options;
    let problems = [directions(options), verify(options), missing_file(options)];
    let names = options.engine.name_work();
    let on_names = names.map_or([const { None }; 3], |names| {
        [repeats(options, names), syncs(options), sizes(options)]
    });
    problems.into_iter().chain(on_names).flatten().collect()
}

type Found = Option<(&'static str, RunProblem)>;

fn problem(options: &Options, what: &str) -> RunProblem {
    let message = format!("engine `{}` {what}", options.engine.name);
    RunProblem::new(ProblemKind::EngineCannot, message)
}

/// Refuses directions that the engine does not perform.
fn directions(options: &Options) -> Found {
    let excess = excess(options, options.engine.directions)?;
    let problem = problem(
        options,
        &format!("performs no {}s", excess.direction.name()),
    );
    Some((excess.option, problem.hint(excess.hint)))
}

/// Refuses `verify` where the engine changes files and moves no data.
fn verify(options: &Options) -> Found {
    let moves = options.moves_data() || options.engine.storage == Storage::None;
    (options.verify != Verify::None && !moves).then(|| {
        let problem = problem(options, "moves no data that could be verified");
        ("verify", problem.hint("remove `verify`"))
    })
}

/// Refuses a job without the file that its engine writes.
fn missing_file(options: &Options) -> Found {
    let mut needed = options.engine.options.iter();
    let needed = needed.find(|option| option.effect == Some(OptionEffect::WrittenFile))?;
    files::missing_name(options, needed).map(|problem| ("ioengine", problem))
}

/// Refuses a second pass over names on which a second op fails.
fn repeats(options: &Options, names: NameWork) -> Found {
    let created_again = !names.laid_out && options.files.unlink_each_loop;
    let option = match (options.time_based, options.loops > 1) {
        (true, _) => "time_based",
        (false, true) => "loops",
        (false, false) => return None,
    };
    (names.once && !created_again).then(|| {
        let problem = problem(
            options,
            "performs one op on each name, and can make one pass",
        );
        let hint = format!("remove `{option}`, and raise `nrfiles` for a longer run");
        (option, problem.hint(hint))
    })
}

/// Refuses syncs of files that are never open.
fn syncs(options: &Options) -> Found {
    let given = [
        ("fsync", options.fsync > 0),
        ("fdatasync", options.fdatasync > 0),
        ("sync_file_range", options.files.sync_range.is_some()),
        ("end_fsync", options.end_fsync),
        ("fsync_on_close", options.fsync_on_close),
        ("end_syncfs", options.files.end_syncfs),
    ];
    let (option, _) = given.into_iter().find(|(_, given)| *given)?;
    let problem = problem(options, "opens no file that could be synced");
    Some((option, problem.hint(format!("remove `{option}`"))))
}

/// Refuses several op sizes, which would not be those of anything.
fn sizes(options: &Options) -> Found {
    let mut all = sized(options).flat_map(|direction| <[u64; 2]>::from(bounds(options, direction)));
    let first = all.next()?;
    all.any(|size| size != first).then(|| {
        let problem = problem(options, "performs one op per file, whatever its length");
        ("bs", problem.hint("give one `bs`"))
    })
}

/// Returns a problem if an engine that works on names would work on something else than it is for.
pub(super) fn name_target(names: NameWork, file: &FileSetup, changes: bool) -> Option<RunProblem> {
    let name = &file.path;
    let is_link = fs::symlink_metadata(Path::new(name)).is_ok_and(|found| found.is_symlink());
    if changes && is_link {
        let message = format!("{name} is a link, and the job would change the link itself");
        let problem = RunProblem::new(ProblemKind::NotAFile, message);
        return Some(problem.hint("name the link's target"));
    }
    match (file.found, names.directories) {
        (TargetKind::Missing | TargetKind::Directory, true)
        | (TargetKind::Missing | TargetKind::Regular(_), false) => None,
        (_, true) => {
            let message = format!("{name} is not a directory");
            let problem = RunProblem::new(ProblemKind::NotADirectory, message);
            Some(problem.hint("name directories, or use the engine for files"))
        }
        (TargetKind::Directory, false) => {
            let message = format!("{name} is a directory");
            let problem = RunProblem::new(ProblemKind::IsADirectory, message);
            Some(problem.hint("name files, or use the engine for directories"))
        }
        (TargetKind::Block { .. } | TargetKind::Stream, false) if changes => {
            let message = format!("{name} is not a regular file");
            let problem = RunProblem::new(ProblemKind::NotAFile, message);
            Some(problem.hint("name regular files"))
        }
        (TargetKind::Block { .. } | TargetKind::Stream, false) => None,
    }
}

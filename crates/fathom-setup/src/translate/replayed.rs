//! Jobs that replay a log: its survey decides what the pattern options decide for others.

use std::collections::HashMap;
use std::sync::Arc;

use fathom_core::{Direction, Nanos, PerDirection, Storage};
use fathom_host::target_kind::{FileSystemProbe, TargetKind};
use fathom_iolog::{Changes, LogFileName};
use fathom_job::{
    BlockSize, FadviseHint, Job, Options, Size, Verify, ZoneMode, ZoneOptions, only_file,
};
use fathom_workload::{FileRange, Mix, PatternConfig, ReplayConfig, SizeChoice, WorkerConfig};

use super::notes::Warnings;
use super::sizes::ResolvedSizes;
use super::{FileSetup, Planned};
use crate::error::RunProblem;
use crate::groups::JobPlace;
use crate::merge::MergePlan;
use crate::plan_warning::PlanWarningKind;
use crate::problem_kind::ProblemKind;
use crate::replay::{ReplayError, ReplayPlan};

/// Surveyed logs, each read once however many clones replay it.
#[derive(Default)]
pub(super) struct Surveys(HashMap<String, Arc<ReplayPlan>>);

/// Job as its log makes it, and the replay; as it was, without a replay, if it has no log.
type Replayed = (Arc<Job>, Option<Arc<ReplayPlan>>);

/// Surveys the log of a clone, if it has one.
pub(super) fn replayed(
    job: &Arc<Job>,
    place: JobPlace,
    planned: &mut Planned<'_>,
    warnings: &mut Warnings<'_>,
) -> Result<Replayed, RunProblem> {
    let options = &job.options;
    let logs = &options.replay.logs;
    // Cannot fail: there are fewer than 2³² names in a line.
    let count = u32::try_from(logs.len()).unwrap_or(u32::MAX);
    let merge = MergePlan::of_job(job)?;
    if count == 0 {
        return Ok((Arc::clone(job), None));
    }
    if options.verify != Verify::None || options.verification.only {
        let message = "a replay cannot be verified: its log has no data";
        let problem = RunProblem::new(ProblemKind::Contradiction, message);
        let option = match options.verify {
            Verify::None => "verify_only",
            _ => "verify",
        };
        let hint = format!("remove `{option}`");
        return Err(problem.hint(hint).at(job, option));
    }
    let log = &logs[(place.clone % count) as usize];
    let changes = changes(job);
    let key = format!(
        "{changes:?} {merge:?} {}",
        merge.as_ref().map_or(log.as_str(), |_| "")
    );
    let plan = match planned.surveys.0.get(&key) {
        Some(plan) => Arc::clone(plan),
        None => {
            let plan = survey(job, log, merge, planned.probe)?;
            let plan = Arc::new(plan);
            planned.surveys.0.insert(key, Arc::clone(&plan));
            plan
        }
    };
    warn(job, &plan, warnings);
    Ok((Arc::new(as_replayed(job, &plan)), Some(plan)))
}

/// Returns the files and devices that the replays of a job write or trim, as `probe` finds them.
/// Costs the reading of its logs.
///
/// # Errors
/// A log cannot be read or merged, or names a device that is not there.
pub fn replayed_targets(job: &Job, probe: &dyn FileSystemProbe) -> Result<Vec<String>, RunProblem> {
    let merge = MergePlan::of_job(job)?;
    let logs = match merge {
        Some(_) => job.options.replay.logs.get(..1).unwrap_or_default(),
        None => &job.options.replay.logs,
    };
    let mut targets = Vec::new();
    for log in logs {
        let plan = survey(job, log, merge.clone(), probe)?;
        for (name, file) in plan.files() {
            if file.used.write || file.used.trim {
                targets.push(path(job, name, probe)?);
            }
        }
    }
    Ok(targets)
}

/// Surveys a log, or the merge of all.
fn survey(
    job: &Job,
    log: &str,
    merge: Option<MergePlan>,
    probe: &dyn FileSystemProbe,
) -> Result<ReplayPlan, RunProblem> {
    let changes = changes(job);
    let open = |path: &str| probe.open_log(path);
    let surveyed = match merge {
        Some(merge) => ReplayPlan::survey_merged(merge, changes, open),
        None => match open(log) {
            Ok(reader) => ReplayPlan::survey(log, changes, reader),
            Err(error) => Err(ReplayError::Io(log.to_owned(), error)),
        },
    };
    surveyed.map_err(|error| {
        RunProblem::new(ProblemKind::ReplayLog, error.to_string())
            .hint(error.hint())
            .at(job, "read_iolog")
    })
}

fn changes(job: &Job) -> Changes {
    let options = &job.options.replay;
    Changes {
        skip: options.skip,
        skip_syncs: options.skip_syncs,
        scale: options.scale.max(1),
        align: options.align,
        redirect: redirected(job).is_some(),
        speed_percent: options.speed.max(1),
    }
}

/// Returns the job with the facts of the log in place of the options that a replay ignores.
fn as_replayed(job: &Job, plan: &ReplayPlan) -> Job {
    let mut job = job.clone();
    let given_depth = job.written("iodepth").is_some();
    let options = &mut job.options;
    options.replay.found = Some(PerDirection::from_fn(|direction| plan.uses(direction)));
    for direction in Direction::ALL {
        if let Some((min, max)) = plan.survey.sizes[direction] {
            options.block_sizes[direction] = BlockSize::Range {
                min: min.into(),
                max: max.into(),
            };
        }
    }
    if plan.notes.depth > 0 && !given_depth {
        // As fio: a trace has as many ops in flight as when it was recorded.
        options.iodepth = plan.notes.depth.min(DEPTH_MAX);
    }
    ignore(options);
    job
}

/// Resets the options that a replay ignores, as fio does.
fn ignore(options: &mut Options) {
    (options.size, options.io_size, options.filesize) = (None, None, None);
    (options.offset, options.offset_increment) = (Size::Bytes(0), Size::Bytes(0));
    (options.number_ios, options.loops) = (None, 1);
    (options.time_based, options.fill_device) = (false, false);
    (options.random, options.rw_suffix) = (false, None);
    (options.bs_is_seq_rand, options.bs_unaligned) = (false, false);
    if options.zones.mode != ZoneMode::Zbd {
        options.zones = ZoneOptions::default();
    }
    options.zones.skip = Size::Bytes(0);
    options.rate = PerDirection::all(None);
    options.rate_iops = PerDirection::all(None);
    (options.thinktime, options.thinkcycles) = (Nanos::ZERO, 0);
    (options.fsync, options.fdatasync) = (0, 0);
    (options.end_fsync, options.fsync_on_close) = (false, false);
    let files = &mut options.files;
    (files.sync_range, files.opendir) = (None, None);
    (files.end_syncfs, files.unlink_each_loop, files.append) = (false, false, false);
    if files.fadvise_hint == FadviseHint::ByOrder {
        // The order of a log is neither sequential nor random.
        files.fadvise_hint = FadviseHint::None;
    }
}

/// Warns of what the log or its replay lacks.
fn warn(job: &Job, plan: &ReplayPlan, warnings: &mut Warnings<'_>) {
    let ignored = IGNORED.iter().filter(|name| job.written(name).is_some());
    let ignored: Vec<_> = ignored.map(|name| format!("`{name}`")).collect();
    if !ignored.is_empty() {
        warnings.add(
            PlanWarningKind::IgnoredByReplay,
            format!("without effect in a replay: {}", ignored.join(", ")),
            "remove them",
        );
    }
    note_log(
        &plan.log,
        plan.notes.times_back,
        plan.notes.truncated_at,
        warnings,
    );
    for note in &plan.merge_notes {
        note_log(&note.log, note.times_back, note.truncated_at, warnings);
    }
}

/// Warns of the oddities of a log.
fn note_log(log: &str, times_back: u64, truncated_at: Option<u64>, warnings: &mut Warnings<'_>) {
    if times_back > 0 {
        let count = times_back;
        warnings.add(
            PlanWarningKind::ReplayLog,
            format!("{log}: times that go back: {count}; each such op is due with the one before"),
            "sort the log by time",
        );
    }
    if let Some(byte) = truncated_at {
        warnings.add(
            PlanWarningKind::ReplayLog,
            format!("{log}: truncated: the record that ends at byte {byte} or later is cut off"),
            "record the trace again if its end matters",
        );
    }
}

/// Returns the files that the replay opens, with the sizes that the log needs.
pub(super) fn files(
    job: &Job,
    plan: &ReplayPlan,
    planned: &Planned<'_>,
) -> Result<(Vec<FileSetup>, ResolvedSizes), RunProblem> {
    let files = plan.files().map(|(name, survey)| {
        let path = path(job, name, planned.probe)?;
        let found = match job.options.engine.storage {
            Storage::None | Storage::Peer => TargetKind::Missing,
            Storage::Remote | Storage::Device => planned.remote(job, "read_iolog", &path)?,
            Storage::LocalFiles => planned
                .kind(&path)
                .map_err(|problem| problem.at(job, "read_iolog"))?,
        };
        if let TargetKind::Block { bytes, .. } = found
            && survey.end > bytes
        {
            let message = format!(
                "{}: an op ends at byte {}, beyond the {bytes} B of {path}",
                plan.log, survey.end
            );
            let problem = RunProblem::new(ProblemKind::ReplayLog, message);
            let hint = "scale the offsets down with `replay_scale` and `replay_align`";
            return Err(problem.hint(hint).at(job, "read_iolog"));
        }
        Ok(FileSetup {
            path,
            found,
            bytes: survey.end,
            offset: 0,
            length: survey.end.max(1),
            used: Some(survey.used),
        })
    });
    let sizes = ResolvedSizes {
        bytes_per_pass: WorkerConfig::WHOLE_PATTERN,
        loops: 1,
        ..ResolvedSizes::default()
    };
    Ok((files.collect::<Result<_, _>>()?, sizes))
}

/// Returns the file that takes all ops, whichever the log names, if there is one: that of
/// `replay_redirect`, or else the one that an option of the engine names, such as `uri`.
fn redirected(job: &Job) -> Option<&str> {
    let redirect = job.options.replay.redirect.as_deref();
    redirect.or_else(|| only_file(job))
}

/// Returns the path of a file in the log.
fn path(job: &Job, name: &LogFileName, probe: &dyn FileSystemProbe) -> Result<String, RunProblem> {
    if let Some(redirected) = redirected(job) {
        return Ok(redirected.to_owned());
    }
    match name {
        LogFileName::Path(path) => Ok(path.clone()),
        &LogFileName::Device { major, minor } => {
            probe.block_device(major, minor).ok_or_else(|| {
                let message = format!("no block device {major}:{minor}, as the trace names it");
                RunProblem::new(ProblemKind::NoSuchDevice, message)
                    .hint("name the device or file to use: `replay_redirect=`")
                    .at(job, "read_iolog")
            })
        }
    }
}

/// Returns a pattern that only names the files: the ops are those of the log.
pub(super) fn pattern(pattern: PatternConfig, files: &[FileSetup]) -> PatternConfig {
    let files = files.iter().map(|file| FileRange {
        offset: 0,
        length: file.length,
        file: file.length,
    });
    PatternConfig {
        mix: Mix::Read,
        random: false,
        files: files.collect(),
        sizes: PerDirection::all(SizeChoice::Fixed(1)),
        align: PerDirection::all(1),
        ..pattern
    }
}

/// Returns the worker's part of a replay.
pub(super) fn config(options: &Options) -> Option<ReplayConfig> {
    Some(ReplayConfig {
        used: options.replay.found?,
        timed: !options.replay.no_stall,
    })
}

/// Largest depth taken from a trace: more than any device's queue.
const DEPTH_MAX: u32 = 4096;

/// Options that change what a job does, but not what a replay does.
const IGNORED: [&str; 14] = [
    "loops",
    "time_based",
    "number_ios",
    "io_size",
    "offset",
    "filename",
    "rate",
    "rate_iops",
    "thinktime",
    "fsync",
    "fdatasync",
    "sync_file_range",
    "end_fsync",
    "write_iolog",
];

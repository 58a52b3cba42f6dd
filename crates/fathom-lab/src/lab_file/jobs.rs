//! Trial of the jobs: the job language reads what the runs will be given.

use std::collections::BTreeSet;

use fathom_job::{Diagnostic, Job, Origin, Plan, Severity, file_names};
use fathom_toml::{Fields, TomlProblem, TomlProblemKind};
use fathom_virtual::refuse_unmodelled;

use super::machine::model_of;
use super::measured::MeasuredCheck;
use super::reader::Reader;
use super::told::Told;
use super::trials::{Trial, Trials, each_value};
use crate::lab_plan::{
    JobFile, JobText, LabPlan, LineOrigin, MachineSource, Setting, Subject, Target, changes_files,
    has_comment, is_fio, job_plan, job_with, may_replay_changes, peak_with,
};

/// Notes everything that the job language refuses, or the runs' modelled machine, and metrics that
/// no run can have, at their places in the lab file.
pub(super) fn check(reader: &Reader<'_>, top: &Fields<'_>, plan: &LabPlan) {
    if let Subject::Peak(of_lab) = &plan.subject {
        return check_peak(reader, plan, of_lab);
    }
    let mut measured = MeasuredCheck::new(top);
    let trials = Trials::of(plan);
    if check_runs(reader, plan, &trials, |trial, jobs| {
        measured.see(trial, jobs)
    }) == 0
    {
        measured.refuse(reader, trials.are_all);
    }
}

/// Notes what the modelled machine of a rehearsal cannot do of the jobs.
pub(super) fn check_rehearsed(reader: &Reader<'_>, plan: &LabPlan) {
    check_runs(reader, plan, &Trials::of(plan), |_, _| {});
}

/// Notes the problems of the runs, shows `see` the jobs of each, and returns the number of
/// problems.
fn check_runs(
    reader: &Reader<'_>,
    plan: &LabPlan,
    trials: &Trials<'_>,
    mut see: impl FnMut(Trial<'_>, &Plan),
) -> usize {
    let mut told = Told::new(reader.source);
    for &trial in &trials.runs {
        let Some(job) = trial.job(plan) else {
            break;
        };
        let file = file_of(job, trial);
        let run = TriedRun {
            reader,
            job,
            file: &file,
        };
        let problems = match job_plan(reader.environment, &job.file, &file.text) {
            Ok(jobs) => {
                see(trial, &jobs);
                match &plan.machine {
                    Some(machine) => run.unmodelled(machine, trial, &jobs),
                    // A modelled machine has no data to lose.
                    None => run.forbidden_devices(plan, &jobs),
                }
            }
            Err(diagnostics) => run.refused(&diagnostics),
        };
        for problem in problems {
            told.note(problem, "");
        }
        if told.is_full() {
            break;
        }
    }
    told.count()
}

/// Notes the first value that fio would cut: it finds comments after it has replaced variables.
pub(super) fn refuse_cut_by_fio(reader: &Reader<'_>, plan: &LabPlan) {
    let names_fio = |one: &Setting| one.target == Target::Run && is_fio(&one.value);
    let is_cut = |one: &Setting| one.target == Target::Job && has_comment(&one.value);
    for cell in &plan.cells {
        for variant in &plan.variants {
            let trial = Trial { cell, variant };
            let Some(job) = trial.job(plan) else {
                return;
            };
            let runs_fio = plan.run.is_fio() || trial.settings().any(names_fio);
            let mut settings = job.settings.iter().chain(trial.settings());
            if let Some(cut) = settings.find(|one| runs_fio && is_cut(one)) {
                let why = format!("fio would cut the value of `{}` at `#` or `;`", cut.key);
                return reader.refuse(&cut.span, why, CUT_BY_FIO);
            }
        }
    }
}

/// Run whose jobs are tried.
struct TriedRun<'a> {
    reader: &'a Reader<'a>,
    job: &'a JobText,
    file: &'a JobFile,
}

impl TriedRun<'_> {
    /// Returns what the job language refuses.
    fn refused(&self, diagnostics: &[Diagnostic]) -> Vec<TomlProblem> {
        let errors = diagnostics.iter();
        let errors = errors.filter(|one| one.severity == Severity::Error);
        let told =
            |error: &Diagnostic| self.problem(&error.origin, &error.message, error.hint.as_deref());
        errors.map(told).collect()
    }

    /// Returns what the run's modelled machine cannot do.
    fn unmodelled(
        &self,
        machine: &MachineSource,
        trial: Trial<'_>,
        jobs: &Plan,
    ) -> Vec<TomlProblem> {
        let model = model_of(self.reader, machine, &trial);
        let refused = model.and_then(|model| refuse_unmodelled(jobs, &model).err());
        let problems = refused.into_iter().flat_map(|refused| refused.problems);
        let told = problems.map(|one| self.problem(&one.origin, &one.message, one.hint.as_deref()));
        told.collect()
    }

    /// Returns the devices that the run may not write.
    fn forbidden_devices(&self, plan: &LabPlan, jobs: &Plan) -> Vec<TomlProblem> {
        let each = jobs.jobs.iter();
        let forbidden = each.flat_map(|job| forbidden(self.reader, plan, job));
        let told = |(origin, device): (Origin, String)| {
            let [message, hint] = no_leave(&device);
            self.problem(&origin, &message, Some(&hint))
        };
        forbidden.map(told).collect()
    }

    fn problem(&self, origin: &Origin, message: &str, hint: Option<&str>) -> TomlProblem {
        TomlProblem {
            kind: TomlProblemKind::BadValue,
            origin: origin_of(self.reader, self.job, self.file, origin),
            message: message.to_owned(),
            hint: hint.unwrap_or_default().to_owned(),
        }
    }
}

/// Returns the job file of one run.
pub(super) fn file_of(job: &JobText, trial: Trial<'_>) -> JobFile {
    let of_job = trial.settings();
    let of_job = of_job.filter(|setting| setting.target == Target::Job);
    let settings: Vec<&Setting> = job.settings.iter().chain(of_job).collect();
    job_with(job, &settings, None)
}

/// Returns the devices that a job writes without leave, each with its place.
///
/// Those are found by their names here; names elsewhere than in `/dev` that lead to a device, and
/// names in logs that are replayed, are found when the lab begins.
fn forbidden(reader: &Reader<'_>, plan: &LabPlan, job: &Job) -> Vec<(Origin, String)> {
    let replay = &job.options.replay;
    let (names, origin) = if replay.replays() {
        let redirect = replay.redirect.iter().filter(|_| may_replay_changes(job));
        (redirect.cloned().collect(), job.place(&["replay_redirect"]))
    } else if changes_files(job) || plan.precondition.is_some() {
        (file_names(job, 0), job.place(&["filename", "rw"]))
    } else {
        return Vec::new();
    };
    let names = names.into_iter();
    let devices = names.filter(|name| needs_leave(reader, plan, name));
    devices.map(|device| (origin.clone(), device)).collect()
}

/// Returns whether this is a device that `writes` does not name, by this name or another one.
fn needs_leave(reader: &Reader<'_>, plan: &LabPlan, name: &str) -> bool {
    let is_device = name.starts_with("/dev/") && !is_in_memory(name);
    let environment = reader.environment;
    let mut writes = plan.writes.iter();
    is_device && !writes.any(|named| environment.is_same_file(named, name))
}

/// Returns the problem that a device would be written, and what to do.
fn no_leave(device: &str) -> [String; 2] {
    [
        format!("`{device}` would be written, and `writes` does not name it"),
        format!("add `writes = [\"{device}\"]` to `[lab]` if its data may be overwritten"),
    ]
}

/// Notes devices that runs of `fathom peak` would write without leave.
fn check_peak(reader: &Reader<'_>, plan: &LabPlan, of_lab: &[Setting]) {
    let mut told = BTreeSet::new();
    for trial in each_value(plan) {
        let settings: Vec<&Setting> = trial.settings().collect();
        let peak = peak_with(of_lab, &settings);
        let target = peak.value("target").filter(|_| peak.writes());
        let Some(device) = target.filter(|target| needs_leave(reader, plan, target)) else {
            continue;
        };
        if told.insert(device.to_owned()) {
            let mut all = of_lab.iter().chain(settings);
            let write = all.find(|one| one.target == Target::Peak && one.key == "write");
            let [why, hint] = no_leave(device);
            reader.refuse(&write.map_or(0..0, |one| one.key_span.clone()), why, hint);
        }
    }
}

/// Remedy for a value that fio would cut.
const CUT_BY_FIO: &str = "name files by other paths, put commands into a script, or run `fathom`";

/// Returns whether a name below `/dev` is not that of a device with data.
fn is_in_memory(name: &str) -> bool {
    name.starts_with("/dev/shm/") || name == "/dev/null" || name == "/dev/zero"
}

/// Returns the place of a problem of a job file in the files that the user wrote.
pub(super) fn origin_of(
    reader: &Reader<'_>,
    job: &JobText,
    file: &JobFile,
    origin: &Origin,
) -> Origin {
    if origin.file != job.file {
        return origin.clone();
    }
    match file.origin_of(origin.line) {
        // The option stands before the value.
        LineOrigin::Setting { key, value } => match origin.column == 1 {
            true => reader.source.origin(&key),
            false => reader.source.origin(&value),
        },
        LineOrigin::File(line) => {
            let (file, line) = job.place_of(line);
            let mut origin = origin.clone();
            origin.file = file.to_owned();
            origin.line = line;
            origin
        }
    }
}

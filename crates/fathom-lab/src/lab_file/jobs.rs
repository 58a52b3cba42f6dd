//! Trial of the jobs: the job language reads what the runs will be given.

use std::collections::BTreeSet;

use fathom_job::{Diagnostic, Job, Origin, Severity, file_names};
use fathom_toml::{TomlProblem, TomlProblemKind};

use super::reader::Reader;
use crate::lab_plan::{
    JobFile, JobText, LabCell, LabPlan, LineOrigin, Setting, Subject, Target, job_plan, job_with,
    writes,
};

/// Notes everything that the job language refuses, at its place in the lab file.
///
/// Each value of each axis is tried once, and each variant, on the first cell: trying all cells
/// would take minutes where there are many, and options that only clash in one are refused by its
/// run.
pub(super) fn check(reader: &Reader<'_>, plan: &LabPlan) {
    let Subject::Job(job) = &plan.subject else {
        return check_peak(reader, plan);
    };
    let mut told = BTreeSet::new();
    let trials = trials(plan).into_iter().map(|settings| (job, settings));
    let of_variants = plan.variants.iter().filter_map(|variant| {
        let settings = plan.cells[0].settings().chain(&variant.settings);
        Some((variant.job.as_ref()?, settings.collect()))
    });
    for (job, settings) in trials.chain(of_variants) {
        for problem in problems(reader, plan, job, &settings) {
            let place = (problem.origin.file.clone(), problem.origin.line);
            if told.insert((place, problem.message.clone())) {
                reader.source.push(problem);
            }
        }
    }
}

/// Returns the settings of cells and variants such that each value is in one of them.
pub(super) fn trials(plan: &LabPlan) -> Vec<Vec<&Setting>> {
    let first = &plan.variants[0];
    let of_cells = cells_to_try(plan).into_iter().map(|cell| (cell, first));
    let of_variants = plan.variants[1..]
        .iter()
        .map(|variant| (&plan.cells[0], variant));
    let both = of_cells.chain(of_variants);
    both.map(|(cell, variant)| cell.settings().chain(&variant.settings).collect())
        .collect()
}

/// Returns cells such that each value of each axis is in one of them.
pub(super) fn cells_to_try(plan: &LabPlan) -> Vec<&LabCell> {
    let mut numbers = BTreeSet::from([0]);
    let mut stride = plan.cells.len();
    for axis in &plan.axes {
        stride /= axis.values.len().max(1);
        numbers.extend((0..axis.values.len()).map(|value| value * stride));
    }
    let cells = numbers.into_iter();
    cells.map(|number| &plan.cells[number]).collect()
}

/// Returns the errors of the job file of one run.
fn problems(
    reader: &Reader<'_>,
    plan: &LabPlan,
    job: &JobText,
    settings: &[&Setting],
) -> Vec<TomlProblem> {
    let settings = settings.iter().copied();
    let of_job = settings.filter(|setting| setting.target == Target::Job);
    let settings: Vec<&Setting> = job.settings.iter().chain(of_job).collect();
    let file = job_with(job, &settings, None);
    let problem = |origin: &Origin, message: String, hint: String| TomlProblem {
        kind: TomlProblemKind::BadValue,
        origin: origin_of(reader, job, &file, origin),
        message,
        hint,
    };
    let is_error = |one: &&Diagnostic| one.severity == Severity::Error;
    match job_plan(reader.environment, &job.file, &file.text) {
        Err(diagnostics) => {
            let errors = diagnostics.iter().filter(is_error);
            let told = |error: &Diagnostic| {
                let hint = error.hint.clone().unwrap_or_default();
                problem(&error.origin, error.message.clone(), hint)
            };
            errors.map(told).collect()
        }
        // A modelled machine has no data to lose.
        Ok(_) if plan.machine.is_some() => Vec::new(),
        Ok(jobs) => {
            let forbidden = jobs.jobs.iter().flat_map(|job| forbidden(plan, job));
            let told = |(origin, device): (Origin, String)| {
                let [why, hint] = no_leave(&device);
                problem(&origin, why, hint)
            };
            forbidden.map(told).collect()
        }
    }
}

/// Returns the devices that a job writes without leave, each with its place.
///
/// Names that lead to a device by a link are found when the lab begins: reading looks at no device.
fn forbidden(plan: &LabPlan, job: &Job) -> Vec<(Origin, String)> {
    let is_written = writes(job) && job.options.moves_data();
    if !is_written && plan.precondition.is_none() {
        return Vec::new();
    }
    let names = file_names(job, 0).into_iter();
    let devices = names.filter(|name| needs_leave(plan, name));
    let origin = job.place(&["filename", "rw"]);
    devices.map(|device| (origin.clone(), device)).collect()
}

/// Returns whether this is a device that `writes` does not name.
fn needs_leave(plan: &LabPlan, name: &str) -> bool {
    let is_device = name.starts_with("/dev/") && !is_in_memory(name);
    is_device && !plan.writes.iter().any(|named| named == name)
}

/// Returns the problem that a device would be written, and what to do.
fn no_leave(device: &str) -> [String; 2] {
    [
        format!("`{device}` would be written, and `writes` does not name it"),
        format!("add `writes = [\"{device}\"]` to `[lab]` if its data may go"),
    ]
}

/// Notes devices that runs of `fathom peak` would write without leave.
fn check_peak(reader: &Reader<'_>, plan: &LabPlan) {
    let mut told = BTreeSet::new();
    for settings in trials(plan) {
        let peak = plan.run_with(None, &settings, 0).peak.unwrap_or_default();
        let target = peak.value("target").filter(|_| peak.writes());
        let Some(device) = target.filter(|target| needs_leave(plan, target)) else {
            continue;
        };
        if told.insert(device.to_owned()) {
            let of_lab = match &plan.subject {
                Subject::Peak(settings) => settings.as_slice(),
                Subject::Job(_) => &[],
            };
            let mut all = of_lab.iter().chain(settings);
            let write = all.find(|one| one.target == Target::Peak && one.key == "write");
            let [why, hint] = no_leave(device);
            reader.refuse(&write.map_or(0..0, |one| one.key_span.clone()), why, hint);
        }
    }
}

/// Returns whether a name below `/dev` is no device with data.
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
            let mut origin = origin.clone();
            origin.line = line;
            origin
        }
    }
}

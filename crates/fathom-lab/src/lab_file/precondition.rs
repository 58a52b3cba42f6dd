//! `[precondition]`: the job that writes each device once, and the devices and files it writes.

use std::collections::BTreeMap;

use fathom_core::Storage;
use fathom_job::{Diagnostic, Job, Severity, Size, file_names};
use fathom_toml::{Fields, TomlProblem, TomlProblemKind};

use super::jobs::origin_of;
use super::reader::Reader;
use super::settings;
use crate::lab_plan::{
    LabPlan, Precondition, PreconditionFile, Setting, Subject, Target, job_plan, job_with, writes,
};

/// Reads the options of the job, and `times_capacity`.
pub(super) fn read(reader: &Reader<'_>, top: &Fields<'_>) -> Option<Precondition> {
    let fields = top.table("precondition", true)?;
    let times_capacity = fields.count("times_capacity", 1..=100, Some(1));
    let entries = fields.entries().into_iter();
    let settings: Vec<Setting> = entries
        .filter_map(|entry| {
            settings::setting(
                reader,
                &Target::Job,
                entry.key,
                &entry.key_span,
                &entry.value,
            )
        })
        .collect();
    for setting in &settings {
        if NOT_WHOLE.contains(&setting.key.as_str()) {
            let why = format!(
                "`{}` cannot be set here: each device is written whole",
                setting.key
            );
            let hint = "remove it; `times_capacity` says how often";
            reader.refuse(&setting.key_span, why, hint);
        }
    }
    Some(Precondition {
        settings,
        times_capacity,
        files: Vec::new(),
    })
}

/// Tries the job, and finds everything that it has to write.
pub(super) fn check(reader: &Reader<'_>, top: &Fields<'_>, plan: &mut LabPlan) {
    let Some(precondition) = &plan.precondition else {
        return;
    };
    let span = top.value("precondition").map_or(0..0, |value| value.span());
    if let Subject::Peak(_) = plan.subject {
        let hint = "describe the load as a `[job]`";
        return reader.refuse(&span, "`[precondition]` prepares the files of jobs", hint);
    }
    if plan.machine.is_some() {
        return;
    }
    try_job(reader, precondition, &span);
    if plan.cells.len() * plan.variants.len() > RUNS_MAX {
        let why = format!("`[precondition]` looks for files in at most {RUNS_MAX} cells");
        return reader.refuse(&span, why, "shorten the axes");
    }
    let mut files = BTreeMap::new();
    for cell in 0..plan.cells.len() {
        for variant in 0..plan.variants.len() {
            let text = plan.run_of(cell, variant, 0).job.unwrap_or_default();
            // What the job language refuses is reported where the jobs are tried.
            let jobs = job_plan(reader.environment, "the run's job", &text).unwrap_or_default();
            for job in &jobs.jobs {
                if let Err(why) = add_files(job, &mut files) {
                    let hint = "remove `[precondition]`, or name a file or device in the job";
                    return reader.refuse(&span, why, hint);
                }
            }
        }
    }
    if let Some(precondition) = &mut plan.precondition {
        precondition.files = files.into_values().collect();
    }
}

/// Notes what the job language refuses of the job, and a job that writes nothing.
fn try_job(reader: &Reader<'_>, precondition: &Precondition, span: &std::ops::Range<usize>) {
    let job = Precondition::job_text("device", Some(1 << 30));
    let settings: Vec<&Setting> = precondition.settings.iter().collect();
    let file = job_with(&job, &settings, None);
    match job_plan(reader.environment, &job.file, &file.text) {
        Err(found) => {
            let is_error = |one: &&Diagnostic| one.severity == Severity::Error;
            for error in found.iter().filter(is_error) {
                reader.source.push(TomlProblem {
                    kind: TomlProblemKind::BadValue,
                    origin: origin_of(reader, &job, &file, &error.origin),
                    message: error.message.clone(),
                    hint: error.hint.clone().unwrap_or_default(),
                });
            }
        }
        Ok(jobs) if jobs.jobs.iter().all(|job| !writes(job)) => {
            let why = "`precondition` writes nothing";
            reader.refuse(span, why, "set `rw = \"write\"`");
        }
        Ok(_) => {}
    }
}

/// Adds the files of a job with their sizes.
fn add_files(job: &Job, files: &mut BTreeMap<String, PreconditionFile>) -> Result<(), String> {
    let engine = job.options.engine;
    if engine.storage != Storage::LocalFiles {
        return Err(format!(
            "engine `{}` has no file or device of this machine to write",
            engine.name
        ));
    }
    let count = u64::from(job.options.numjobs) * u64::from(job.options.nrfiles);
    if count > FILES_MAX && job.options.filename.is_none() {
        return Err(format!("more than {FILES_MAX} files would be written"));
    }
    for clone in 0..job.options.numjobs {
        // All clones share the files that have names; the last one may reach the farthest.
        if job.options.filename.is_some() && (1..job.options.numjobs - 1).contains(&clone) {
            continue;
        }
        for name in file_names(job, clone) {
            let file = files
                .entry(name)
                .or_insert_with_key(|name| PreconditionFile {
                    name: name.clone(),
                    bytes: None,
                    is_written: false,
                });
            file.bytes = file.bytes.max(bytes_of(job, clone));
            file.is_written |= writes(job);
        }
    }
    Ok(())
}

/// Returns the size that a job gives its files; `None` if it takes them as they are.
fn bytes_of(job: &Job, clone: u32) -> Option<u64> {
    let options = &job.options;
    let bytes = |size: &Size| match size {
        Size::Bytes(bytes) => Some(*bytes),
        _ => None,
    };
    let offset = bytes(&options.offset)?;
    let step = bytes(&options.offset_increment)?;
    let size = match options.filesize {
        Some((_, largest)) => largest,
        None => bytes(options.size.as_ref()?)?.div_ceil(u64::from(options.nrfiles.max(1))),
    };
    let begin = offset.saturating_add(step.saturating_mul(clone.into()));
    Some(begin.saturating_add(size))
}

/// Most files: each takes a process of its own.
const FILES_MAX: u64 = 10_000;

/// Most combinations of cells and variants whose jobs are read, which takes a second.
const RUNS_MAX: usize = 4096;

/// Options with which a device would not be written whole, or not so often as asked for.
const NOT_WHOLE: [&str; 14] = [
    "filename",
    "directory",
    "size",
    "filesize",
    "nrfiles",
    "offset",
    "offset_increment",
    "loops",
    "numjobs",
    "runtime",
    "time_based",
    "io_size",
    "number_ios",
    "norandommap",
];

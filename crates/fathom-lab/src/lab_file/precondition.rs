//! `[precondition]`: the job that writes each device once, and the devices and files it writes.

use std::collections::BTreeMap;

use fathom_core::Storage;
use fathom_job::{
    BlockSize, Diagnostic, Job, RandomDistribution, ReadWrite, Severity, Size, ZoneMode, file_names,
};
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
        block_bytes: 1,
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
    let block_bytes = try_job(reader, precondition, &span);
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
        precondition.block_bytes = block_bytes.unwrap_or(1);
        precondition.files = files.into_values().collect();
        // A device has a size of its own, whatever the jobs use of it.
        let mut files = precondition.files.iter();
        let rest = files.find_map(|file| {
            let bytes = file.bytes.filter(|_| !file.name.starts_with("/dev/"))?;
            precondition.rest_of(&file.name, bytes)
        });
        let mut files = precondition.files.iter();
        let other = files.find_map(|file| {
            let job = precondition.job(&file.name, file.bytes);
            Precondition::other_file_of(reader.environment, &job, &file.name)
        });
        if let Some(why) = other {
            reader.refuse(&span, why, RENAME);
        }
        if let Some(why) = rest {
            let hint = "set a `bs` that divides the size of each file";
            reader.refuse(&span_of(precondition, &BLOCK_SIZES, &span), why, hint);
        }
    }
}

/// Notes what the job language refuses of the job, and a job that does not write all blocks.
/// Returns the size of its blocks.
fn try_job(
    reader: &Reader<'_>,
    precondition: &Precondition,
    span: &std::ops::Range<usize>,
) -> Option<u64> {
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
            None
        }
        Ok(jobs) if jobs.jobs.iter().all(|job| !writes(job)) => {
            let why = "`precondition` writes nothing";
            reader.refuse(span, why, "set `rw = \"write\"`");
            None
        }
        Ok(jobs) => {
            let job = jobs.jobs.first()?;
            if let Err((keys, why, hint)) = check_whole(job) {
                reader.refuse(&span_of(precondition, keys, span), why, hint);
            }
            match job.options.block_sizes.write {
                BlockSize::Fixed(bytes) => Some(bytes),
                _ => None,
            }
        }
    }
}

/// Options that a refusal is about, its reason and its remedy.
type NotWhole = (&'static [&'static str], String, &'static str);

/// Checks that a job writes each block of a device once.
fn check_whole(job: &Job) -> Result<(), NotWhole> {
    let options = &job.options;
    let engine = options.engine;
    let is_here = matches!(engine.storage, Storage::LocalFiles | Storage::Device);
    if !is_here || !options.moves_data() {
        let why = format!(
            "engine `{}` writes no device or file of this machine",
            engine.name
        );
        return Err((
            &["ioengine"],
            why,
            "name another one, as `ioengine = \"io_uring\"`",
        ));
    }
    if options.rw != ReadWrite::Write || options.rw_suffix.is_some() {
        let why = "each device is written whole: `rw` must be `write` or `randwrite`".to_owned();
        return Err((&["rw"], why, "set `rw = \"write\"`"));
    }
    let is_uniform = options.random_distribution == RandomDistribution::Random
        && options.access_zones.is_none()
        && options.random_sequence.is_none();
    if options.random && !is_uniform {
        let why = "each device is written whole: this distribution leaves blocks out".to_owned();
        return Err((&["random_distribution"], why, "remove it"));
    }
    if !matches!(options.block_sizes.write, BlockSize::Fixed(_)) {
        let why = "each device is written whole: blocks must be of one size".to_owned();
        return Err((&BLOCK_SIZES, why, "set `bs` to one size"));
    }
    if options.zones.mode == ZoneMode::Strided {
        let why = "each device is written whole: strided zones leave gaps".to_owned();
        return Err((&["zonemode", "zonesize"], why, "remove them"));
    }
    Ok(())
}

/// Returns the place of the first of these options that the table sets, else that of the table.
fn span_of(
    precondition: &Precondition,
    keys: &[&str],
    table: &std::ops::Range<usize>,
) -> std::ops::Range<usize> {
    let mut settings = precondition.settings.iter();
    let found = settings.find(|setting| keys.contains(&setting.key.as_str()));
    found.map_or_else(|| table.clone(), |setting| setting.key_span.clone())
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

/// Remedy for a name that no job file can have.
const RENAME: &str = "name the file by another path, without `$ncpus` and its like";

/// Most files: each takes a process of its own.
const FILES_MAX: u64 = 10_000;

/// Most combinations of cells and variants whose jobs are read, which takes a second.
const RUNS_MAX: usize = 4096;

/// Options that set the size of blocks.
const BLOCK_SIZES: [&str; 3] = ["bs", "bsrange", "bssplit"];

/// Options with which a device would not be written whole, or not so often as asked for, whatever
/// their values. [`check_whole`] judges those of which some values do no harm.
const NOT_WHOLE: [&str; 30] = [
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
    "softrandommap",
    "percentage_random",
    "bs_is_seq_rand",
    "bs_unaligned",
    "opendir",
    "file_append",
    "create_only",
    "unlink",
    "fill_device",
    "read_iolog",
    "trim_percentage",
    "verify_only",
    "flow",
    "steadystate",
    "continue_on_error",
    "ignore_error",
];

//! `[job]` and `[peak]`: the subject of each run.

use std::ops::Range;

use fathom_job::{WholeJobFile, with_includes};
use fathom_toml::Fields;

use super::reader::Reader;
use super::settings;
use crate::lab_plan::{JobText, Setting, Subject, Target, in_line};

/// Reads the subject; `None` if there is none.
pub(super) fn read(reader: &Reader<'_>, top: &Fields<'_>) -> Option<Subject> {
    let peak = top.table("peak", true);
    let job = top.table("job", peak.is_some());
    if let (Some(job), Some(_)) = (&job, &peak) {
        let why = "a lab file has `[job]` or `[peak]`, not both";
        reader.refuse(&job.span(), why, "remove one");
    }
    let job = job.map(|job| self::job(reader, &job));
    match peak {
        Some(peak) => {
            let settings = options(reader, &peak, &Target::Peak);
            if !settings
                .iter()
                .any(|one| one.key == "target" || one.key == "nop")
            {
                let hint = "add `target = \"/dev/nvme0n1\"`, or `nop = true`";
                reader.refuse(&peak.span(), "`peak` has no `target`", hint);
            }
            Some(Subject::Peak(settings))
        }
        None => job,
    }
}

/// Reads a job's options, which stand over those of `file`.
fn job(reader: &Reader<'_>, fields: &Fields<'_>) -> Subject {
    let mut job = match fields.text("file", true) {
        Some((path, span)) => {
            let file = reader.path(&reader.substituted(path, &span).unwrap_or_default());
            let text = reader.read(&file, &span).unwrap_or_default();
            job_text(reader, file, &text)
        }
        None => JobText {
            file: reader.file.to_owned(),
            text: "[job]\n".to_owned(),
            places: Vec::new(),
            settings: Vec::new(),
        },
    };
    job.settings = options(reader, fields, &Target::Job);
    Subject::Job(job)
}

/// Returns the job of a file with this text, without settings. A change of a file that it includes
/// is a change of the lab, and a run reads its job from another place than that of the job file, so
/// it is kept whole.
fn job_text(reader: &Reader<'_>, file: String, text: &str) -> JobText {
    let with_arguments = |text: &str| reader.with_arguments(text, in_line);
    let text = with_arguments(text);
    let WholeJobFile { text, places } =
        with_includes(&file, &text, reader.environment, &with_arguments);
    JobText {
        file,
        text,
        places,
        settings: Vec::new(),
    }
}

/// Reads the job file of a variant; its own options stand in its settings.
pub(super) fn job_file(reader: &Reader<'_>, path: &str, span: &Range<usize>) -> Option<JobText> {
    let file = reader.path(&reader.substituted(path, span)?);
    let text = reader.read(&file, span)?;
    Some(job_text(reader, file, &text))
}

/// Reads options that are values, not lists.
fn options(reader: &Reader<'_>, fields: &Fields<'_>, target: &Target) -> Vec<Setting> {
    let entries = fields.entries().into_iter();
    entries
        .filter_map(|entry| {
            settings::setting(reader, target, entry.key, &entry.key_span, &entry.value)
        })
        .collect()
}

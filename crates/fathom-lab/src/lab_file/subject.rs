//! `[job]` and `[peak]`: the subject of each run.

use fathom_toml::Fields;

use super::reader::Reader;
use super::settings;
use crate::lab_plan::{JobText, Setting, Subject, Target};

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
        Some(peak) => Some(Subject::Peak(options(reader, &peak, &Target::Peak))),
        None => job,
    }
}

/// Reads a job's options, which stand over those of `file`.
fn job(reader: &Reader<'_>, fields: &Fields<'_>) -> Subject {
    let (mut file, mut text) = (reader.file.to_owned(), "[job]\n".to_owned());
    if let Some((path, span)) = fields.text("file", true) {
        file = reader.path(&reader.substituted(path, &span).unwrap_or_default());
        text = reader.read(&file, &span).unwrap_or_default();
        for (name, value) in reader.arguments {
            text = text.replace(&format!("${{{name}}}"), value);
        }
    }
    Subject::Job(JobText {
        file,
        text,
        settings: options(reader, fields, &Target::Job),
    })
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

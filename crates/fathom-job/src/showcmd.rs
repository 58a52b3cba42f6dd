//! `--showcmd`: a plan as equivalent command lines.

use std::sync::Arc;

use crate::names;
use crate::plan::{Job, Plan, Typed};

/// Returns the command lines: one for the jobs of the command line, and one for each job file, even
/// one without jobs.
pub(crate) fn text(plan: &Plan) -> String {
    let mut text = String::new();
    let mut before: Option<&Job> = None;
    for (at, job) in plan.jobs.iter().enumerate() {
        let before_on_line = before.filter(|before| of_one_file(before, job));
        if before_on_line.is_none() {
            push_jobless(&mut text, plan, at);
            begin_line(&mut text);
        }
        push_job(&mut text, before_on_line, job);
        before = Some(job);
    }
    push_jobless(&mut text, plan, plan.jobs.len());
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

fn begin_line(text: &mut String) {
    text.push_str(if text.is_empty() { "fio" } else { "\nfio" });
}

/// Adds lines for the job files without jobs that precede a job.
fn push_jobless(text: &mut String, plan: &Plan, at: usize) {
    for (_, options) in plan.jobless.iter().filter(|(before, _)| *before == at) {
        begin_line(text);
        for typed in options.iter() {
            push(text, &typed.name, &typed.value);
        }
    }
}

/// Returns whether two jobs are of one reading of a file: one that is named twice starts over at
/// its first section.
fn of_one_file(before: &Job, job: &Job) -> bool {
    let (before, job) = (&before.origin, &job.origin);
    before.file == job.file && (before.line, before.column) < (job.line, job.column)
}

fn push_job(line: &mut String, before: Option<&Job>, job: &Job) {
    let known: &[Typed] = before.map_or(&[], |before| &before.inherited);
    if before.is_some_and(|before| !Arc::ptr_eq(&before.inherited, &job.inherited)) {
        // Options after the job's name would belong to that job.
        push(line, "name", "global");
    }
    let same = |one: &Typed, other: &Typed| (&one.name, &one.value) == (&other.name, &other.value);
    let new = |typed: &&Typed| !known.iter().any(|known| same(known, typed));
    for typed in job.inherited.iter().filter(new) {
        push(line, &typed.name, &typed.value);
    }
    push(line, "name", &job.name);
    let format = format_of_section(job);
    let is_replaced = |typed: &&Typed| {
        typed.name == "name" || (typed.name == "filename_format" && format.is_some())
    };
    for typed in job.typed.iter().filter(|typed| !is_replaced(typed)) {
        push(line, &typed.name, &typed.value);
    }
    if let Some(format) = &format {
        push(line, "filename_format", format);
    }
}

/// Returns the `filename_format` that a job needs on the command line: the files of a section keep
/// the name of the section if a `name` inside it renames the job.
fn format_of_section(job: &Job) -> Option<String> {
    let options = &job.options;
    if job.name == job.section || options.filename.is_some() || options.files.opendir.is_some() {
        return None;
    }
    Some(names::with_section(&options.filename_format, &job.section))
}

fn push(line: &mut String, name: &str, value: &str) {
    line.push_str(" --");
    line.push_str(name);
    if !value.is_empty() {
        line.push('=');
        line.push_str(&quoted(value));
    }
}

/// Quotes a value for a shell: in double quotes, as fio does, unless they leave special characters.
fn quoted(value: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "-_./:,=+%@".contains(letter);
    if value.chars().all(plain) {
        value.to_owned()
    } else if !value.contains(['"', '$', '`', '\\', '!']) {
        format!("\"{value}\"")
    } else {
        format!("'{}'", value.replace('\'', r"'\''"))
    }
}

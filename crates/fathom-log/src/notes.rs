//! Warnings and notes about finished logs.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use fathom_host::output_file::{self, Stop};
use fathom_record::Warning;

use super::plan::{JobLogs, LogPlan};
use super::writer::{LineCounts, Written};

/// Removes notes of an earlier run on dropped lines, which would be wrong for this run's logs.
pub(super) fn remove_stale_notes(logs: &LogPlan) {
    for path in note_paths(logs) {
        // Only a regular file: a link or a device of this name is not ours.
        if fs::symlink_metadata(&path).is_ok_and(|found| found.is_file()) {
            let _still_there = fs::remove_file(path);
        }
    }
}

/// Returns the paths of the notes on dropped lines, each once.
pub(super) fn note_paths(logs: &LogPlan) -> BTreeSet<String> {
    let prefixes = logs.jobs.iter().flatten().flat_map(|job| &job.prefixes);
    prefixes
        .map(|prefix| note_path(prefix, &logs.suffix))
        .collect()
}

/// Returns the warnings about finished logs and true if a log or a note could not be written, and
/// writes the notes on dropped lines.
pub(super) fn finish_notes(written: &Written, stop: &Stop) -> (Vec<Warning>, bool) {
    let mut warnings = Vec::new();
    let breaks_off = written.failed.iter().any(Option::is_some);
    let mut failed_notes = 0;
    let short: Vec<_> = written
        .jobs()
        .filter(|(_, lines)| lines.dropped > 0)
        .collect();
    let names = short.iter().map(|(job, lines)| (&*job.name, *lines));
    warnings.extend(dropped(&names.collect::<Vec<_>>(), breaks_off));
    let mut notes: Vec<(&str, Vec<String>)> = Vec::new();
    for (job, lines) in short {
        for prefix in &job.prefixes {
            let note = note(job, lines);
            match notes.iter_mut().find(|(known, _)| known == prefix) {
                Some((_, list)) => list.push(note),
                None => notes.push((prefix, vec![note])),
            }
        }
    }
    for (prefix, list) in notes {
        let path = note_path(prefix, &written.plan.suffix);
        let text = format!("{{\"dropped\": [\n  {}\n]}}\n", list.join(",\n  "));
        if let Err(error) = output_file::write(Path::new(&path), text.as_bytes(), stop) {
            failed_notes += 1;
            warnings.push(broken(&path, &error.into()));
        }
    }
    let failed = written.plan.files.iter().zip(&written.failed);
    let failed = failed.filter_map(|(file, error)| Some((file, error.as_ref()?)));
    warnings.extend(failed.map(|(file, error)| broken(&file.path, error)));
    (warnings, breaks_off || failed_notes > 0)
}

/// Returns one warning for all jobs; numbers per job are in the notes and in the record. No hint if
/// a write failed, because those lines count as dropped too and larger buffers would not help.
fn dropped(short: &[(&str, LineCounts)], breaks_off: bool) -> Option<Warning> {
    let (why, hint) = if breaks_off {
        (
            "a log broke off, or they came faster than they could be written",
            "",
        )
    } else {
        (
            "they came faster than they could be written",
            "log averages (`log_avg_msec=100`), or let the job wait (`log_full=wait`)",
        )
    };
    let dropped: u64 = short.iter().map(|(_, lines)| lines.dropped).sum();
    let all: u64 = short
        .iter()
        .map(|(_, lines)| lines.kept + lines.dropped)
        .sum();
    let (job, whose) = match short {
        [] => return None,
        [(job, _)] => ((*job).to_owned(), "its logs".to_owned()),
        jobs => (String::new(), format!("the logs of {} jobs", jobs.len())),
    };
    Some(Warning {
        code: "log_dropped".into(),
        job,
        message: format!("{dropped} of {all} lines of {whose} were dropped: {why}"),
        hint: hint.into(),
    })
}

fn broken(path: &str, error: &io::Error) -> Warning {
    Warning {
        code: "log_broken".into(),
        job: String::new(),
        message: format!("the log {path} is incomplete: {error}"),
        hint: "free space on the disk, or log averages (`log_avg_msec=100`)".into(),
    }
}

fn note_path(prefix: &str, suffix: &str) -> String {
    format!("{prefix}.dropped.json{suffix}")
}

/// `{"job": "name", "number": 1, "lines_kept": 2, "lines_dropped": 3}`.
fn note(job: &JobLogs, lines: LineCounts) -> String {
    let name: String = job.name.chars().flat_map(escaped).collect();
    format!(
        "{{\"job\": \"{name}\", \"number\": {}, \"lines_kept\": {}, \"lines_dropped\": {}}}",
        job.number, lines.kept, lines.dropped
    )
}

fn escaped(c: char) -> Vec<char> {
    match c {
        '"' | '\\' => vec!['\\', c],
        c if c < ' ' => format!("\\u{:04x}", u32::from(c)).chars().collect(),
        c => vec![c],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_jobs_have_one_hint() {
        let lines = |kept, dropped| LineCounts { kept, dropped };
        let told = |short: &[(&str, LineCounts)]| {
            let warning = dropped(short, false)?;
            assert!(warning.hint.contains("log_full=wait"));
            let (count, _why) = warning.message.split_once(" were dropped: ")?;
            Some((warning.job, count.to_owned()))
        };
        assert_eq!(told(&[]), None);
        let one = ("a".to_owned(), "2 of 5 lines of its logs".to_owned());
        assert_eq!(told(&[("a", lines(3, 2))]), Some(one));
        let all = [("a", lines(3, 2)), ("a", lines(1, 4)), ("b", lines(0, 1))];
        let three = "7 of 11 lines of the logs of 3 jobs".to_owned();
        assert_eq!(told(&all), Some((String::new(), three)));
        assert_eq!(dropped(&all, true).unwrap().hint, "");
    }

    #[test]
    fn names_are_escaped() {
        let text: String = "a\"b\\c\n".chars().flat_map(escaped).collect();
        assert_eq!(text, "a\\\"b\\\\c\\u000a");
    }
}

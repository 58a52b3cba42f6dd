//! The program, called by the name `fio`, beside an installed fio: what both accept, how they end,
//! what they count, what they leave behind, and the shape of their JSON.
//!
//! Both get the same words in folders of their own. Only what is settled by the job is compared:
//! counts, bytes, names and types, never times.
#![expect(clippy::print_stderr, reason = "says why nothing was compared")]

mod jobs;
mod lifecycle;
mod runs;
mod terse;

use std::collections::BTreeMap;

use serde_json::Value;

use jobs::{JOB_FILES, JOBS, MORE, NONSENSE, REFUSED};
use runs::{Ran, both};

#[test]
fn both_count_print_and_leave_behind_the_same() {
    check_same(JOBS);
}

/// Both make the same of each line, and ours says nothing beside it.
#[track_caller]
fn check_same(lines: &[&str]) {
    let mut found = Vec::new();
    for line in lines {
        let Some([fio, ours]) = both(line, &[]) else {
            return;
        };
        found.extend(differences(line, &fio, &ours));
        if !ours.stderr.is_empty() {
            found.push(format!("{line}: standard error: {}", ours.stderr));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn both_count_the_same_for_job_files() {
    let mut found = Vec::new();
    for (name, text) in JOB_FILES {
        let Some([fio, ours]) = both("t.fio", &[("t.fio", text), ("more.fio", MORE)]) else {
            return;
        };
        found.extend(differences(name, &fio, &ours));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn both_refuse_the_same_with_the_same_exit_code() {
    check_refused(REFUSED, 1);
}

#[test]
fn what_fio_takes_for_sense_is_refused() {
    check_refused(NONSENSE, 0);
}

/// Each line is refused, nothing is left, and fio ends with this code.
#[track_caller]
fn check_refused(lines: &[&str], fio_code: i32) {
    for line in lines {
        let Some([fio, ours]) = both(line, &[]) else {
            return;
        };
        assert_eq!((line, fio.code), (line, Some(fio_code)), "fio's");
        assert_eq!(
            (line, ours.code),
            (line, Some(1)),
            "{}{}",
            ours.stdout,
            ours.stderr
        );
        assert!(ours.files.is_empty(), "`{line}` left {:?}", ours.files);
    }
}

/// What tells the two apart, a line each.
fn differences(what: &str, fio: &Ran, ours: &Ran) -> Vec<String> {
    let mut found = Vec::new();
    let mut compare = |aspect: &str, fio: String, ours: String| {
        if fio != ours {
            found.push(format!(
                "{what}: {aspect}:\n    fio  {fio}\n    ours {ours}"
            ));
        }
    };
    compare(
        "exit code",
        format!("{:?}", fio.code),
        format!("{:?}", ours.code),
    );
    compare(
        "files left",
        format!("{:?}", fio.files),
        format!("{:?}", ours.files),
    );
    match (fio.report(), ours.report()) {
        (Some(fio), Some(ours)) => {
            compare(
                "counts",
                counts(&fio).join("\n         "),
                counts(&ours).join("\n         "),
            );
            found.extend(other_shape(what, &shape(&fio), &shape(&ours)));
        }
        (fio, None) if fio.is_some() => {
            found.push(format!("{what}: no JSON: {}{}", ours.stdout, ours.stderr));
        }
        (_, _) => {}
    }
    found
}

/// Keys of fio's that are missing or of another type, and keys that fio does not have.
fn other_shape(what: &str, fio: &Shape, ours: &Shape) -> Vec<String> {
    let lost = fio
        .keys()
        .filter(|key| !ours.contains_key(*key) && !is_settled_later(key));
    let lost = lost.map(|key| format!("{what}: key {key} is missing"));
    let other = ours.iter().filter_map(|(key, kind)| match fio.get(key) {
        Some(wanted) if wanted == kind => None,
        Some(wanted) => Some(format!("{what}: {key} is of type {kind}, not {wanted}")),
        None if is_settled_later(key) => None,
        None => Some(format!("{what}: key {key} is not fio's")),
    });
    lost.chain(other).collect()
}

/// Keys that need not agree: what is ours, nested under one name; what later versions of fio have;
/// the options as typed, of which versions list more or fewer (their values are compared).
fn is_settled_later(key: &str) -> bool {
    let ours = key.split('.').any(|part| part == "fathom");
    ours || key.contains("options") || NEWER.iter().any(|end| key.ends_with(end))
}

const NEWER: &[&str] = &[
    "job_start",
    "latency_target_ns",
    "latency_window_us",
    "read_sectors",
    "write_sectors",
];

/// What each job has done, in order: everything that the job alone settles.
fn counts(report: &Value) -> Vec<String> {
    let jobs = report["jobs"].as_array().expect("jobs is an array");
    let of_job = |job: &Value| {
        let mut line = format!("{} g{} e{}", job["jobname"], job["groupid"], job["error"]);
        for direction in ["read", "write", "trim"] {
            let done = &job[direction];
            let counts = [
                "total_ios",
                "io_bytes",
                "io_kbytes",
                "short_ios",
                "drop_ios",
            ];
            let counts = counts.map(|key| done[key].to_string()).join(" ");
            line += &format!("; {direction} {counts} N={}", done["clat_ns"]["N"]);
        }
        line + &format!("; sync {}; {:?}", job["sync"]["total_ios"], with_value(job))
    };
    jobs.iter().map(of_job).collect()
}

/// The options of a job that have a value: whether bare flags are listed differs between versions.
fn with_value(job: &Value) -> Vec<(&String, &str)> {
    let options = job["job options"].as_object().into_iter().flatten();
    options
        .filter_map(|(name, value)| Some((name, value.as_str().filter(|v| !v.is_empty())?)))
        .collect()
}

/// Types by path.
type Shape = BTreeMap<String, &'static str>;

/// Path of every key, with the type of its value; elements of arrays are one.
fn shape(value: &Value) -> Shape {
    let mut keys = BTreeMap::new();
    add_shape(value, "", &mut keys);
    keys
}

fn add_shape(value: &Value, path: &str, keys: &mut Shape) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    keys.insert(path.to_owned(), kind);
    match value {
        Value::Array(items) => items
            .iter()
            .for_each(|item| add_shape(item, &format!("{path}[]"), keys)),
        Value::Object(fields) => {
            for (name, field) in fields {
                let path = if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}.{name}")
                };
                add_shape(field, &path, keys);
            }
        }
        _ => {}
    }
}

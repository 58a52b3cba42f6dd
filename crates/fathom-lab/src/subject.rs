//! Division of a run's circumstances: plan and machine, which make runs comparable, and the
//! subject, which may change between comparable runs.

mod model;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use fathom_record::{Machine, Record, StorageRecord};
use serde_json::{Value, json};

/// Returns the jobs of a run as a job file, of which [`job_names`] reads the names. The seed is
/// left out: repeats with other offsets are repeats of the same plan. Names and values that would
/// take several lines are strings of JSON.
pub(crate) fn plan_text(record: &Record) -> String {
    let mut text = String::new();
    let mut section = |name: &str, options: &[(String, String)]| {
        let _infallible = match name.starts_with('"') || name.contains(char::is_control) {
            true => writeln!(text, "[{}]", json!(name)),
            false => writeln!(text, "[{name}]"),
        };
        let kept = options.iter().filter(|(key, _)| key != "randseed");
        for (key, value) in kept {
            let _infallible = match value.as_str() {
                "" => writeln!(text, "{key}"),
                value if value.contains(['\n', '\r']) => writeln!(text, "{key}={}", json!(value)),
                value => writeln!(text, "{key}={value}"),
            };
        }
    };
    if !record.global_options.is_empty() {
        section("global", &record.global_options);
    }
    let mut last = None;
    for job in &record.jobs {
        // Clones follow each other; their number is one of the options.
        let this = (&job.name, &job.options);
        if last != Some(this) {
            section(&job.name, &job.options);
        }
        last = Some(this);
    }
    text
}

/// Returns the names of the jobs in the text of a plan, in order.
#[must_use]
pub fn job_names(plan: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut lines = plan.lines();
    while let Some(line) = lines.next() {
        let Some(begun) = line.strip_prefix('[') else {
            continue;
        };
        // Earlier versions kept a line feed of a name as it was.
        let mut section = begun.to_owned();
        while !section.ends_with(']') {
            let Some(line) = lines.next() else {
                break;
            };
            section.push('\n');
            section.push_str(line);
        }
        if let Some(name) = section.strip_suffix(']') {
            names.push(serde_json::from_str(name).unwrap_or_else(|_| name.to_owned()));
        }
    }
    names.retain(|name| name != "global");
    names
}

/// Returns the name and version of the program in a subject.
pub(crate) fn program_of(subject: &str) -> Option<String> {
    let subject: Value = serde_json::from_str(subject).ok()?;
    subject["program"].as_str().map(str::to_owned)
}

/// Returns the machine of a run. Memory is rounded to GiB: kernels reserve different parts of it.
pub(crate) fn machine_json(record: &Record, model: Option<&str>) -> String {
    if let Some(text) = model {
        return json!({ MODEL: text }).to_string();
    }
    if let Some(model) = &record.modelled {
        let devices = model.devices.iter().map(|device| {
            json!({
                "model": device.model,
                "names": device.names,
                "capacity_bytes": device.capacity_bytes,
            })
        });
        return json!({ "devices": devices.collect::<Vec<_>>() }).to_string();
    }
    let Some(machine) = &record.machine else {
        return json!({}).to_string();
    };
    let gib = 1_u64 << 30;
    json!({
        "cpu": machine.cpu,
        "cpus_online": machine.cpus_online,
        "memory_gib": (machine.memory_bytes + gib / 2) / gib,
        "storage": machine.storage.iter().map(storage).collect::<Vec<_>>(),
    })
    .to_string()
}

/// Returns whether the machine of a run is a modelled one.
pub(crate) fn is_modelled(machine: &str) -> bool {
    let machine: Value = serde_json::from_str(machine).unwrap_or_default();
    machine.get(MODEL).is_some() || machine.get("devices").is_some()
}

/// Returns the subject of a run.
pub(crate) fn subject_json(record: &Record, program: &str) -> String {
    let mut subject = json!({ "program": program });
    if let Some(machine) = &record.machine {
        subject["kernel"] = json!(machine.kernel);
        subject["governor"] = json!(machine.governor);
        subject["engine_features"] = json!(machine.engine_features);
        subject["schedulers"] = by_device(machine, &|one| Some(one.scheduler.clone()));
        let firmware = |one: &StorageRecord| {
            device_file(&one.device, "firmware_rev").or_else(|| device_file(&one.device, "rev"))
        };
        subject["firmware"] = by_device(machine, &firmware);
    }
    subject.to_string()
}

/// Returns the entries of a JSON object, nested ones with their path. Empty ones are left out.
pub(crate) fn facts(json: &str) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    if let Ok(value) = serde_json::from_str::<Value>(json) {
        flatten("", &value, &mut facts);
    }
    facts
}

fn flatten(path: &str, value: &Value, facts: &mut BTreeMap<String, String>) {
    let below = |key: &str| match path {
        "" => key.to_owned(),
        path => format!("{path}.{key}"),
    };
    match value {
        Value::Object(entries) => {
            for (key, value) in entries {
                flatten(&below(key), value, facts);
            }
        }
        Value::Array(values) => {
            for (at, value) in values.iter().enumerate() {
                flatten(&below(&at.to_string()), value, facts);
            }
        }
        Value::Null => {}
        Value::String(text) if text.is_empty() => {}
        // The text of a machine file: its keys are the facts.
        Value::String(text) if path == MODEL && text.contains('\n') => {
            model::add(path, text, facts)
        }
        Value::String(text) => {
            facts.insert(path.to_owned(), text.clone());
        }
        other => {
            facts.insert(path.to_owned(), other.to_string());
        }
    }
}

fn storage(one: &StorageRecord) -> Value {
    json!({
        "device": one.device,
        "model": device_file(&one.device, "model"),
        "filesystem": one.filesystem,
        "rotational": one.rotational,
        "logical_block_bytes": one.logical_block_bytes,
        "physical_block_bytes": one.physical_block_bytes,
    })
}

fn by_device(machine: &Machine, of: &dyn Fn(&StorageRecord) -> Option<String>) -> Value {
    let devices = machine.storage.iter().filter(|one| !one.device.is_empty());
    let values = devices.filter_map(|one| Some((one.device.clone(), json!(of(one)?))));
    Value::Object(values.collect())
}

/// Reads a fact about a device from sysfs; a partition's is that of its disk.
fn device_file(device: &str, name: &str) -> Option<String> {
    if device.is_empty() || device.contains('/') {
        return None;
    }
    let folder = format!("/sys/class/block/{device}");
    let own = fs::read_to_string(format!("{folder}/device/{name}"));
    let text = own.or_else(|_| fs::read_to_string(format!("{folder}/../device/{name}")));
    Some(text.ok()?.trim().to_owned())
}

/// Key of the text of a modelled machine.
const MODEL: &str = "model";

#[cfg(test)]
mod tests {
    use fathom_record::JobRecord;

    use super::*;

    #[track_caller]
    fn check(names: &[&str]) {
        let job = |name: &&str| JobRecord {
            name: (*name).into(),
            options: vec![("exec_prerun".into(), "a\n[b]".into())],
            ..JobRecord::default()
        };
        let record = Record {
            global_options: vec![("rw".into(), "read".into())],
            jobs: names.iter().map(job).collect(),
            ..Record::default()
        };
        assert_eq!(job_names(&plan_text(&record)), names);
    }

    #[test]
    fn names_of_jobs_are_read_back_from_a_plan() {
        check(&["a", "b c", "[x]", "a]b", "12", "null", ""]);
        check(&[
            "line\nfeed",
            "\n",
            "a]\n[b",
            "\"quoted\"",
            "\"",
            "a\\nb",
            "\u{1b}[1m",
        ]);
    }

    #[test]
    fn names_that_were_kept_on_two_lines_are_read() {
        assert_eq!(
            job_names("[line\nfeed]\nrw=read\n[b]\n"),
            ["line\nfeed", "b"]
        );
        assert_eq!(job_names("{\"iodepth\":1}"), Vec::<String>::new());
        assert_eq!(job_names("[a"), Vec::<String>::new());
    }
}

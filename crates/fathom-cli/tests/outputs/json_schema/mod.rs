//! The published schema of Fathom's additions to fio's JSON, checked against real documents.

mod schema;

use crate::common::Folder;
use schema::faults;
use serde_json::{Deserializer, Value, json};

/// Runs that between them show every key.
const RUNS: &[&str] = &[
    "--name=t --ioengine=null --rw=randread --size=1m",
    "--name=t --ioengine=null --rw=rw --size=64k --rate_iops=2000 --output-format=json+",
    "--name=t --ioengine=null --rw=randtrim --size=64k --rate=64m",
    "--name=t --rw=write --size=64k --iodepth=4 --write_lat_log=t",
    "--name=t --ioengine=null --rw=read --size=64k --numjobs=3 --group_reporting",
    "--name=t --ioengine=null --rw=read --size=1g --rate_iops=100 --runtime=700ms \
     --status-interval=250ms",
    "--name=t --ioengine=null --rw=read --size=64k --create_only=1",
    "--name=t --rw=read --size=64k --filename=f --rate_iops_min=1000000000 --time_based \
     --runtime=4",
    "--machine=m.toml --seeks --name=t --rw=randread --size=1m --direct=1",
    "--machine=m.toml --name=t --rw=randread --size=1m --time_based --runtime=6",
    "--rank=1/2 --name=t --ioengine=null --rw=read --size=64k",
];

/// Machine file of the run that is simulated.
const MACHINE: &str = "[[device]]\nnames = [\"*\"]\nmodel = \"constant\"\ncapacity_gib = 1\n\
                       [device.constant]\nlatency_us = 100\n\
                       [[device.stall]]\nat_ms = 5\nfor_ms = 50\n";

#[test]
fn every_document_is_as_published() {
    let schema = published();
    let folder = Folder::new();
    folder.write("m.toml", MACHINE);
    let mut seen = Vec::new();
    for line in RUNS {
        let run = folder.fathom(&format!("run --output-format=json --eta=never {line}"));
        assert!(run.code < Some(2), "{line}: {run:#?}");
        for document in Deserializer::from_str(&run.out).into_iter::<Value>() {
            let document = document.unwrap();
            assert_eq!(faults(&schema, &document), [""; 0], "{line}");
            gather(&document, "", false, &mut seen);
        }
    }
    for key in [
        "fathom.machine.storage.path",
        "fathom.processors.own_us",
        "fathom.scheduling.waited_ns",
        "fathom.modelled.devices.seeks.distances",
        "fathom.warnings.code",
        "fathom.validity.figures",
        "fathom.error_text",
        "fathom.log.lines_kept",
        "fathom.own_cost.loop_ns_per_op",
        "fathom.stalls.cause",
        "fathom.read.resp_ns.bins",
        "fathom.trim.lag_ns.percentile",
        "fathom.trim.late_ios",
        "fathom.timelines.windows",
        "fathom.timelines.intervals.percentile",
    ] {
        assert!(
            seen.iter().any(|seen| seen.starts_with(key)),
            "{key} was not tried"
        );
    }
}

#[test]
fn a_trace_is_as_published() {
    let words = "run --output-format=json --eta=never --trace --name=t --rw=randread --size=64k \
                 --direct=1 --filename=d";
    let run = Folder::new().fathom(words);
    if run.code == Some(2) {
        return println!("skipped: {}", run.err);
    }
    let document = run.expect(0).json();
    assert!(document["fathom"]["trace"]["jobs"][0]["total_ns"].is_object());
    assert_eq!(faults(&published(), &document), [""; 0]);
}

/// Collects the paths of everything below a key `fathom`.
fn gather(value: &Value, path: &str, ours: bool, seen: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let (path, ours) = match (ours, name.as_str()) {
                    (false, "fathom") => ("fathom".to_owned(), true),
                    (false, _) => (String::new(), false),
                    (true, name) => (format!("{path}.{name}"), true),
                };
                gather(field, &path, ours, seen);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| gather(item, path, ours, seen)),
        _ => {}
    }
    if ours {
        seen.push(path.to_owned());
    }
}

#[test]
fn deviations_from_the_schema_are_found() {
    let schema = published();
    let folder = Folder::new();
    let words = "run --output-format=json --name=t --ioengine=null --size=4k";
    let good = folder.fathom(words).expect(0).json();
    let check = |pointer: &str, value: Value, want: &str| {
        let mut document = good.clone();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let parent = document
            .pointer_mut(parent)
            .unwrap()
            .as_object_mut()
            .unwrap();
        match value {
            Value::Null => parent.remove(key),
            value => parent.insert(key.to_owned(), value),
        };
        let found = faults(&schema, &document);
        assert!(
            found.len() == 1 && found[0].contains(want),
            "{pointer}: {found:?}"
        );
    };
    check(
        "/fathom/elapsed_ms",
        json!("5"),
        "fathom.elapsed_ms: not of type integer",
    );
    check(
        "/fathom/elapsed_ms",
        json!(-5),
        "fathom.elapsed_ms: below 0",
    );
    check("/fathom/new", json!(5), "fathom.new: not in the schema");
    check(
        "/jobs/0/fathom/pid",
        Value::Null,
        "jobs[0].fathom.pid: missing",
    );
    check(
        "/jobs/0/fathom/read",
        json!({"p": 1}),
        "fathom.read.p: not in the schema",
    );
    check(
        "/fathom/warnings",
        json!([7]),
        "fathom.warnings[0]: not of type object",
    );
}

fn published() -> Value {
    serde_json::from_str(include_str!("../../../../../docs/fathom.schema.json")).unwrap()
}

//! `fathom run --trace`, on the disk under the build directory, as far as this user may trace it.

use std::fs;

use crate::common::{Folder, Run};
use serde_json::Value;

/// Runs a traced job of reads and returns its report; `None`, and says why, if it cannot be traced
/// here.
fn traced(folder: &Folder, words: &str) -> Option<Run> {
    let job = "run --trace --name=t --filename=data --rw=randread --bs=4k --size=1m --direct=1";
    let run = folder.fathom(&format!("{job} --eta=never {words}"));
    if run.code == Some(0) {
        return Some(run);
    }
    assert_eq!(run.code, Some(2), "{run:#?}");
    assert!(run.err.contains("\nhint: "), "{run:#?}");
    println!("skipped: {}", run.err);
    None
}

#[track_caller]
fn check_refused(words: &str, why: &str) {
    let run = Folder::new().fathom(words).expect(2);
    // As another user, or where nothing is traced, that is the first problem.
    let first = run.err.contains(why) || run.err.contains("--trace: ");
    assert!(first && run.err.contains("\nhint: "), "{words}: {run:#?}");
}

#[test]
fn each_read_has_its_stages() {
    for engine in ["psync", "libaio --iodepth=8", "io_uring --iodepth=8"] {
        let folder = Folder::new();
        let words = format!("--ioengine={engine} --output-format=json");
        let Some(run) = traced(&folder, &words) else {
            continue;
        };
        let report = run.json();
        let trace = &report["fathom"]["trace"];
        let job = &trace["jobs"][0];
        assert_eq!(job["ops"], 256, "{trace}");
        if trace["lost_events"] != 0 {
            println!("skipped: events were lost");
            continue;
        }
        assert_eq!(job["joined"], 256, "{trace}");
        let count = |stage: &str| job[stage]["N"].clone();
        for stage in ["before_ns", "device_ns", "after_ns", "total_ns"] {
            assert_eq!(count(stage), 256, "{stage}: {trace}");
        }
        let mean = |stage: &str| job[stage]["mean"].as_f64().unwrap();
        let sum = mean("before_ns") + mean("device_ns") + mean("after_ns");
        assert!(sum >= mean("total_ns") * 0.999, "{trace}");
        assert!(mean("device_ns") > 0.0, "{trace}");
    }
}

#[test]
fn the_table_is_below_the_report() {
    let folder = Folder::new();
    let Some(run) = traced(&folder, "") else {
        return;
    };
    assert!(run.out.contains("\nStages of ops, "), "{run:#?}");
    let stages = run.out.split("\nStages of ops, ").nth(1).unwrap();
    let mut stages = stages.lines().take_while(|line| !line.is_empty());
    assert!(stages.all(|line| line.chars().count() <= 80), "{run:#?}");
    // No log was requested, and none is written.
    let names = fs::read_dir(folder.path()).unwrap().flatten();
    let names: Vec<_> = names.map(|entry| entry.file_name()).collect();
    assert!(names.iter().all(|name| name == "data"), "{names:?}");
}

#[test]
fn a_requested_log_is_as_without_a_trace() {
    let folder = Folder::new();
    let Some(run) = traced(&folder, "--write_lat_log=t --output-format=json") else {
        return;
    };
    let text = fs::read_to_string(folder.path().join("t_clat.1.log")).unwrap();
    let columns = |line: &str| line.split(", ").count();
    assert!(text.lines().all(|line| columns(line) == 5), "{text}");
    assert_eq!(text.lines().count(), 256);
    let lines: &Value = &run.json()["jobs"][0]["fathom"]["log"]["lines_kept"];
    assert!(lines.as_u64() >= Some(256), "{lines}");
}

#[test]
fn what_cannot_be_joined_is_refused_before_anything_is_written() {
    let job = "run --trace --name=t --filename=data --size=1m";
    check_refused(&format!("{job} --rw=read"), "it is buffered");
    check_refused(&format!("{job} --ioengine=null"), "engine `null`");
    let offload = "--direct=1 --io_submit_mode=offload";
    check_refused(&format!("{job} {offload}"), "its workers submit");
    let averages = "--direct=1 --write_lat_log=t --log_avg_msec=100";
    check_refused(&format!("{job} {averages}"), "it averages its log");
    let folder = Folder::new();
    folder.fathom(&format!("{job} --rw=write")).expect(2);
    assert!(fs::read_dir(folder.path()).unwrap().next().is_none());
}

#[test]
fn a_trace_is_of_fathom_and_of_a_kernel() {
    let folder = Folder::new();
    folder.write("m.toml", "");
    let run = folder.fathom("run --trace --machine m.toml --name=t --size=1m");
    assert!(run.expect(2).err.contains("`--trace` reads the kernel's"));
}

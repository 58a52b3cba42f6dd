//! `io_submit_mode=offload`, the whole program: what is printed, what is written, how it ends.

use std::process::{Command, Stdio};

use crate::common::Folder;
use serde_json::Value;

/// Every engine that moves data.
const ENGINES: [&str; 8] = [
    "psync", "sync", "vsync", "pvsync", "pvsync2", "mmap", "libaio", "io_uring",
];

fn job(folder: &Folder, words: &str) -> Value {
    let words = format!("run --name=t --io_submit_mode=offload --output-format=json {words}");
    folder.fathom(&words).expect(0).json()["jobs"][0].clone()
}

fn mean(value: &Value) -> f64 {
    value["mean"].as_f64().unwrap_or(-1.0)
}

#[test]
fn offload_workers_write_the_jobs_data() {
    for engine in ENGINES {
        let folder = Folder::new();
        let job = job(
            &folder,
            &format!(
                "--ioengine={engine} --rw=randwrite --size=4m --iodepth=16 --iodepth_batch=8 \
                 --fsync=64 --verify=crc32c --filename=data"
            ),
        );
        assert_eq!(job["error"], 0, "{engine}: {job}");
        assert_eq!(job["write"]["total_ios"], 1024, "{engine}");
        assert_eq!(
            job["read"]["total_ios"], 1024,
            "{engine}: not all was verified"
        );
        assert!(job["sync"]["total_ios"].as_u64() >= Some(15), "{engine}");
    }
}

/// fio 3.42 prints no latency in this mode without `ramp_time`.
#[test]
fn latencies_are_reported_with_and_without_a_ramp() {
    for ramp in ["", "--ramp_time=200ms"] {
        let folder = Folder::new();
        let words = "--ioengine=psync --rw=randread --size=1m --iodepth=8 --filename=data \
                     --time_based --runtime=300ms";
        let job = job(&folder, &format!("{words} {ramp}"));
        let read = &job["read"];
        assert!(mean(&read["slat_ns"]) > 0.0, "{ramp}: {job}");
        assert!(mean(&read["clat_ns"]) > 0.0, "{ramp}");
        let queued = &job["fathom"]["read"]["queued_ns"];
        assert!(mean(queued) > 0.0, "{ramp}");
        let (waited, ios) = (queued["N"].as_u64(), read["total_ios"].as_u64());
        // What is in flight at the ramp's end is counted by one of them.
        let apart = waited.zip(ios).map(|(waited, ios)| waited.abs_diff(ios));
        assert!(
            apart.is_some_and(|apart| apart <= 16),
            "{waited:?} of {ios:?}"
        );
    }
}

#[test]
fn every_wakeup_mode_completes_all_ops() {
    for kick in ["batch", "each", "delayed", "reap"] {
        let folder = Folder::new();
        let words = format!(
            "--ioengine=libaio --rw=randrw --size=2m --iodepth=16 --iodepth_batch=4 \
             --offload_kick={kick} --filename=data"
        );
        let job = job(&folder, &words);
        let ios = |direction: &str| job[direction]["total_ios"].as_u64().unwrap_or(0);
        assert_eq!(ios("read") + ios("write"), 512, "{kick}");
    }
}

#[test]
fn under_a_rate_response_times_count_from_the_due_time() {
    let folder = Folder::new();
    let job = job(
        &folder,
        "--ioengine=null --rw=randread --size=1m --iodepth=4 --rate_iops=2000 --time_based \
         --runtime=1",
    );
    let own = &job["fathom"]["read"];
    assert!(
        mean(&own["resp_ns"]) >= mean(&job["read"]["clat_ns"]),
        "{job}"
    );
    assert!(mean(&own["lag_ns"]) >= 0.0);
    let ios = job["read"]["total_ios"].as_u64().unwrap_or(0);
    assert!((1_600..=2_001).contains(&ios), "{ios}");
}

#[test]
fn a_full_device_fails_the_op_that_met_it() {
    let folder = Folder::new();
    for engine in ["psync", "pvsync2", "io_uring"] {
        let words = format!(
            "run --name=t --io_submit_mode=offload --ioengine={engine} --rw=write --size=64k \
             --iodepth=8 --filename=/dev/full --output-format=json"
        );
        let run = folder.fathom(&words);
        let text = format!("{}{}", run.out, run.err);
        assert_ne!(run.code, Some(0), "{engine}: {text}");
        assert!(text.contains("No space left"), "{engine}: {text}");
    }
}

/// A run killed at any moment leaves nothing but its data file.
#[test]
fn runs_killed_at_random_leave_nothing_behind() {
    let folder = Folder::new();
    folder
        .fathom("run --name=l --rw=write --size=4m --filename=data")
        .expect(0);
    let shared = || std::fs::read_dir("/dev/shm").map_or(0, Iterator::count);
    let before = shared();
    // All of them: FATHOM_CYCLES=1000.
    let cycles = std::env::var("FATHOM_CYCLES")
        .ok()
        .and_then(|text| text.parse().ok());
    let mut seed = 0x9e37_79b9_u32;
    for cycle in 0..cycles.unwrap_or(30) {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let engine = ENGINES[(seed >> 24) as usize % ENGINES.len()];
        let words = format!(
            "run --name=t --io_submit_mode=offload --ioengine={engine} --rw=randrw --size=4m \
             --iodepth=16 --filename=data --time_based --runtime=60"
        );
        let mut child = folder
            .command(env!("CARGO_BIN_EXE_fathom"), &words)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let pid = child.id();
        // Not INT: in the background of a script it is ignored until the program sets its handler,
        // and one that comes earlier is lost.
        let (millis, signal) = (
            (seed >> 8) % 60,
            if seed & 256 == 0 { "KILL" } else { "TERM" },
        );
        let script = format!("sleep 0.0{millis:02}; kill -{signal} {pid}");
        let killed = Command::new("sh").args(["-c", &script]).status().unwrap();
        assert!(killed.success(), "cycle {cycle}: it ended by itself");
        child.wait().unwrap();
        let left = std::path::Path::new("/proc").join(pid.to_string());
        assert!(!left.exists(), "cycle {cycle}: {engine}: threads are left");
    }
    assert_eq!(folder.names(), ["data"]);
    assert!(shared() <= before, "shared memory is left");
}

#[test]
fn an_interrupt_drains_and_reports() {
    let folder = Folder::new();
    // To make the file may take longer than the job is given.
    folder
        .fathom("run --name=l --rw=write --size=4m --filename=data")
        .expect(0);
    let mut child = folder
        .command(
            env!("CARGO_BIN_EXE_fathom"),
            "run --name=t --io_submit_mode=offload --ioengine=libaio --rw=randrw --size=4m \
             --iodepth=16 --filename=data --time_based --runtime=60 --output-format=json",
        )
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let script = format!("sleep 1.5; kill -INT {}", child.id());
    Command::new("sh").args(["-c", &script]).status().unwrap();
    let mut text = String::new();
    std::io::Read::read_to_string(child.stdout.as_mut().unwrap(), &mut text).unwrap();
    child.wait().unwrap();
    let report: Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert!(report["jobs"][0]["read"]["total_ios"].as_u64() > Some(0));
}

//! The worst stalls of a run, in its reports.

use std::io::Read;
use std::process::{Command, Stdio};

use crate::common::Folder;
use crate::serving::{NQN, Serving};
use serde_json::Value;

pub(crate) const MACHINE: &str = r#"
[[device]]
names = ["/dev/modelled"]
model = "constant"
capacity_gib = 1
[device.constant]
latency_us = 100
[[device.stall]]
at_ms = 1500
for_ms = 300
[[device.stall]]
at_ms = 2500
for_ms = 40
"#;

const MODELLED: &str = "run --machine m.toml --name=db --ioengine=libaio --direct=1 --iodepth=32 \
                        --filename=/dev/modelled --rw=randwrite --time_based --runtime=4 \
                        --iodepth_batch_complete_max=32";

#[test]
fn modelled_stalls_are_the_devices() {
    let folder = Folder::new();
    folder.write("m.toml", MACHINE);
    let text = folder.fathom(MODELLED).expect(0).out;
    let want = "\n\nstall: 300 ms at 1.500 s in job db (write): the device was late with 32 ops\n\
                stall: 40 ms at 2.500 s in job db (write): the device was late with 32 ops\n";
    assert!(text.contains(want), "{text}");
    let job = folder.fathom(&format!("{MODELLED} --output-format=json"));
    let job = job.expect(0).json()["jobs"][0].clone();
    let first = &job["fathom"]["stalls"][0];
    assert_eq!(first["cause"], "device");
    assert_eq!(
        (&first["number"], &first["late_ios"]),
        (&1.into(), &32.into())
    );
    assert_eq!(first["duration_ns"], 300_100_000);
}

#[test]
fn clones_that_stall_together_share_a_line() {
    let folder = Folder::new();
    folder.write("m.toml", MACHINE);
    let words = format!("{MODELLED} --numjobs=3 --group_reporting");
    let text = folder.fathom(&words).expect(0).out;
    let want = "stall: 300 ms at 1.500 s in job db and 2 other jobs (write): the device was late \
                with 96 ops\n";
    assert!(text.contains(want), "{text}");
}

/// Runs a job that issues 1000 ops per second, runs a script once the job runs, in which PID is the
/// process, and returns the job's stalls.
fn stalls_after(engine: &[&str], script: &str) -> Vec<Value> {
    let words = "run --name=db --rate_iops=1000 --size=1g --time_based --runtime=3 \
                 --output-format=json --eta=always";
    let folder = Folder::new();
    let mut child = folder
        .command(env!("CARGO_BIN_EXE_fathom"), words)
        .args(engine)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The status line shows that the job runs.
    let mut status = child.stderr.take().unwrap();
    let _read = status.read(&mut [0; 4096]).unwrap();
    let script = script.replace("PID", &child.id().to_string());
    let done = Command::new("sh").args(["-c", &script]).status().unwrap();
    assert!(done.success());
    std::io::copy(&mut status, &mut std::io::sink()).unwrap();
    let output = child.wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let stalls = report["jobs"][0]["fathom"]["stalls"].as_array();
    stalls.cloned().unwrap_or_default()
}

/// Returns the causes of the stalls that may be a pause of 300 ms: a busy machine may add stalls,
/// and lengthen this one.
#[track_caller]
fn causes(stalls: &[Value]) -> Vec<&str> {
    let long = stalls
        .iter()
        .filter(|stall| stall["duration_ns"].as_u64() > Some(250_000_000));
    let causes: Vec<&str> = long.map(|stall| stall["cause"].as_str().unwrap()).collect();
    assert!(!causes.is_empty(), "{stalls:?}");
    causes
}

/// The watcher sees a pause only in its naps, so that its own writes, which may block, are not
/// taken for one. A pause that happens to begin between two naps passes for the device's: most do
/// not.
#[test]
fn a_stopped_process_is_its_own_stall() {
    let pause = "sleep 0.13; kill -STOP PID; sleep 0.3; kill -CONT PID\n";
    let stalls = stalls_after(&["--ioengine=null"], &pause.repeat(3));
    let own = causes(&stalls).into_iter();
    let own = own.filter(|cause| *cause != "device").count();
    assert!(own >= 2, "{stalls:?}");
    assert!(
        stalls.iter().any(|stall| stall["stopped_ns"] != 0),
        "{stalls:?}"
    );
}

#[test]
fn a_stopped_target_is_a_late_device() {
    let folder = Folder::new();
    let target = Serving::start(&folder, "--threads 1 --null 1G");
    let (id, port) = (target.id(), target.port());
    let file = format!("trtype=tcp adrfam=ipv4 traddr=127.0.0.1 trsvcid={port} subnqn={NQN} ns=1");
    let stalls = stalls_after(
        &["--ioengine=nvme_tcp", &format!("--filename={file}")],
        &format!("kill -STOP {id}; sleep 0.3; kill -CONT {id}"),
    );
    assert!(causes(&stalls).contains(&"device"), "{stalls:?}");
}

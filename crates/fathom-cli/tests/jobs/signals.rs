//! Runs that receive signals: interrupted, terminated, or stopped for a while.

use std::process::{Child, Command, Stdio};

use crate::common::{Folder, Run};
use serde_json::Value;

/// Runs the program in the background of a shell script that sends it signals; `$PID` is its PID.
fn disturbed(folder: &Folder, program: &str, words: &str, script: &str) -> Run {
    let mut command = folder.command(program, words);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut shell = shell(&child, script);
    let run = Run::from(child.wait_with_output().unwrap());
    assert!(shell.wait().unwrap().success());
    run
}

fn shell(child: &Child, script: &str) -> Child {
    let mut command = Command::new("sh");
    command
        .args(["-c", script])
        .env("PID", child.id().to_string());
    command.spawn().unwrap()
}

const FATHOM: &str = env!("CARGO_BIN_EXE_fathom");
const SLOW: &str = "--name=t --rw=read --bs=4k --size=1m --rate_iops=20 --output-format=json";

#[test]
fn one_interrupt_stops_reaps_and_reports() {
    let folder = Folder::new();
    for (signal, words) in [
        ("INT", format!("run {SLOW}")),
        ("TERM", format!("run {SLOW}")),
    ] {
        let script = format!("sleep 0.7; kill -{signal} $PID");
        let run = disturbed(&folder, FATHOM, &words, &script).expect(2);
        let ios = run.json()["jobs"][0]["read"]["total_ios"].as_u64().unwrap();
        assert!((1..200).contains(&ios), "{ios}");
        assert!(run.err.contains("stopping"), "{run:#?}");
        let warnings = run.json()["fathom"]["warnings"].to_string();
        assert!(warnings.contains("interrupted"), "{warnings}");
    }
    // Makes the link.
    folder.fio("--version").expect(0);
    let fio = folder.path().join("bin/fio");
    let text = SLOW.replace("json", "normal");
    for (signal, number) in [("INT", 2), ("TERM", 15)] {
        let script = format!("sleep 0.7; kill -{signal} $PID");
        let run = disturbed(&folder, fio.to_str().unwrap(), &text, &script).expect(128);
        let wanted = format!("\nfio: terminating on signal {number}\n");
        assert!(run.out.contains(&wanted), "{run:#?}");
    }
}

/// A shell script makes its background jobs ignore SIGINT; a program that installs a handler, as
/// fio does, can be interrupted all the same.
#[test]
fn a_background_run_of_a_script_stops_on_sigint() {
    let folder = Folder::new();
    let words = format!("run {SLOW} --output=report.json");
    let script = format!("{FATHOM} {words} & sleep 0.7; kill -INT $!; wait $!");
    let mut command = folder.command("sh", "-c");
    Run::from(command.arg(script).output().unwrap()).expect(2);
    let report = std::fs::read_to_string(folder.path().join("report.json")).unwrap();
    assert!(report.contains("interrupted"), "{report}");
}

#[test]
fn a_second_interrupt_exits_at_once() {
    let folder = Folder::new();
    let words = format!("run {SLOW} --numjobs=3");
    let script = "sleep 0.5; kill -INT $PID; sleep 0.05; kill -INT $PID || :";
    let run = disturbed(&folder, FATHOM, &words, script);
    // Killed by the second, or done with reporting before it came.
    assert!(matches!(run.code, None | Some(2)), "{run:#?}");
}

/// Stops the program for a second once it has done a thousand ops. The script records the time of
/// each step, so that the length of the stop is known within bounds however late the shell runs;
/// `waits` is the time in ns that the program's threads waited for a CPU, while stopped and a
/// second later.
const STALL: &str = "
    ops() { while read name count; do [ $name = syscr: ] && echo $count; done < /proc/$PID/io; }
    for i in $(seq 100); do [ $(ops) -gt 1000 ] && break; sleep 0.05; done
    moment() { date +%s%N >> moments; }
    waits() { cat /proc/$PID/task/*/schedstat > waits.$1; }
    moment; kill -STOP $PID; moment
    sleep 1
    waits before
    moment; kill -CONT $PID; moment
    sleep 1
    waits after";

/// Returns bounds of the time that the program was stopped, ns: the upper one includes its wait for
/// a CPU afterwards.
fn stalled(folder: &Folder) -> (u64, u64) {
    let read = |name| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let number = |text: &str| text.parse::<u64>().unwrap();
    let moments: Vec<u64> = read("moments").lines().map(number).collect();
    let waited = |name| -> u64 {
        let text: String = read(name);
        let each = text.lines().map(|line| line.split(' ').nth(1).unwrap());
        each.map(number).sum()
    };
    let late = waited("waits.after") - waited("waits.before");
    (moments[2] - moments[1], moments[3] - moments[0] + late)
}

#[test]
fn a_stall_is_in_resp_and_not_in_clat() {
    let folder = Folder::new();
    folder.write("data", vec![1; 16 << 20]);
    // Read from memory: a slow disk would be a stall of its own.
    let words = "run --name=t --filename=data --rw=randread --bs=4k --size=16m --pre_read=1 \
                 --rate_iops=1000 --runtime=6 --time_based --output-format=json";
    let script = format!("cd {}; {STALL}", folder.path().display());
    let run = disturbed(&folder, FATHOM, words, &script).expect(0);
    let (least, most) = stalled(&folder);
    let json = run.json();
    let job = &json["jobs"][0];
    let p99 = |latency: &Value| latency["percentile"]["99.000000"].as_u64().unwrap();
    let clat = p99(&job["read"]["clat_ns"]);
    let resp = p99(&job["fathom"]["read"]["resp_ns"]);
    // One op is due each millisecond: of 6000 the 60th longest waited for all but 60 ms of it.
    let (least, most) = (least - 60_000_000, most - 60_000_000);
    assert!(
        (least / 20 * 19..=most / 20 * 21).contains(&resp),
        "resp {resp}, in truth from {least} to {most}, clat {clat}"
    );
    assert!(clat < 200_000_000, "clat {clat}");
    let checks = json["fathom"]["validity"].as_array().unwrap();
    let check = checks
        .iter()
        .find(|check| check["check"] == "response_time")
        .unwrap();
    assert_eq!(check["ok"], false, "{check}");
    println!("resp {resp} ns, in truth from {least} to {most} ns");
}

#[test]
fn a_file_that_shrinks_under_the_job_is_an_error_of_the_job() {
    let folder = Folder::new();
    for engine in ["psync", "mmap", "io_uring", "libaio"] {
        let words = format!(
            "run --name=t --filename=data --rw=read --bs=4k --size=1m --rate_iops=200 \
             --time_based --runtime=3 --ioengine={engine} --output-format=json"
        );
        let script = "sleep 1; : > data";
        let mut command = folder.command(FATHOM, &words);
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).current_dir(folder.path());
        assert!(shell.status().unwrap().success());
        let run = Run::from(child.wait_with_output().unwrap());
        if let Some(why) = run.refused() {
            println!("skipped: {engine}: {why}");
            continue;
        }
        let run = run.expect(1);
        assert_ne!(run.json()["jobs"][0]["error"], 0, "{engine}");
        assert!(
            run.err.contains("file was truncated to 0 B"),
            "{engine}: {run:#?}"
        );
        std::fs::remove_file(folder.path().join("data")).unwrap();
    }
}

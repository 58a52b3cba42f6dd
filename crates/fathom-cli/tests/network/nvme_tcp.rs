//! `ioengine=nvme_tcp` against `fathom target`, both as programs.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::common::{Folder, Run};
use serde_json::Value;

/// A running target, killed on drop.
struct Target {
    child: Child,
    nqn: String,
    port: String,
}

impl Target {
    fn start(words: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_fathom"))
            .args(["target", "--threads", "1"])
            .args(words.split_whitespace())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let output = child.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        let after = |key: &str| {
            let mut words = line.split_whitespace().skip_while(|&word| word != key);
            words
                .nth(1)
                .unwrap_or_else(|| panic!("no {key} in `{line}`"))
                .to_owned()
        };
        Self {
            nqn: after("nqn"),
            port: after("trsvcid"),
            child,
        }
    }

    fn filename(&self, nsid: u32) -> String {
        let (nqn, port) = (&self.nqn, &self.port);
        format!("trtype=tcp adrfam=ipv4 traddr=127.0.0.1 trsvcid={port} subnqn={nqn} ns={nsid}")
    }

    /// Returns the command of a job on a namespace.
    fn job(&self, folder: &Folder, nsid: u32, words: &str) -> Command {
        let start = "run --name=x --ioengine=nvme_tcp --output-format=json";
        let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), start);
        command.arg(format!("--filename={}", self.filename(nsid)));
        command.args(words.split_whitespace());
        command
    }

    fn run(&self, folder: &Folder, nsid: u32, words: &str) -> Run {
        Run::of(self.job(folder, nsid, words))
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

#[test]
fn an_unreadable_medium_has_the_error_that_linux_reports() {
    let folder = Folder::new();
    let file = "listen = '127.0.0.1:0'\n[[device]]\nname = 'd'\nkind = 'memory'\nsize = '1M'\n\
                [[device.layer]]\nkind = 'fault'\nread_errors_ppm = 1_000_000\nerrno = 61\n\
                [[subsystem]]\nnqn = 'nqn.2026-01.org.example:a'\n[[subsystem.namespace]]\n\
                device = 'd'\n";
    let path = folder.write("faulty.toml", file);
    let target = Target::start(&path.to_string_lossy());
    let run = target.run(&folder, 1, "--rw=read --bs=4k --size=64k");
    assert_eq!(run.json()["jobs"][0]["error"], 61, "{run:#?}");
}

#[test]
fn synchronous_writes_complete_when_they_are_durable() {
    let folder = Folder::new();
    let file = "listen = '127.0.0.1:0'\n[[device]]\nname = 'd'\nkind = 'memory'\nsize = '1M'\n\
                [[device.layer]]\nkind = 'delay'\nwrite_us = 50_000\n\
                [[subsystem]]\nnqn = 'nqn.2026-01.org.example:a'\n[[subsystem.namespace]]\n\
                device = 'd'\n";
    // A sync takes as long as a write, and a durable write is one after the other.
    let path = folder.write("slow-sync.toml", file);
    let target = Target::start(&path.to_string_lossy());
    for words in ["--sync=1", "--sync=dsync"] {
        let run = target.run(
            &folder,
            1,
            &format!("--rw=write --bs=4k --size=16k {words}"),
        );
        let report = check(run, "write", 16 << 10);
        // Not clat, which begins after the command is sent: a thread preempted in between starts it
        // later than the target's delays.
        let lat = report["jobs"][0]["write"]["lat_ns"]["min"].as_f64();
        assert!(lat.unwrap() >= 100e6, "{words}: {lat:?} ns");
    }
}

#[track_caller]
fn check(run: Run, side: &str, bytes: u64) -> Value {
    let report = run.expect(0).json();
    let job = &report["jobs"][0];
    assert_eq!(job["error"], 0, "{report}");
    assert_eq!(job[side]["io_bytes"], bytes, "{report}");
    report
}

#[test]
fn a_job_without_a_size_covers_the_namespace() {
    let (target, folder) = (
        Target::start("--memory 8M --listen 127.0.0.1:0"),
        Folder::new(),
    );
    let words = "--rw=write --bs=64k --iodepth=4 --direct=1";
    let report = check(target.run(&folder, 1, words), "write", 8 << 20);
    assert!(
        report
            .get("disk_util")
            .is_none_or(|disks| disks == &Value::Array(vec![]))
    );
    let words = "--rw=read --bs=1m --iodepth=2 --size=50% --hdgst --ddgst";
    check(target.run(&folder, 1, words), "read", 4 << 20);
    assert_eq!(folder.names(), [""; 0], "no file is made of the address");
}

#[test]
fn data_are_verified_on_any_number_of_queues() {
    let (target, folder) = (
        Target::start("--memory 8M --listen 127.0.0.1:0"),
        Folder::new(),
    );
    for words in [
        "--bs=4k --iodepth=16",
        "--bs=4k --iodepth=16 --queues=4 --ddgst",
        "--bs=128k --iodepth=8 --hdgst --ddgst",
        "--bs=32k --iodepth=8 --fsync=8",
        "--bs=4k --iodepth=8 --io_submit_mode=offload",
    ] {
        let words = format!("--rw=randwrite --verify=crc32c --size=4m {words}");
        check(target.run(&folder, 1, &words), "read", 4 << 20);
    }
    let words = "--rw=randtrim --bs=64k --iodepth=4 --size=2m";
    check(target.run(&folder, 1, words), "trim", 2 << 20);
}

#[track_caller]
fn check_refused(run: Run, wants: &[&str]) {
    let run = run.expect(2);
    for want in wants {
        assert!(run.err.contains(want), "`{want}` is not in {}", run.err);
    }
}

#[test]
fn faults_are_found_before_the_run() {
    let (mut target, folder) = (
        Target::start("--null 1G --listen 127.0.0.1:0"),
        Folder::new(),
    );
    let run = |target: &Target, nsid, words| target.run(&folder, nsid, words);
    let unaligned = run(&target, 1, "--rw=read --bs=1000");
    check_refused(
        unaligned,
        &[
            "1000 B is not a multiple of the 512 B",
            "make `bs` a multiple",
        ],
    );
    check_refused(run(&target, 9, "--rw=read"), &["no namespace 9", "set ns"]);
    check_refused(run(&target, 1, "--rw=write --readonly"), &["readonly"]);
    let right = std::mem::replace(&mut target.nqn, "nqn.2026-01.io.fathom:other".into());
    let wrong = run(&target, 1, "--rw=read");
    check_refused(
        wrong,
        &[
            "fathom:other: Connect: invalid parameters (status 1h/82h)",
            "nvme discover",
        ],
    );
    target.nqn = format!("{right} trtype=rdma");
    check_refused(
        run(&target, 1, "--rw=read"),
        &["trtype=rdma", "use trtype=tcp"],
    );
    target.nqn = right;
    target.child.kill().unwrap();
    target.child.wait().unwrap();
    check_refused(
        run(&target, 1, "--rw=read"),
        &["Connection refused", "start the target"],
    );
}

#[test]
fn a_read_only_namespace_says_so_before_the_run() {
    let folder = Folder::new();
    let disk = folder.write("disk.img", [0; 65_536]);
    let file = format!(
        "listen = '127.0.0.1:0'\n[[device]]\nname = 'd'\nkind = 'file'\npath = '{}'\n\
         read_only = true\n[[subsystem]]\nnqn = 'nqn.2026-01.org.example:a'\n\
         [[subsystem.namespace]]\ndevice = 'd'\n",
        disk.display()
    );
    let path = folder.write("read-only.toml", file);
    let target = Target::start(&path.to_string_lossy());
    for rw in ["write", "trim", "randrw"] {
        let run = target.run(&folder, 1, &format!("--rw={rw} --bs=4k"));
        let path = target.filename(1);
        check_refused(run, &[&format!("{path} "), "hint: "]);
    }
    check_refused(target.run(&folder, 1, "--rw=write"), &["ns=1 is read-only"]);
    check(target.run(&folder, 1, "--rw=read --bs=4k"), "read", 65_536);
}

/// The target dies under a job, and another takes its port: every op is reported, once.
#[test]
fn a_job_survives_a_restart_of_the_target() {
    let folder = Folder::new();
    let socket = |number: u32| {
        folder
            .path()
            .join(format!("{number}.sock"))
            .display()
            .to_string()
    };
    let start = |port: &str, number: u32| {
        let socket = socket(number);
        Target::start(&format!(
            "--memory 64M --listen 127.0.0.1:{port} --socket {socket}"
        ))
    };
    let mut target = start("0", 0);
    // Slowed down, so that the restarts fall into the run.
    let words = "--rw=write --bs=4k --iodepth=16 --rate_iops=2000 --size=16m";
    let job = target.job(&folder, 1, words);
    let job = std::thread::spawn(move || Run::of(job));
    let mut restarts = 0;
    while restarts < 3 && !job.is_finished() {
        // The job has started, or goes on after a restart: a target that dies while a job connects
        // for the first time fails it.
        let stats = format!("target stats --json --socket {}", socket(restarts));
        if folder.fathom(&stats).expect(0).json()["commands"]["writes"] == 0 {
            continue;
        }
        target.child.kill().unwrap();
        target.child.wait().unwrap();
        restarts += 1;
        target = start(&target.port, restarts);
    }
    let report = check(job.join().unwrap(), "write", 16 << 20);
    assert_eq!(report["jobs"][0]["write"]["total_ios"], 4096, "{report}");
    assert!(restarts > 0, "{report}");
    let job = &report["jobs"][0]["fathom"];
    assert!(job["repeated_requests"].as_u64() > Some(0), "{report}");
    let text = report.to_string();
    assert!(text.contains("the engine repeated "), "{report}");
}

//! `fathom trace`, the whole program, on the disk under the build directory, as far as this user
//! may trace it.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::common::{Folder, Run};
use serde_json::Value;

#[test]
fn usage_has_both_forms() {
    for words in ["trace", "trace --uring /dev/vda"] {
        let run = Folder::new().fathom(words).expect(2);
        let want = "Usage: fathom trace [OPTIONS] <DEVICE>\n       \
                    fathom trace [OPTIONS] --uring [--pid <PID>]\n";
        assert!(run.err.contains(want), "{words}: {}", run.err);
    }
}

/// Trace running in the background.
struct Tracing {
    child: Child,
    errors: BufReader<std::process::ChildStderr>,
}

impl Tracing {
    /// Starts a trace; returns why if that is not possible here.
    fn begin(folder: &Folder, words: &str) -> Result<Self, String> {
        let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), &format!("trace {words}"));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        errors.read_line(&mut line).unwrap();
        if line.starts_with("tracing") {
            return Ok(Self { child, errors });
        }
        errors.read_to_string(&mut line).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(2), "{line}");
        assert!(line.contains("\nhint: "), "{line}");
        Err(line)
    }

    /// Stops the trace and waits for its report.
    fn end(mut self) -> Run {
        let pid = self.child.id();
        let killed = Command::new("kill")
            .args(["-INT", &pid.to_string()])
            .status();
        assert!(killed.unwrap().success());
        let mut errors = String::new();
        self.errors.read_to_string(&mut errors).unwrap();
        let mut run = Run::from(self.child.wait_with_output().unwrap());
        run.err = errors;
        assert!(!instance(pid), "the instance is still there");
        run
    }
}

/// Returns whether the trace of this process has left anything in the kernel.
fn instance(pid: u32) -> bool {
    let name = format!("instances/fathom-{pid}");
    Path::new("/sys/kernel/tracing").join(name).exists()
}

/// Returns the block device under a directory, or why there is none.
fn device_under(folder: &Folder) -> Result<String, String> {
    let number = fs::metadata(folder.path()).unwrap().dev();
    let (major, minor) = (number >> 8 & 0xfff, number & 0xff);
    let uevent = format!("/sys/dev/block/{major}:{minor}/uevent");
    let uevent = fs::read_to_string(uevent);
    let uevent = uevent.map_err(|_none| format!("no block device under {:?}", folder.path()))?;
    let name = uevent
        .lines()
        .find_map(|line| line.strip_prefix("DEVNAME="));
    let path = format!("/dev/{}", name.unwrap());
    let there = Path::new(&path).exists();
    there.then_some(path.clone()).ok_or(format!("no {path}"))
}

macro_rules! or_skip {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(why) => {
                println!("skipped: {why}");
                return;
            }
        }
    };
}

fn direction<'a>(record: &'a Value, name: &str) -> &'a Value {
    let directions = record["directions"].as_array().unwrap();
    let mut found = directions.iter().filter(|one| one["direction"] == name);
    found
        .next()
        .unwrap_or_else(|| panic!("no {name}: {record}"))
}

#[test]
fn every_op_of_a_job_is_seen() {
    let folder = Folder::new();
    let device = or_skip!(device_under(&folder));
    // So that nothing is allocated while it is traced.
    let job = "run --name=t --filename=data --rw=randwrite --bs=4k --size=4m --direct=1";
    or_skip!(match folder.fathom(&format!("{job} --number_ios=1")) {
        Run { code: Some(0), .. } => Ok(()),
        run => Err(format!("no direct I/O here: {}", run.err)),
    });
    let tracing = or_skip!(Tracing::begin(&folder, &format!("--json {device}")));
    folder.fathom(&format!("{job} --number_ios=200")).expect(0);
    let record = tracing.end().expect(0).json();
    assert_eq!(record["lost_events"], 0, "{record}");
    let write = direction(&record, "write");
    assert!(write["requests"].as_u64() >= Some(200), "{write}");
    assert!(write["moved_bytes"].as_u64() >= Some(200 * 4096), "{write}");
    let done = &write["device_time"]["all"]["summary"]["count"];
    assert!(done.as_u64() >= Some(200), "{write}");
    let seeks = &record["seeks"];
    assert!(seeks["dispatched"].as_u64() >= Some(200), "{seeks}");
    let counts = seeks["distances"]["count"].as_array().unwrap();
    let sum: u64 = counts.iter().filter_map(Value::as_u64).sum();
    assert_eq!(Some(sum + 1), seeks["dispatched"].as_u64(), "{seeks}");
}

#[test]
fn a_report_is_for_people_too() {
    let folder = Folder::new();
    let device = or_skip!(device_under(&folder));
    let run = or_skip!(Tracing::begin(&folder, &format!("--seconds 100 {device}"))).end();
    // Ended early: what was seen is still reported.
    let run = run.expect(2);
    assert!(run.out.contains("s traced\n"), "{run:#?}");
    assert!(run.err.contains("interrupted"), "{run:#?}");
}

#[test]
fn leftovers_are_removed_by_the_next_trace() {
    let folder = Folder::new();
    let mut killed = or_skip!(Tracing::begin(&folder, "--uring"));
    let pid = killed.child.id();
    killed.child.kill().unwrap();
    killed.child.wait().unwrap();
    folder.fathom("trace --uring --seconds 1").expect(0);
    assert!(!instance(pid));
}

#[test]
fn work_of_io_uring_is_counted() {
    let folder = Folder::new();
    let device = device_under(&folder);
    let tracing = or_skip!(Tracing::begin(&folder, "--uring --json"));
    let job = "run --name=t --filename=data --rw=randread --bs=4k --size=4m --number_ios=500 \
               --ioengine=io_uring --iodepth=8 --direct=1";
    // How many ops are finished as work of the task is the kernel's affair: `perf stat` saw 8 to
    // 166 runs for 500 ops. So there are ten times as many.
    let runs: Vec<_> = (0..10).map(|_| folder.fathom(job)).collect();
    let record = tracing.end().expect(0).json();
    let work = record["work"].as_array().unwrap();
    assert_eq!(work.len(), 2, "{record}");
    let failed = runs.iter().find(|run| run.code != Some(0));
    if failed.is_some() || device.is_err() {
        println!(
            "skipped: no io_uring or no disk here: {}",
            failed.map_or("", |run| &run.err)
        );
        return;
    }
    let of = |key: &str| work.iter().filter_map(|one| one[key].as_u64()).sum::<u64>();
    assert!((1..=of("items")).contains(&of("runs")), "{record}");
}

#[test]
fn a_full_disk_is_told() {
    let Ok(full) = File::create("/dev/full") else {
        println!("skipped: no /dev/full");
        return;
    };
    let folder = Folder::new();
    drop(or_skip!(Tracing::begin(&folder, "--uring")).end());
    let words = "trace --uring --seconds 1";
    let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), words);
    let run = command
        .stdout(full)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let run = Run::from(run).expect(2);
    assert!(run.err.contains("standard output"), "{run:#?}");
}

#[test]
fn untraceable_targets_are_refused() {
    let folder = Folder::new();
    folder.write("file", "x");
    for (words, wanted) in [
        ("", "DEVICE"),
        ("--seconds 0 /dev/null", "--seconds"),
        ("--buffer 0 /dev/null", "--buffer"),
        ("/dev/null", "not a block device\nhint: "),
        ("file", "not a block device\nhint: "),
        (".", "not a block device\nhint: "),
        ("/dev/no-such-disk", "No such file"),
        ("--pid 1 /dev/null", "--pid"),
        ("--uring /dev/null", "--uring"),
        ("--uring --pid 0", "--pid"),
        ("--uring --seconds 1 --pid 4294967295", "hint: "),
    ] {
        let run = folder.fathom(&format!("trace {words}")).expect(2);
        assert!(run.err.contains(wanted), "{words}: {run:#?}");
        assert!(run.out.is_empty(), "{words}: {run:#?}");
    }
}

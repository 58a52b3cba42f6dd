//! Runs interrupted while they wait for something other than their ops.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::common::{Folder, Run};

/// Polls a condition; returns false if it does not hold within a minute.
fn comes_about(mut there: impl FnMut() -> bool) -> bool {
    (0..3000).any(|_| {
        let there = there();
        if !there {
            thread::park_timeout(Duration::from_millis(20));
        }
        there
    })
}

/// Child process, killed on drop.
struct Running(Option<Child>);

impl Running {
    fn start(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(Some(command.spawn().unwrap()))
    }

    fn signal(&self, name: &str) {
        let id = self.0.as_ref().unwrap().id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status();
        assert!(sent.unwrap().success());
    }

    /// Waits for the outcome, which must come within a minute.
    #[track_caller]
    fn outcome(mut self) -> Run {
        let child = self.0.as_mut().unwrap();
        let ends = comes_about(|| child.try_wait().unwrap().is_some());
        assert!(ends, "it did not end");
        self.0.take().unwrap().wait_with_output().unwrap().into()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

/// Waits for the PID that a command writes to a file.
fn number(path: &Path) -> u32 {
    let mut number = None;
    let read = || -> Option<u32> { fs::read_to_string(path).ok()?.trim().parse().ok() };
    let comes = comes_about(|| {
        number = read();
        number.is_some()
    });
    assert!(comes, "{} was not written", path.display());
    number.unwrap()
}

/// Returns whether a process ends by itself within a minute; kills it if not.
fn ends(process: u32) -> bool {
    let ended = comes_about(|| {
        let stat = fs::read_to_string(format!("/proc/{process}/stat"));
        stat.map_or(true, |stat| stat.contains(") Z "))
    });
    if !ended {
        let _gone = Command::new("kill")
            .args(["-KILL", &process.to_string()])
            .status();
    }
    ended
}

/// Returns a run whose hook command starts a process and writes its PID to the file `number`.
fn job_with(folder: &Folder, option: &str) -> Command {
    folder.write(
        "command",
        "sh -c 'echo $$ > new; mv new number; exec sleep 1000'; true",
    );
    let words = "run --name=t --ioengine=null --rw=read --size=4k";
    let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), words);
    command.arg(format!("--{option}=sh command"));
    command
}

#[test]
fn an_interrupt_ends_the_children_of_exec_prerun() {
    for (signal, again) in [("INT", None), ("TERM", None), ("INT", Some("TERM"))] {
        let folder = Folder::new();
        let run = Running::start(job_with(&folder, "exec_prerun"));
        let process = number(&folder.path().join("number"));
        run.signal(signal);
        if let Some(again) = again {
            run.signal(again);
        }
        let run = run.outcome();
        assert!(
            ends(process),
            "it is an orphan after {signal} {again:?}: {run:#?}"
        );
        match again {
            None => assert_eq!(run.code, Some(2), "{run:#?}"),
            // It may have been done before the second came.
            Some(_) => assert!(matches!(run.code, None | Some(2)), "{run:#?}"),
        }
    }
}

#[test]
fn a_second_interrupt_ends_exec_postrun() {
    let folder = Folder::new();
    let run = Running::start(job_with(&folder, "exec_postrun"));
    let process = number(&folder.path().join("number"));
    run.signal("INT");
    run.signal("TERM");
    let run = run.outcome();
    assert!(ends(process), "it is an orphan: {run:#?}");
    assert_eq!(run.code, None, "{run:#?}");
}

/// Control group that limits reads of the disk below a file; `None` where that is not possible.
struct Held(std::path::PathBuf);

impl Held {
    fn new(file: &Path, iops: u32) -> Option<Self> {
        let device = fs::metadata(file).ok()?.dev();
        let (major, minor) = (device >> 8 & 0xfff, device & 0xff);
        let name = format!("fathom-interrupted-{}", std::process::id());
        let group = Path::new("/sys/fs/cgroup/blkio").join(name);
        fs::create_dir(&group).ok()?;
        let held = Self(group);
        let limit = held.0.join("blkio.throttle.read_iops_device");
        fs::write(limit, format!("{major}:{minor} {iops}\n")).ok()?;
        Some(held)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _left_behind = fs::remove_dir(&self.0);
    }
}

/// The kernel tears down libaio's queue only when the device has completed its ops; the program
/// says so at once.
#[test]
fn waiting_for_a_slow_disk_is_reported() {
    let folder = Folder::new();
    let words = "run --name=l --rw=write --size=4m --end_fsync=1 --filename=data";
    folder.fathom(words).expect(0);
    let Some(held) = Held::new(&folder.path().join("data"), 8) else {
        return println!("skipped: needs root, blkio of cgroup v1 and a file on a disk");
    };
    let words = "run --name=slow --ioengine=libaio --rw=randread --direct=1 --bs=4k --size=4m \
                 --iodepth=128 --filename=data --time_based --runtime=600";
    // The shell enters the group, and becomes the program.
    let script = r#"echo $$ > "$0" && exec "$@" 2>said"#;
    let mut command = folder.command("sh", "-c");
    command
        .arg(script)
        .arg(held.0.join("cgroup.procs"))
        .arg(env!("CARGO_BIN_EXE_fathom"));
    command.args(words.split_whitespace());
    let run = Running::start(command);
    let has_said = |what: &str| {
        let said = fs::read_to_string(folder.path().join("said")).unwrap_or_default();
        said.contains(what)
    };
    let id = run.0.as_ref().unwrap().id();
    assert!(comes_about(|| has_submitted(id)));
    run.signal("INT");
    assert!(comes_about(|| has_said(
        "still draining in-flight I/O of `slow`"
    )));
    run.signal("TERM");
    assert!(comes_about(|| has_said(
        "leaving without a report, once the device"
    )));
    let run = run.outcome();
    assert!(run.code.is_none(), "{run:#?}");
}

/// Returns whether the job `slow` of a process has submitted reads to the disk.
fn has_submitted(process: u32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{process}/task"))
        .into_iter()
        .flatten();
    let reads = tasks.flatten().filter_map(|task| {
        let is_job = fs::read_to_string(task.path().join("comm")).ok()?.trim() == "slow";
        let io = fs::read_to_string(task.path().join("io")).ok()?;
        let bytes = io
            .lines()
            .find_map(|line| line.strip_prefix("read_bytes: "))?;
        Some(is_job && bytes != "0")
    });
    reads.into_iter().any(|has_read| has_read)
}

#[test]
fn a_trigger_does_not_keep_the_user_waiting() {
    let folder = Folder::new();
    let script = "echo $$ > new; mv new number; sleep 1000";
    let mut command = folder.command(
        env!("CARGO_BIN_EXE_fathom"),
        "run --name=t --ioengine=null --rw=read --size=4k --time_based --runtime=1000 \
         --trigger-timeout=1",
    );
    command.arg(format!("--trigger={script}"));
    let run = Running::start(command);
    let process = number(&folder.path().join("number"));
    run.signal("INT");
    let run = run.outcome().expect(2);
    assert!(ends(process), "it is an orphan: {run:#?}");
}

#[test]
fn a_host_that_never_answers_does_not_keep_the_user_waiting() {
    let host = TcpListener::bind("127.0.0.1:0").unwrap();
    host.set_nonblocking(true).unwrap();
    let port = host.local_addr().unwrap().port();
    let nvme = format!("trtype=tcp adrfam=ipv4 traddr=127.0.0.1 trsvcid={port} subnqn=nqn.x ns=1");
    for words in [
        ["--ioengine=nvme_tcp", &format!("--filename={nvme}")],
        ["--ioengine=nbd", &format!("--uri=nbd://127.0.0.1:{port}/x")],
    ] {
        let folder = Folder::new();
        let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), "run --name=t --rw=read");
        command.args(words).arg("--connect_timeout=600");
        let run = Running::start(command);
        let mut silent = None;
        assert!(comes_about(|| {
            silent = host.accept().ok();
            silent.is_some()
        }));
        run.signal("INT");
        let run = run.outcome().expect(2);
        assert!(run.err.contains("interrupted while connecting"), "{run:#?}");
    }
}

#[test]
fn a_merge_into_a_pipe_without_a_reader_ends_on_request() {
    let folder = Folder::new();
    // A record of the block layer: a read of 4 KiB.
    let mut trace = vec![0; 48];
    trace[..8].copy_from_slice(&[7, 0x74, 0x61, 0x65, 1, 0, 0, 0]);
    trace[24..32].copy_from_slice(&[0, 0x10, 0, 0, 1, 0, 0x11, 0]);
    folder.write("trace", trace);
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(pipe).status().unwrap().success());
    let words = "run --name=t --read_iolog=trace --merge_blktrace_file=pipe --merge-blktrace-only";
    let run = Running::start(folder.command(env!("CARGO_BIN_EXE_fathom"), words));
    assert!(comes_about(|| counts_signals(run.0.as_ref().unwrap().id())));
    run.signal("TERM");
    let run = run.outcome().expect(2);
    assert!(
        run.err.contains("interrupted while merging into pipe"),
        "{run:#?}"
    );
}

/// Returns whether a process has a handler for SIGTERM, instead of being ended by it.
fn counts_signals(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    caught.is_some_and(|mask| mask >> 14 & 1 == 1)
}

/// Returns the files of `fathom table` in these directories.
fn tables_files(folders: &[&Path]) -> Vec<std::path::PathBuf> {
    let entries = folders
        .iter()
        .flat_map(|folder| fs::read_dir(folder).unwrap());
    let paths = entries.map(|entry| entry.unwrap().path());
    let is_one = |path: &std::path::PathBuf| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("fathom-aio-submit-"))
    };
    paths.filter(is_one).collect()
}

#[test]
fn leftovers_of_a_killed_table_are_removed_by_the_next() {
    let folder = Folder::new();
    let memory = Path::new("/dev/shm");
    if !memory.is_dir() {
        return println!("skipped: no /dev/shm");
    }
    let folders = [folder.path(), memory];
    // Of another user, or of another test.
    let before = tables_files(&folders);
    let new = || {
        let mut now = tables_files(&folders);
        now.retain(|path| !before.contains(path));
        now
    };
    let words = format!("table aio-submit {} --seconds=1", folder.path().display());
    let start = || Running::start(folder.command(env!("CARGO_BIN_EXE_fathom"), &words));
    let table = start();
    // The second is made just before the run that lays the first out begins.
    assert!(comes_about(|| new().len() == 2));
    table.signal("KILL");
    table.outcome();
    let left = new();
    let table = start();
    assert!(
        comes_about(|| left.iter().all(|path| !path.exists())),
        "{left:?}"
    );
    table.signal("TERM");
    let run = table.outcome();
    assert_eq!(new(), Vec::<std::path::PathBuf>::new(), "{run:#?}");
}

/// Builds a library, for LD_PRELOAD, that sets the time of day back by 1000 s once a file exists
/// and records that it was asked for the time; `None` without a C compiler.
fn time_of_day(folder: &Folder) -> Option<std::path::PathBuf> {
    let source = folder.write(
        "time.c",
        r#"#define _GNU_SOURCE
           #include <fcntl.h>
           #include <sys/time.h>
           #include <time.h>
           #include <unistd.h>
           int gettimeofday(struct timeval *now, void *zone) {
               struct timespec time;
               clock_gettime(CLOCK_REALTIME, &time);
               now->tv_sec = time.tv_sec;
               now->tv_usec = time.tv_nsec / 1000;
               if (access("set_back", F_OK) == 0) {
                   static int told;
                   now->tv_sec -= 1000;
                   if (!told) { told = 1; close(open("seen", O_CREAT | O_WRONLY, 0600)); }
               }
               return 0;
           }"#,
    );
    let library = folder.path().join("time.so");
    let mut compiler = Command::new("cc");
    compiler
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(&source);
    let made = compiler.status().is_ok_and(|status| status.success());
    if !made {
        println!("skipped: no C compiler");
    }
    made.then_some(library)
}

/// Runs the program on that clock, which is set back once the run has begun.
fn set_back(folder: &Folder, library: &Path, words: &str) -> Running {
    let words = format!(
        "run --name=t --ioengine=null --rw=read --size=1g --clocksource=gettimeofday \
         --rate_iops=50 --write_iops_log=log --time_based --output-format=json {words}"
    );
    let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), &words);
    command.env("LD_PRELOAD", library);
    let run = Running::start(command);
    assert!(comes_about(|| folder
        .path()
        .join("log_iops.1.log")
        .exists()));
    folder.write("set_back", "");
    assert!(comes_about(|| folder.path().join("seen").exists()));
    run
}

#[test]
fn a_clock_that_is_set_back_does_not_keep_a_run_from_ending() {
    let folder = Folder::new();
    let Some(library) = time_of_day(&folder) else {
        return;
    };
    let run = set_back(&folder, &library, "--runtime=600");
    run.signal("TERM");
    run.outcome().expect(2);
    for name in ["set_back", "seen", "log_iops.1.log"] {
        fs::remove_file(folder.path().join(name)).unwrap();
    }
    // By itself, when its time is over.
    let run = set_back(&folder, &library, "--runtime=2")
        .outcome()
        .expect(0);
    let warnings = run.json()["fathom"]["warnings"].to_string();
    assert!(warnings.contains("time_of_day_set"), "{warnings}");
    let runtime = run.json()["jobs"][0]["read"]["runtime"].as_u64().unwrap();
    assert!((1_000..=60_000).contains(&runtime), "{runtime} ms");
}

//! Errors injected into every system call that a run makes, by `strace -e inject`.
//!
//! Each kind of run is traced once, to see which calls it makes and how often. Then it is run again
//! and again, each time with one call failing with one errno: the first after the loader's, the
//! second, one in the middle, the last. Whatever failed, the run ends, with a report that holds or
//! a nonzero exit code and a reason, without a panic, and leaves no process, no other file, no
//! control group. What is more is in `EXPECTED`: which errors the user need not hear of, and which
//! must not be passed over.
//!
//! A usual test run takes the calls of the plainest run, and of the others those that they make
//! more or less often; with `FATHOM_INJECT_ALL=1` it takes all of them, and more errnos.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "the whole file is a test, its helpers too"
)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use common::Folder;
use serde_json::Value;

/// Kinds of runs: name, arguments, bytes that the jobs move. The first is the simplest.
const RUNS: [(&str, &str, u64); 23] = [
    ("psync", "--rw=randrw", 64 << 10),
    ("sync", "--rw=write --fsync=4 --end_fsync=1", 64 << 10),
    ("pvsync2", "--ioengine=pvsync2 --rw=randrw", 64 << 10),
    ("mmap", "--ioengine=mmap --rw=randrw --fsync=4", 64 << 10),
    (
        "libaio",
        "--ioengine=libaio --direct=1 --iodepth=4 --rw=randrw",
        64 << 10,
    ),
    (
        "io_uring",
        "--ioengine=io_uring --iodepth=4 --rw=randrw",
        64 << 10,
    ),
    (
        "io_uring_fixed",
        "--ioengine=io_uring --iodepth=4 --fixedbufs=1 --registerfiles=1 --fsync=4 --rw=randwrite",
        64 << 10,
    ),
    (
        "sqpoll",
        "--ioengine=io_uring --iodepth=4 --sqthread_poll=1 --rw=randread",
        64 << 10,
    ),
    (
        "offload",
        "--io_submit_mode=offload --iodepth=4 --rw=randrw",
        64 << 10,
    ),
    (
        "offload_io_uring",
        "--io_submit_mode=offload --ioengine=io_uring --iodepth=4 --rw=randrw",
        64 << 10,
    ),
    (
        "offload_libaio",
        "--io_submit_mode=offload --ioengine=libaio --direct=1 --iodepth=4 --rw=randrw",
        64 << 10,
    ),
    (
        "logs",
        "--rw=read --write_lat_log=log --write_bw_log=log --output=report",
        64 << 10,
    ),
    (
        "hooks",
        "--rw=read --exec_prerun=true --exec_postrun=true",
        64 << 10,
    ),
    ("trim", "--rw=randtrim", 64 << 10),
    ("cgroup", "--rw=read --cgroup=fathom-inject-@", 64 << 10),
    (
        "pace",
        "--rw=read --rate_iops=200 --numjobs=2 --pre_read=1",
        128 << 10,
    ),
    (
        "posixaio",
        "--ioengine=posixaio --iodepth=4 --rw=randrw --fsync=4",
        64 << 10,
    ),
    (
        "splice",
        "--ioengine=splice --rw=randrw --fsync=4",
        64 << 10,
    ),
    ("falloc", "--ioengine=falloc --rw=trimwrite", 128 << 10),
    (
        "ftruncate",
        "--ioengine=ftruncate --rw=write --filename=made",
        64 << 10,
    ),
    (
        "filecreate",
        "--ioengine=filecreate --filename=made1:made2:made3 --rw=write",
        12 << 10,
    ),
    (
        "filedelete",
        "--ioengine=filedelete --filename=made1:made2:made3 --rw=write",
        12 << 10,
    ),
    (
        "dirdelete",
        "--ioengine=dirdelete --filename=made1:made2:made3",
        12 << 10,
    ),
];

/// Expected effect of a call that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// The run completes and exits with 0.
    Harmless,
    /// The run exits with another code.
    Failed,
    /// The call is the loader's, the allocator's or the standard library's, which end the process
    /// by a signal or a panic of their own.
    Runtime,
    /// One of the first two.
    Either,
}

use Expected::{Either, Failed, Harmless, Runtime};

/// Calls, errnos (none: all), and the expected effect; the first matching row applies.
const EXPECTED: &[(&str, &str, Expected)] = &[
    // Signals break off what is begun again.
    (
        "pread64 pwrite64 preadv pwritev fsync fdatasync msync",
        "EINTR",
        Harmless,
    ),
    (
        "fallocate io_submit io_getevents io_uring_enter",
        "EINTR",
        Harmless,
    ),
    ("waitid clock_nanosleep openat read", "EINTR", Harmless),
    // The kernel is out of requests for a moment.
    ("io_submit", "EAGAIN", Harmless),
    ("splice vmsplice unlink rmdir", "EINTR", Harmless),
    // What the user asked for.
    ("splice vmsplice", "", Failed),
    ("pwrite64 preadv pwritev fsync fdatasync msync", "", Failed),
    ("io_getevents", "", Failed),
    // What can only be passed over.
    (
        "madvise sched_setaffinity munmap close lseek io_destroy prctl",
        "",
        Either,
    ),
    (
        "sigaltstack sched_getaffinity uname sysinfo sched_yield",
        "",
        Harmless,
    ),
    // Before `main`, and where nothing can be reported any more.
    (
        "mmap mprotect poll getrandom rt_sigaction access arch_prctl",
        "",
        Runtime,
    ),
];

/// Calls exempt from injection: those without which nothing is left to test (process and thread
/// control), waiting between threads, whose only errors would be bugs of ours, and calls that
/// cannot fail, whose negated errno would pass for another process's number.
const LEFT_OUT: &str = "execve exit exit_group rt_sigreturn set_tid_address set_robust_list rseq \
                        brk clone clone3 fork vfork restart_syscall futex \
                        gettid getpid getppid getuid geteuid getgid getegid";

/// Errnos injected in a usual run, and those that a long one adds.
const ERRNOS: [&str; 3] = ["EIO", "EINTR", "EAGAIN"];
const MORE_ERRNOS: [&str; 5] = ["ENOMEM", "ENOSPC", "EPERM", "EMFILE", "EINVAL"];

/// One call that fails in one run.
#[derive(Clone, Debug)]
struct Injection {
    run: usize,
    call: String,
    errno: &'static str,
    /// Number of the call within its thread, from 1.
    number: u32,
}

/// Outcome of a run with an injected error.
#[derive(Debug)]
struct Outcome {
    /// Exit code, or 128 plus the signal.
    code: i32,
    out: String,
    err: String,
    /// The trace shows the injected error.
    was_injected: bool,
    /// Files left behind that are not the user's.
    left: Vec<String>,
    seconds: f64,
}

#[test]
fn every_kernel_error_ends_in_a_report_or_a_reason() {
    if !has_strace() {
        return println!("skipped: no strace");
    }
    let all = std::env::var_os("FATHOM_INJECT_ALL").is_some();
    let injections = injections(all);
    let (next, threads) = (
        AtomicUsize::new(0),
        thread::available_parallelism().unwrap().get(),
    );
    let work = || {
        let mut wrong = Vec::new();
        let mut slow = Vec::new();
        let mut injected = 0;
        // Relaxed: a number that each thread takes once.
        while let Some(injection) = injections.get(next.fetch_add(1, Ordering::Relaxed)) {
            let Some(outcome) = run(injection, "inject") else {
                wrong.push(format!("{injection:?}: did not end in {LIMIT_S} s"));
                continue;
            };
            injected += u32::from(outcome.was_injected);
            wrong.extend(wrong_with(injection, &outcome));
            if outcome.seconds > IDLE_LIMIT_S {
                slow.push(injection);
            }
        }
        (wrong, slow, injected)
    };
    let (mut wrong, mut slow, mut injected) = (Vec::new(), Vec::new(), 0);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            let (more_wrong, more_slow, more_injected) = worker.join().unwrap();
            injected += more_injected;
            wrong.extend(more_wrong);
            slow.extend(more_slow);
        }
    });
    // By itself a run is to end in 3 s; where others have the processors, in the limit.
    for injection in slow {
        match run(injection, "again") {
            Some(outcome) if outcome.seconds <= IDLE_LIMIT_S => {}
            Some(outcome) => println!("slow: {injection:?}: {:.1} s", outcome.seconds),
            None => wrong.push(format!("{injection:?}: did not end in {LIMIT_S} s")),
        }
    }
    println!(
        "{injected} errors were injected in {} runs",
        injections.len()
    );
    // Else the test has lost what it looks for.
    assert!(
        injected as usize > injections.len() / 2,
        "{injected} of {}",
        injections.len()
    );
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        injections.len(),
        wrong.join("\n")
    );
}

/// Engines without a run of their own, each with the reason.
const WITHOUT_RUN: &[(&str, &str)] = &[
    ("psync", "the default"),
    ("sync", "the calls of psync, and lseek"),
    ("vsync", "the calls of sync on vectors"),
    ("pvsync", "pvsync2 without flags"),
    ("null", "makes no call"),
    ("page_fault", "touches memory"),
    ("cpuio", "burns a processor"),
    ("exec", "its calls are those of hooks"),
    ("net", "has errors of its own in a test of its own"),
    ("netsplice", "as net"),
    ("nvme_tcp", "has errors of its own in a test of its own"),
    ("e4defrag", "needs ext4"),
    ("filestat", "changes nothing"),
    ("dirstat", "changes nothing"),
    ("dircreate", "dirdelete, whose layout makes its calls"),
];

#[test]
fn every_engine_has_a_run_or_a_reason() {
    let list = Folder::new().fathom("run --enghelp").expect(0).out;
    let engines = list.lines().skip(1).map(str::trim);
    for engine in engines.filter(|name| !name.is_empty()) {
        let has_run = RUNS.iter().any(|(_, words, _)| {
            let given = words
                .split(' ')
                .filter_map(|word| word.strip_prefix("--ioengine="));
            given.into_iter().any(|given| given == engine)
        });
        let excused = WITHOUT_RUN.iter().any(|(name, _)| *name == engine);
        assert!(has_run != excused, "{engine}");
    }
}

fn has_strace() -> bool {
    let mut command = Command::new("strace");
    command.args([
        "-f",
        "--seccomp-bpf",
        "-qq",
        "-o",
        "/dev/null",
        "-e",
        "trace=read",
        "true",
    ]);
    let status = command.stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Returns all injections to try.
fn injections(all: bool) -> Vec<Injection> {
    let left_out: BTreeSet<&str> = LEFT_OUT.split_whitespace().collect();
    let loader = most(&counted(&["--version"]));
    let plain = most(&counted(&words(0, "count")));
    let mut injections = Vec::new();
    for run in 0..RUNS.len() {
        let counts = counted(&words(run, &format!("count-{run}")));
        for (call, by_thread) in &counts {
            let most = by_thread.values().copied().max().unwrap_or(0);
            let is_known = !call.starts_with("syscall_") && !left_out.contains(call.as_str());
            let is_new = run == 0 || plain.get(call) != Some(&most);
            if !is_known || !(all || is_new) {
                continue;
            }
            let begins = loader.get(call).copied().unwrap_or(0);
            let mut numbers =
                BTreeSet::from([begins + 1, begins + 2, (begins + most) / 2 + 1, most]);
            if by_thread.len() > 1 {
                numbers.extend([1, 2]);
            }
            numbers.retain(|&number| (1..=most).contains(&number));
            let errnos = ERRNOS
                .iter()
                .chain(all.then_some(&MORE_ERRNOS).into_iter().flatten());
            // The kernel says EINVAL to a range that cannot be mapped: our own bug, which debug
            // builds assert.
            let errnos = errnos.filter(|&&errno| (call.as_str(), errno) != ("munmap", "EINVAL"));
            for errno in errnos {
                injections.extend(numbers.iter().map(|&number| Injection {
                    run,
                    call: call.clone(),
                    errno,
                    number,
                }));
            }
        }
    }
    injections
}

fn most(counts: &BTreeMap<String, BTreeMap<String, u32>>) -> BTreeMap<String, u32> {
    let each = counts.iter();
    each.map(|(call, by_thread)| (call.clone(), by_thread.values().copied().max().unwrap_or(0)))
        .collect()
}

/// Returns how often each thread makes each call.
fn counted(words: &[impl AsRef<str>]) -> BTreeMap<String, BTreeMap<String, u32>> {
    let folder = Folder::new();
    let trace = folder.path().join("trace");
    let mut command = Command::new("strace");
    command
        .args(["-f", "-qq", "-o"])
        .arg(&trace)
        .arg(env!("CARGO_BIN_EXE_fathom"));
    command.args(words.iter().map(AsRef::as_ref));
    command.current_dir(folder.path()).stdin(Stdio::null());
    command.output().unwrap();
    let mut counts: BTreeMap<String, BTreeMap<String, u32>> = BTreeMap::new();
    for line in fs::read_to_string(trace).unwrap().lines() {
        let Some((thread, rest)) = line.split_once(' ') else {
            continue;
        };
        let Some((call, _)) = rest.trim_start().split_once('(') else {
            continue;
        };
        if call.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            *counts
                .entry(call.into())
                .or_default()
                .entry(thread.into())
                .or_default() += 1;
        }
    }
    counts
}

/// Returns the arguments of a run; `@` becomes a unique name.
fn words(run: usize, name: &str) -> Vec<String> {
    let name = format!("{}-{name}", std::process::id());
    let own = RUNS[run].1.replace('@', &name);
    // A second list of files would add to the first.
    let files = match own.contains("--filename=") {
        true => "",
        false => "--filename=data",
    };
    let words = format!("run --name=t {files} --bs=4k --size=64k --output-format=json {own}");
    words.split_whitespace().map(String::from).collect()
}

/// Runs with an injected error; `None` if the run does not end.
fn run(injection: &Injection, turn: &str) -> Option<Outcome> {
    let (folder, beside) = (Folder::new(), Folder::new());
    let Injection {
        call,
        errno,
        number,
        run,
    } = injection;
    let name = format!("{run}-{call}-{errno}-{number}-{turn}");
    let trace = beside.path().join("trace");
    let mut command = Command::new("strace");
    command
        .args(["-f", "--seccomp-bpf", "-qq", "-o"])
        .arg(&trace);
    command.args(["-e", &format!("trace={call}")]);
    command.args(["-e", &format!("inject={call}:error={errno}:when={number}")]);
    command
        .arg(env!("CARGO_BIN_EXE_fathom"))
        .args(words(*run, &name));
    command
        .env_remove("RUST_BACKTRACE")
        .current_dir(folder.path())
        .stdin(Stdio::null());
    command.stdout(File::create(beside.path().join("out")).unwrap());
    command.stderr(File::create(beside.path().join("err")).unwrap());
    let begun = now();
    let mut child = command.process_group(0).spawn().unwrap();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if now() - begun > LIMIT_S {
            let group = format!("-{}", child.id());
            Command::new("kill")
                .args(["-KILL", "--", &group])
                .status()
                .unwrap();
            child.wait().unwrap();
            return None;
        }
        thread::park_timeout(Duration::from_millis(2));
    };
    let seconds = now() - begun;
    let read = |name: &str| {
        let bytes = fs::read(beside.path().join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let report = fs::read_to_string(folder.path().join("report"));
    let group = format!(
        "/sys/fs/cgroup/blkio/fathom-inject-{}-{name}",
        std::process::id()
    );
    let mut left: Vec<String> = left_in(&folder);
    if Path::new(&group).exists() {
        remove(&group);
        left.push(group);
    }
    Some(Outcome {
        code: status
            .code()
            .unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
        out: report.unwrap_or_else(|_| read("out")),
        err: read("err"),
        was_injected: read("trace").contains("(INJECTED)"),
        left,
        seconds,
    })
}

/// Removes a control group once the kernel has released its last thread.
fn remove(group: &str) {
    for _ in 0..500 {
        match fs::remove_dir(group) {
            Err(error) if error.kind() == ErrorKind::ResourceBusy => {
                thread::park_timeout(Duration::from_millis(10));
            }
            removed => return removed.unwrap(),
        }
    }
    panic!("{group} is in use");
}

/// Returns files that are neither complete data files nor requested outputs.
fn left_in(folder: &Folder) -> Vec<String> {
    let mut left = folder.names();
    left.retain(|name| match name.as_str() {
        "data" => fs::metadata(folder.path().join(name)).unwrap().len() != 64 << 10,
        "report" | "t.prerun.txt" | "t.postrun.txt" => false,
        // Of engines that create, cut or remove the files that the user named.
        own if own.starts_with("made") => false,
        log => !log.starts_with("log"),
    });
    left
}

/// Returns what is wrong with the outcome of a run, if anything.
fn wrong_with(injection: &Injection, outcome: &Outcome) -> Option<String> {
    // Runs differ in how often their threads look around.
    if !outcome.was_injected {
        return None;
    }
    let expected = expected(injection);
    let is_loader = outcome.code == 127 && outcome.err.contains("shared libraries");
    if is_loader || expected == Runtime {
        return None;
    }
    let why = why_wrong(injection, outcome, expected)?;
    let name = RUNS[injection.run].0;
    let Injection {
        call,
        errno,
        number,
        ..
    } = injection;
    let (code, err) = (outcome.code, outcome.err.trim());
    Some(format!(
        "{name}: {call} {number} {errno}: {why}: code {code}: {err}"
    ))
}

fn why_wrong(injection: &Injection, outcome: &Outcome, expected: Expected) -> Option<&'static str> {
    let Outcome { code, err, .. } = outcome;
    if !matches!(code, 0..=2) {
        return Some("no exit code of ours");
    }
    // The standard library's own: it closes folders that it has read.
    let is_bug = err.contains("panicked") && !err.contains("closedir");
    if is_bug || (err.contains("internal error") && !err.contains("closedir")) {
        return Some("a panic");
    }
    if *code == 0 && !is_whole(&outcome.out, RUNS[injection.run].2) {
        return Some("a report that does not hold");
    }
    // What cannot be said cannot be heard.
    if *code != 0 && err.trim().is_empty() && injection.call != "write" {
        return Some("no reason");
    }
    let takes_away = ["unlink", "unlinkat", "rmdir", "rename", "ftruncate"];
    if !outcome.left.is_empty() && !takes_away.contains(&injection.call.as_str()) {
        println!("{:?}", outcome.left);
        return Some("something was left behind");
    }
    match expected {
        Harmless if *code != 0 => Some("it is harmless"),
        Failed if *code == 0 => Some("it was passed over"),
        _ => None,
    }
}

/// Returns whether a report says that all was done and nothing failed.
fn is_whole(out: &str, bytes: u64) -> bool {
    let Ok(report) = serde_json::from_str::<Value>(out) else {
        return false;
    };
    let jobs = report["jobs"].as_array().cloned().unwrap_or_default();
    let moved = |job: &Value| {
        let directions = ["read", "write", "trim"].iter();
        directions
            .map(|&direction| job[direction]["io_bytes"].as_u64().unwrap_or(0))
            .sum::<u64>()
    };
    jobs.iter().all(|job| job["error"] == 0) && jobs.iter().map(moved).sum::<u64>() == bytes
}

fn expected(injection: &Injection) -> Expected {
    let has = |list: &str, word: &str| list.split_whitespace().any(|listed| listed == word);
    let mut rows = EXPECTED.iter().filter(|(calls, errnos, _)| {
        has(calls, &injection.call) && (errnos.is_empty() || has(errnos, injection.errno))
    });
    rows.next().map_or(Either, |row| row.2)
}

/// Returns the time in seconds.
fn now() -> f64 {
    let uptime = fs::read_to_string("/proc/uptime").unwrap();
    uptime.split(' ').next().unwrap().parse().unwrap()
}

/// A run that takes longer is considered hung, however busy the machine.
const LIMIT_S: f64 = 30.0;
/// Longest duration of a run on an idle machine.
const IDLE_LIMIT_S: f64 = 3.0;

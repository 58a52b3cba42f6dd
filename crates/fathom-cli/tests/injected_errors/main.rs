//! Errors injected into every system call that a run makes, by `strace -e inject`.
//!
//! Each kind of run is traced once, to see which calls it makes and how often. Then it is run again
//! and again, each time with one call failing with one errno: the first after the loader's, the
//! second, one in the middle, the last. Whatever failed, the run ends, with a report that holds or
//! a nonzero exit code and a reason, without a panic, and leaves no process, no other file, no
//! control group. What is more is in `EXPECTED`: which errors the user need not hear of, and which
//! must not be passed over.
//!
//! A usual test run takes the calls of the plainest run, and of the others a third of the errors
//! of those that they make more or less often; with `FATHOM_INJECT_ALL=1` it takes all of them, and
//! more errnos.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "the whole file is a test, its helpers too"
)]

mod cases;
#[path = "../common/mod.rs"]
mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use cases::{ERRNOS, EXPECTED, Expected, LEFT_OUT, MORE_ERRNOS, RUNS, WITHOUT_RUN};
use common::{Folder, each};
use serde_json::Value;

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
    let (mut wrong, mut slow, mut injected) = (Vec::new(), Vec::new(), 0);
    for (injection, outcome) in each(&injections, |one| (one, run(one, "inject"))) {
        let Some(outcome) = outcome else {
            wrong.push(format!("{injection:?}: did not end in {LIMIT_S} s"));
            continue;
        };
        injected += u32::from(outcome.was_injected);
        wrong.extend(wrong_with(injection, &outcome));
        if outcome.seconds > IDLE_LIMIT_S {
            slow.push(injection);
        }
    }
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

/// The file is shorter than the op's end because the op was to extend it.
#[test]
fn a_failed_write_that_extends_a_file_is_put_down_to_the_device() {
    if !has_strace() {
        return println!("skipped: no strace");
    }
    let folder = Folder::new();
    let words = "-f -qq -o trace -e inject=pwrite64:error=EIO:when=8";
    let mut command = folder.command("strace", words);
    command.args([
        env!("CARGO_BIN_EXE_fathom"),
        "run",
        "--name=t",
        "--rw=write",
    ]);
    command.args(["--size=64k", "--fallocate=none"]);
    let run = common::Run::of(command).expect(1);
    assert!(run.err.contains("Input/output error"), "{run:#?}");
    assert!(!run.err.contains("truncated"), "{run:#?}");
}

/// `EINVAL` is what a bug of ours would give: no error of `munmap` costs the user the results.
#[test]
fn mappings_that_are_not_released_are_told_beside_the_results() {
    if !has_strace() {
        return println!("skipped: no strace");
    }
    let at = RUNS.iter().position(|(name, ..)| *name == "mmap").unwrap();
    let threads = counted(&words(at, "kept"))["munmap"].clone();
    let calls = threads.values().copied().max().unwrap();
    let mut told = 0;
    for number in 1..=calls {
        let call = "munmap".to_owned();
        let injection = Injection {
            run: at,
            call,
            errno: "EINVAL",
            number,
        };
        let outcome = run(&injection, "kept").unwrap();
        assert!(!outcome.err.contains("internal error"), "{}", outcome.err);
        if outcome.err.contains("warning: failed munmap calls: ") {
            told += 1;
            let report: Value = serde_json::from_str(&outcome.out).unwrap();
            assert_eq!(report["jobs"][0]["error"], 0, "{injection:?}");
        }
    }
    assert!(told > 0, "none of {calls} calls was of a mapping of ours");
}

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
    let mut drawn = 0;
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
            for errno in errnos {
                for &number in &numbers {
                    drawn += 1;
                    if all || run == 0 || drawn % 3 == 0 {
                        injections.push(Injection {
                            run,
                            call: call.clone(),
                            errno,
                            number,
                        });
                    }
                }
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
    if is_loader || expected == Expected::Runtime {
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
        Expected::Harmless if *code != 0 => Some("it is harmless"),
        Expected::Failed if *code == 0 => Some("it was passed over"),
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
    rows.next().map_or(Expected::Either, |row| row.2)
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

//! Labs that are killed at any moment, and whose history fails: nothing that was done is lost.

use std::process::{Command, Stdio};

use crate::MACHINE;
use crate::common::{Folder, Run};

const LAB: &str = r#"
[lab]
name = "killed"
machine = "m.toml"
[job]
rw = "randread"
bs = "4k"
filename = "/dev/modelled"
number_ios = 300
[axes]
iodepth = [1, 2, 4]
[variants]
old = {}
new = { machine = { "device.constant.latency_us" = 103 } }
[judge]
baseline = "old"
metrics = { "read.iops" = "2%" }
repeats = { min = 8, max = 16 }
"#;

/// Labs to kill; `FATHOM_KILLS` sets another number.
fn kills() -> u64 {
    let kills = std::env::var("FATHOM_KILLS").ok();
    kills.and_then(|kills| kills.parse().ok()).unwrap_or(5)
}

fn with_lab() -> Folder {
    let folder = Folder::new();
    folder.write("m.toml", MACHINE);
    folder.write("lab.toml", LAB);
    folder
}

fn command(folder: &Folder, history: &str, words: &str) -> Command {
    let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), words);
    command.env("FATHOM_HISTORY", folder.path().join(history));
    command
}

fn lab(folder: &Folder, history: &str) -> Run {
    Run::of(command(folder, history, "lab lab.toml --json"))
}

/// Returns what the history has of runs that were not cut, without wall clocks, and the verdicts.
fn content(folder: &Folder, history: &str) -> Vec<String> {
    let queries = [
        "SELECT cell, variant, repeat, place, role, state, seed, plan.text, machine.json, subject,
            note FROM run JOIN plan ON plan.id = plan JOIN machine ON machine.id = machine
            WHERE state <> 'cut' ORDER BY cell, repeat, variant",
        "SELECT r.cell, r.variant, r.repeat, grp, direction, metric, value, low, high FROM measure
            JOIN run r ON r.id = run WHERE r.state <> 'cut'
            ORDER BY r.cell, r.repeat, r.variant, grp, direction, metric",
        "SELECT cell, variant, metric, estimate, low, high, p, p_holm, repeats, word FROM verdict
            ORDER BY cell, variant, metric",
        "SELECT name, file, file_sha256, seed, state FROM lab",
        "SELECT number, axes FROM cell ORDER BY number",
        "PRAGMA integrity_check",
    ];
    let answer = |query: &&str| {
        let mut command = command(folder, history, "history sql --json");
        command.arg(query);
        Run::of(command).expect(0).out
    };
    queries.iter().map(answer).collect()
}

/// Length of the write-ahead log, which grows with every step of a lab.
fn progress(folder: &Folder, history: &str) -> u64 {
    let log = folder.path().join(format!("{history}-wal"));
    std::fs::metadata(log).map_or(0, |log| log.len())
}

/// Starts a command that grows the log and kills it once that has this length; returns whether it
/// was killed.
fn kill_at(folder: &Folder, history: &str, words: &str, length: u64) -> bool {
    let mut command = command(folder, history, words);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    while progress(folder, history) < length {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap().code().is_none()
}

#[test]
fn a_killed_lab_ends_as_if_it_had_not_been() {
    let folder = with_lab();
    let whole = lab(&folder, "whole.db");
    assert!(matches!(whole.code, Some(0 | 1)), "{whole:?}");
    let want = content(&folder, "whole.db");
    let mut killed = 0;
    for number in 0..kills() {
        let history = format!("{number}.db");
        // Logs of many lengths; the second kill comes after the first.
        let length = 1 + number * 7919 % 700 * 2048;
        killed += u64::from(kill_at(&folder, &history, "lab lab.toml --json", length));
        let length = progress(&folder, &history) + 1 + number * 5101 % 100 * 2048;
        killed += u64::from(kill_at(&folder, &history, "lab lab.toml --json", length));
        let run = lab(&folder, &history);
        assert_eq!((run.code, &run.out), (whole.code, &whole.out), "{length}");
        let found = content(&folder, &history);
        assert!(found == want, "{length}: {found:#?} and not {want:#?}");
    }
    assert!(killed >= kills(), "{killed}");
}

/// Runs a shell script in a mount namespace of its own; `None`, with the reason printed, where
/// the machine does not permit it. `$FATHOM` is the program.
fn in_namespace(folder: &Folder, script: &str) -> Option<Run> {
    let script = format!("export FATHOM='{}'\n{script}", env!("CARGO_BIN_EXE_fathom"));
    let mut command = folder.command("unshare", "--mount --propagation private sh -c");
    command.arg(script);
    let run = Run::of(command);
    let is_refused = run.code == Some(77) || run.err.starts_with("unshare:");
    if is_refused {
        println!("skipped: {}", run.err.trim());
    }
    (!is_refused).then_some(run)
}

#[test]
fn a_run_that_the_disk_has_no_room_for_is_written_elsewhere() {
    let folder = with_lab();
    std::fs::create_dir(folder.path().join("disk")).unwrap();
    let script = "mount -t tmpfs -o size=512k none disk || exit 77
        export FATHOM_HISTORY=disk/history.db
        $FATHOM lab lab.toml";
    let Some(run) = in_namespace(&folder, script) else {
        return;
    };
    let run = run.expect(2);
    assert!(run.err.contains("no space left on device"), "{}", run.err);
    let names = folder.names();
    let rescued = names.iter().find(|name| name.starts_with("fathom-run-"));
    let rescued = rescued.unwrap_or_else(|| panic!("{}", run.err));
    assert!(
        run.err
            .contains(&format!("fathom history import {rescued}")),
        "{}",
        run.err
    );
    let import = command(&folder, "other.db", &format!("history import {rescued}"));
    Run::of(import).expect(0);
    let list = Run::of(command(&folder, "other.db", "history list --json")).expect(0);
    assert!(list.out.contains("\"killed\""), "{}", list.out);
}

/// Runs commands on a history whose directory is mounted read-only; `None` where that is not
/// permitted.
fn on_read_only(folder: &Folder, commands: &str) -> Option<Run> {
    let mount = "mount --bind disk disk && mount -o remount,bind,ro disk || exit 77
        export FATHOM_HISTORY=disk/history.db";
    in_namespace(folder, &format!("{mount}\n{commands}"))
}

fn with_history() -> Folder {
    let folder = with_lab();
    std::fs::create_dir(folder.path().join("disk")).unwrap();
    lab(&folder, "disk/history.db");
    folder
}

#[test]
fn a_history_in_a_read_only_directory_can_be_read() {
    let folder = with_history();
    let check = || {
        let commands = "$FATHOM history list --json && $FATHOM lab lab.toml --fresh";
        let Some(run) = on_read_only(&folder, commands) else {
            return;
        };
        let run = run.expect(2);
        assert!(run.out.contains("\"killed\""), "{}", run.out);
        assert!(run.err.contains("note: the history"), "{}", run.err);
        let why = "history.db: the file or its directory is read-only";
        assert!(run.err.contains(why), "{}", run.err);
    };
    check();
    // As a process leaves it that is killed before it writes anything.
    std::fs::write(folder.path().join("disk/history.db-wal"), [0; 32]).unwrap();
    std::fs::write(folder.path().join("disk/history.db-shm"), [0; 32 << 10]).unwrap();
    check();
}

/// SQLite reads such a log if it finds an index of it, and may fail to.
#[test]
fn what_a_killed_lab_logged_is_not_passed_over_in_a_read_only_directory() {
    let folder = with_history();
    let mut logged = 0;
    for number in 0..kills() {
        let length = 1 + number * 20_000;
        let killed = kill_at(&folder, "disk/history.db", "lab lab.toml --fresh", length);
        if !killed || progress(&folder, "disk/history.db") <= 32 {
            continue;
        }
        logged += 1;
        let Some(run) = on_read_only(&folder, "$FATHOM history list --json") else {
            return;
        };
        match run.code {
            Some(0) => {
                let list = Run::of(command(&folder, "disk/history.db", "history list --json"));
                assert_eq!(run.out, list.expect(0).out);
            }
            _ => assert!(run.expect(2).err.contains("write-ahead log")),
        }
    }
    println!("{logged} logs");
}

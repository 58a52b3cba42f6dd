//! `exec_prerun` and `exec_postrun` in whole runs, and the effects of their failures.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Scratch directory, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("commands-{name}"));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a folder can be made");
        Self(path)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap_or_default()
    }

    /// Runs the program with these words, under its own name or as fio.
    fn run(&self, as_fio: bool, words: &[&str]) -> Output {
        let program = PathBuf::from(env!("CARGO_BIN_EXE_fathom"));
        let mut command = if as_fio {
            let link = self.0.join("fio");
            if !link.exists() {
                symlink(&program, &link).expect("a link can be made");
            }
            Command::new(link)
        } else {
            let mut command = Command::new(program);
            command.arg("run");
            command
        };
        command.current_dir(&self.0).args(words);
        command.output().expect("the program can be started")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

const JOB: [&str; 3] = ["--name=t", "--ioengine=null", "--size=16k"];

fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

#[test]
fn output_of_commands_is_kept() {
    let folder = Folder::new("print");
    let before = "--exec_prerun=echo before; echo wrong >&2";
    let after = "--exec_postrun=ls; echo after";
    let ran = folder.run(false, &[&JOB[..], &[before, after]].concat());
    assert_eq!(code(&ran), Some(0), "{ran:?}");
    assert_eq!(folder.read("t.prerun.txt"), "before\nwrong\n");
    assert!(folder.read("t.postrun.txt").contains("t.prerun.txt\n"));
    assert!(folder.read("t.postrun.txt").ends_with("after\n"));
}

#[test]
fn exec_postrun_runs_though_the_file_cannot_be_opened() {
    let folder = Folder::new("tidy");
    let job = "--name=t --rw=read --size=16k --create_on_open=1 --filename=missing/file";
    let mut words: Vec<_> = job.split(' ').collect();
    words.push("--exec_postrun=echo tidied");
    let ran = folder.run(true, &words);
    assert_eq!(code(&ran), Some(1), "{ran:?}");
    assert_eq!(folder.read("t.postrun.txt"), "tidied\n");
}

#[test]
fn a_failed_exec_prerun_skips_the_job_and_is_reported() {
    let words = [&JOB[..], &["--exec_prerun=exit 3", "--name=u"], &JOB[1..]].concat();
    for (as_fio, want) in [(false, 1), (true, 0)] {
        let folder = Folder::new(&format!("fail-{want}"));
        let ran = folder.run(as_fio, &words);
        assert_eq!(code(&ran), Some(want), "{ran:?}");
        let (report, said) = (&ran.stdout, String::from_utf8_lossy(&ran.stderr));
        let report = String::from_utf8_lossy(report);
        assert!(said.contains("exec_prerun `exit 3` failed"), "{said}");
        assert!(said.contains("job skipped: exec_prerun"), "{said}");
        assert!(!report.contains("\nt: (groupid=0, jobs=1)"), "{report}");
        assert!(report.contains("\nu: (groupid=0, jobs=1)"), "{report}");
    }
}

#[test]
fn no_exec_refuses_commands() {
    let folder = Folder::new("refuse");
    let words = [&JOB[..], &["--no-exec", "--exec_postrun=touch made"]].concat();
    let ran = folder.run(false, &words);
    assert_eq!(code(&ran), Some(2), "{ran:?}");
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(said.contains("`exec_postrun` runs a command"), "{said}");
    assert!(!folder.0.join("made").exists());
}

/// Options of a job that runs for some seconds.
const SLOW: [&str; 6] = [
    "--name=t",
    "--ioengine=null",
    "--size=1m",
    "--rate_iops=100",
    "--time_based",
    "--output-format=json",
];

#[test]
fn a_trigger_runs_its_command_and_ends_the_jobs() {
    for (name, when) in [
        ("time", "--trigger-timeout=500ms"),
        ("file", "--trigger-file=now"),
    ] {
        let folder = Folder::new(&format!("trigger-{name}"));
        let soon = "--exec_prerun=(sleep 0.5; touch now) &";
        let words = ["--runtime=60", when, "--trigger=touch fired", soon];
        let ran = folder.run(true, &[&words[1..3], &SLOW[..], &[words[0], soon]].concat());
        assert_eq!(code(&ran), Some(0), "{ran:?}");
        assert!(folder.0.join("fired").exists(), "{name}");
        let report: serde_json::Value = serde_json::from_slice(&ran.stdout).expect("a report");
        let ms = report["jobs"][0]["job_runtime"].as_u64();
        assert!(ms.is_some_and(|ms| ms < 30_000), "{name}: {ms:?}");
    }
}

#[test]
fn a_report_is_printed_on_request() {
    for (name, ask) in [
        ("signal", "(sleep 1; kill -USR1 $PPID) &"),
        ("file", "(sleep 1; touch fio-dump-status) &"),
    ] {
        let folder = Folder::new(&format!("report-{name}"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_fathom"));
        let ran = command
            .current_dir(&folder.0)
            .env("TMPDIR", &folder.0)
            .arg("run")
            .args(SLOW)
            .args(["--runtime=4", &format!("--exec_prerun={ask}")])
            .output()
            .expect("the program can be started");
        assert_eq!(code(&ran), Some(0), "{ran:?}");
        let text = String::from_utf8_lossy(&ran.stdout);
        let reports = text.matches("\"fio version\"").count();
        assert_eq!(reports, 2, "{name}: {text}");
        assert!(!folder.0.join("fio-dump-status").exists());
    }
}

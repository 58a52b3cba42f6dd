//! A job's own commands, and what becomes of their failures, in whole runs.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder of its own, removed in the end.
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
fn what_commands_print_is_kept() {
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
fn a_command_that_fails_before_the_job_skips_it_and_is_said() {
    let words = [&JOB[..], &["--exec_prerun=exit 3", "--name=u"], &JOB[1..]].concat();
    for (as_fio, want) in [(false, 1), (true, 0)] {
        let folder = Folder::new(&format!("fail-{want}"));
        let ran = folder.run(as_fio, &words);
        assert_eq!(code(&ran), Some(want), "{ran:?}");
        let (report, said) = (&ran.stdout, String::from_utf8_lossy(&ran.stderr));
        let report = String::from_utf8_lossy(report);
        assert!(said.contains("exec_prerun `exit 3` failed"), "{said}");
        assert!(said.contains("the job was skipped"), "{said}");
        assert!(!report.contains("\nt: (groupid=0, jobs=1)"), "{report}");
        assert!(report.contains("\nu: (groupid=0, jobs=1)"), "{report}");
    }
}

#[test]
fn commands_are_refused_where_they_are_not_wanted() {
    let folder = Folder::new("refuse");
    let words = [&JOB[..], &["--no-exec", "--exec_postrun=touch made"]].concat();
    let ran = folder.run(false, &words);
    assert_eq!(code(&ran), Some(2), "{ran:?}");
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(said.contains("`exec_postrun` runs a command"), "{said}");
    assert!(!folder.0.join("made").exists());
}

//! One run of the program against one target, and its verdict.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Output, Stdio};

use crate::machine::{Machine, Target};
use crate::snapshot::changes;
use crate::table::{COLUMNS, Want, rows, want};
use crate::tools;

/// Runs the whole table and reports every cell whose outcome differs.
pub(crate) fn run_all(machine: &Machine) {
    let (mut wrong, mut cells) = (Vec::new(), 0);
    for (name, words) in rows() {
        let target = match machine.target(name) {
            Ok(target) => target,
            Err(why) => {
                println!("skipped: {name}: {why}");
                continue;
            }
        };
        for ((column, asked), word) in COLUMNS.iter().zip(words) {
            cells += 1;
            if let Err(why) = run(machine, target, asked, want(word)) {
                wrong.push(format!("{name}, {column}: must be `{word}`: {why}"));
            }
        }
    }
    println!("{cells} cells");
    assert!(
        wrong.is_empty(),
        "{} cells:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

fn run(machine: &Machine, target: &Target, asked: &str, want: Want) -> Result<(), String> {
    machine.make(target);
    let cwd = machine.path("cwd");
    fs::remove_dir_all(&cwd).unwrap();
    fs::create_dir(&cwd).unwrap();
    let mut may_change = Vec::new();
    if asked.contains("_log=") {
        symlink(&target.path, cwd.join("log_iops.1.log")).unwrap();
        // Tells of lines that were lost.
        may_change.push(cwd.join("log.dropped.json"));
    }
    let before = machine.snapshot();
    let path = target.path.to_str().unwrap();
    let words = asked
        .replace("=T", &format!("={path}"))
        .replace(":T", &format!(":{path}"));
    let output = fathom(machine, &words);
    let after = machine.snapshot();
    let err = String::from_utf8_lossy(&output.stderr);
    if tools::was_ended(&output) {
        return Err(format!("it does not end: {err}"));
    }
    let code = output.status.code();
    let is_right = match want {
        Want::Ok => code == Some(0),
        Want::Fails => matches!(code, Some(1 | 2)) && err.starts_with("fathom: "),
        Want::Refused(text) => code == Some(2) && err.contains(text),
    };
    if !is_right {
        return Err(format!(
            "it ends with {code:?}: {}",
            err.lines().next().unwrap_or_default()
        ));
    }
    match want {
        Want::Ok => may_change.extend_from_slice(&target.may_change),
        Want::Fails => {}
        Want::Refused(_) => may_change.clear(),
    }
    // Of a link the name goes, and what it leads to stays.
    let gone = if target.is_link() {
        1
    } else {
        target.may_change.len()
    };
    let may_go = match asked.contains("--unlink=1") {
        true => &target.may_change[..gone],
        false => &[],
    };
    match changes(&before, &after, &may_change, may_go) {
        changed if changed.is_empty() => Ok(()),
        changed => Err(changed.join(", ")),
    }
}

/// Runs the program in an empty folder.
fn fathom(machine: &Machine, words: &str) -> Output {
    let program = env!("CARGO_BIN_EXE_fathom");
    let timed = tools::command(20, &[&program, &"run", &"--name=t", &"--bs=4k"]);
    // In a session of its own /dev/tty is nobody's terminal.
    let mut command = Command::new("setsid");
    command
        .arg("--wait")
        .arg(timed.get_program())
        .args(timed.get_args())
        .args(words.split(' '))
        .current_dir(machine.path("cwd"));
    command.stdin(Stdio::null()).env_remove("RUST_BACKTRACE");
    command.output().unwrap()
}

/// The first section mounts the device of the second.
pub(crate) fn mounted_meanwhile(machine: &Machine) {
    let target = match machine.target("beneath mounted") {
        Ok(target) => target,
        Err(why) => {
            println!("skipped: {why}");
            return;
        }
    };
    let point = machine.path("beneath");
    tools::run(&[&"umount", &point]).unwrap();
    let device = target.path.display();
    let words = format!(
        "--ioengine=null --size=4k --name=u --stonewall --ioengine=psync --rw=write --size=64k \
         --filename={device}"
    );
    // The words are split at blanks, and the command has some.
    let script = machine.path("cwd").join("mount.sh");
    let text = format!("#!/bin/sh\nexec mount {device} {}\n", point.display());
    fs::write(&script, text).unwrap();
    tools::run(&[&"chmod", &"+x", &script]).unwrap();
    let before = machine.snapshot();
    let words = format!("--exec_prerun={} {words}", script.display());
    let output = fathom(machine, &words);
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("will not be written: "), "{err}");
    let after = machine.snapshot();
    let printed = machine.path("cwd").join("t.prerun.txt");
    // The mount itself writes to the device, and shows what is in it.
    let changed = changes(&before, &after, &[printed], &[]);
    let beneath = |line: &String| line.contains("beneath") || line.contains("/dev/loop");
    assert!(changed.iter().all(beneath), "{changed:?}");
    let magic = fs::read(&target.path).unwrap();
    assert_eq!(magic[1080..1082], [0x53, 0xef], "the super block is there");
}

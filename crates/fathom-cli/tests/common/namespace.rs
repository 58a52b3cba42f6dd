//! Runs in a mount namespace of their own, over storage that a script makes.
#![allow(clippy::print_stdout, reason = "a test says what it skips")]

use std::process::Command;

use super::{Folder, Run};

/// Runs the program in a mount namespace after a shell script; `None`, with the reason printed,
/// where the machine does not permit the script.
#[allow(clippy::print_stdout, reason = "says why nothing was tested")]
pub(crate) fn after(folder: &Folder, script: &str, words: &str) -> Option<Run> {
    let script = format!(
        "{{ {script}; }} >&2 || exit {UNABLE}\nexec '{}' run --name=t {words}",
        env!("CARGO_BIN_EXE_fathom"),
    );
    let namespace = ["--mount", "--propagation", "private", "sh", "-c"];
    let mut command = Command::new("unshare");
    command
        .args(namespace)
        .arg(script)
        .current_dir(folder.path());
    let run = Run::of(command);
    // 1 is `unshare`'s own failure, before the program is there.
    if run.code == Some(UNABLE) || run.err.starts_with("unshare:") {
        println!("skipped: {}", run.err.trim());
        return None;
    }
    Some(run)
}

/// Exit code of a script that could not do its part.
const UNABLE: i32 = 77;

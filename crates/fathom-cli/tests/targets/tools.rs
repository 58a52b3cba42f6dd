//! The system's own tools, each with a deadline.

use std::ffi::OsStr;
use std::process::{Command, Output};

/// Runs a program and returns its output, or why it failed.
pub(crate) fn run(words: &[&dyn AsRef<OsStr>]) -> Result<String, String> {
    let name = words[0].as_ref().to_string_lossy().into_owned();
    let output = command(20, words)
        .output()
        .map_err(|error| format!("timeout(1): {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(format!("{name}: {}", text(&output.stderr))),
    }
}

/// Returns a command that is killed after `seconds`, with everything that it started.
pub(crate) fn command(seconds: u32, words: &[&dyn AsRef<OsStr>]) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=2", &seconds.to_string()]);
    command.args(words.iter().map(|word| word.as_ref()));
    command
}

/// Returns whether `timeout` had to end the program.
pub(crate) fn was_ended(output: &Output) -> bool {
    matches!(output.status.code(), Some(124 | 137) | None)
}

//! Guard over commands: a process that kills whatever they started when this process is killed.
//!
//! The kernel can kill a command with its parent, but not the processes that the command started:
//! fio's jobs, each in a session of its own, would go on measuring. All of them inherit a variable
//! of the command's environment, by which the guard finds them. It waits for the end of a pipe that
//! this process alone has open. A process that clears its environment is not found.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Starts the guard over all commands that begin from now on. Further calls have no effect.
///
/// # Errors
/// The error of starting it.
pub fn guard_commands() -> io::Result<()> {
    let mut guard = GUARD.lock().unwrap_or_else(PoisonError::into_inner);
    if guard.is_none() {
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "sh", &mark()]);
        // A group of its own: Ctrl-C and `kill` of this process's group must not reach it.
        command.process_group(0);
        command.stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        *guard = command.spawn()?.stdin.take();
    }
    Ok(())
}

/// Marks a command, and so all that it will start. Without a guard here, the mark of one that
/// guards this process remains.
pub(super) fn marked(command: &mut Command) -> &mut Command {
    let guard = GUARD.lock().unwrap_or_else(PoisonError::into_inner);
    match *guard {
        Some(_) => command.env(VARIABLE, std::process::id().to_string()),
        None => command,
    }
}

/// Returns the entry of the environment of marked commands.
fn mark() -> String {
    format!("{VARIABLE}={}", std::process::id())
}

/// Pipe to the guard, once there is one.
static GUARD: Mutex<Option<ChildStdin>> = Mutex::new(None);

/// Variable by which commands are found.
const VARIABLE: &str = "FATHOM_COMMAND_OF";

/// Waits for the end of its input, then kills all processes with the mark `$1` in their
/// environment; twice, as one of them may be starting another.
const SCRIPT: &str = r#"
trap '' INT TERM HUP
while read -r _; do :; done
for pass in 1 2; do
    for found in $(grep -lsxzF "$1" /proc/[0-9]*/environ); do
        process=${found#/proc/}
        kill -s KILL "${process%/environ}"
    done
done
"#;

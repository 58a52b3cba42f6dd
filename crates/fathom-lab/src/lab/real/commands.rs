//! Commands of a run: their environment, and the reasons for which they are ended.

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use fathom_core::Nanos;
use fathom_sys::child::{Ended, output_unless};
use fathom_sys::clock::{self, Clock};

use super::super::executor::RunFailure;
use crate::figure::printable;
use crate::lab_plan::RunSettings;

/// Environment and limits of the commands of one run.
pub(super) struct Commands<'a> {
    pub(super) run: &'a RunSettings,
    /// Search path, this program's directory first.
    pub(super) search_path: &'a OsString,
    /// Number of stop requests so far.
    pub(super) stops: &'a dyn Fn() -> u32,
    pub(super) clock: &'a Clock,
}

impl Commands<'_> {
    /// Gives a command the environment of the run.
    pub(super) fn equip(&self, command: &mut Command) {
        command.env("PATH", self.search_path);
        command.envs(self.run.env.iter().cloned());
        command.stdin(Stdio::null());
    }

    /// Returns a command of the shell.
    pub(super) fn shell(&self, line: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        self.equip(&mut command);
        command
    }

    /// Runs a command of the shell to its end.
    pub(super) fn execute(&self, line: &str) -> Result<(), RunFailure> {
        self.output(line).map(drop)
    }

    /// Runs a command of the shell to its end and returns what it printed.
    pub(super) fn output(&self, line: &str) -> Result<Vec<u8>, RunFailure> {
        let output = self.wait(&mut self.shell(line), &format!("`{line}`"), &|| false)?;
        succeeded(&output, line)?;
        Ok(output.stdout)
    }

    /// Runs a command that cleans up to its end, also after an interruption.
    pub(super) fn execute_always(&self, line: &str) -> Result<(), RunFailure> {
        let uninterrupted = Commands {
            stops: &|| 0,
            ..*self
        };
        uninterrupted.execute(line)
    }

    /// Waits for a command until it ends, the user stops the lab, its time is up, or `is_over`.
    pub(super) fn wait(
        &self,
        command: &mut Command,
        name: &str,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Output, RunFailure> {
        let from = self.clock.now();
        let is_late = || {
            let taken = self.clock.now() - from;
            self.run.timeout.is_some_and(|timeout| taken > timeout)
        };
        let ended = output_unless(command, &|| (self.stops)() > 0 || is_late() || is_over());
        let ended = ended.map_err(|error| {
            let program = command.get_program().display();
            RunFailure::Hopeless(format!("cannot run {program}: {error}"))
        })?;
        match ended {
            _ if (self.stops)() > 0 => Err(RunFailure::Interrupted),
            Ended::ByItself(output) => Ok(output),
            Ended::Stopped => Err(RunFailure::Failed(format!(
                "{name} did not end within `timeout`"
            ))),
        }
    }

    /// Waits, unless the user stops the lab.
    pub(super) fn pause(&self, pause: Nanos) -> Result<(), RunFailure> {
        let until = self.clock.now() + pause;
        while self.clock.now() < until && (self.stops)() == 0 {
            clock::sleep((until - self.clock.now()).min(STEP));
        }
        match (self.stops)() {
            0 => Ok(()),
            _ => Err(RunFailure::Interrupted),
        }
    }
}

/// Returns the search path in which commands find this program as `fathom`, from wherever it was
/// started.
pub(super) fn search_path(fathom: &Path) -> OsString {
    let path = env::var_os("PATH").unwrap_or_default();
    let own = fathom.parent().map(Path::to_owned).into_iter();
    let joined = env::join_paths(own.chain(env::split_paths(&path)));
    // A directory with a colon in its name cannot be in a search path.
    joined.unwrap_or(path)
}

fn succeeded(output: &Output, line: &str) -> Result<(), RunFailure> {
    if output.status.success() {
        return Ok(());
    }
    let why = first_line(&output.stderr);
    Err(RunFailure::Failed(format!("`{line}` failed: {why}")))
}

/// Returns the first line of an error output, without the program's name and without characters
/// that act on a terminal.
pub(super) fn first_line(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    let line = text.lines().find(|line| !line.trim().is_empty());
    let line = line.unwrap_or("it exited with an error");
    printable(line.strip_prefix("fathom: ").unwrap_or(line))
}

/// Longest sleep after which a stop request is noticed.
const STEP: Nanos = Nanos::new(50_000_000);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_of_this_program_comes_first() {
        let path = search_path(Path::new("/opt/fathom/bin/fathom"));
        let first = env::split_paths(&path).next();
        assert_eq!(first.as_deref(), Some(Path::new("/opt/fathom/bin")));
        let as_is = search_path(Path::new("/opt/a:b/fathom"));
        assert_eq!(Some(as_is), env::var_os("PATH"));
    }

    #[test]
    fn a_command_that_hangs_is_ended() {
        let run = RunSettings {
            timeout: Some(Nanos::from_millis(1)),
            ..RunSettings::default()
        };
        let commands = Commands {
            run: &run,
            search_path: &search_path(Path::new("/")),
            stops: &|| 0,
            clock: &Clock::monotonic(),
        };
        let why = "`sleep 1000` did not end within `timeout`";
        let failed = |why: &str| Err(RunFailure::Failed(why.into()));
        assert_eq!(commands.execute("sleep 1000"), failed(why));
        let untimed = Commands {
            run: &RunSettings::default(),
            ..commands
        };
        let why = "`echo no disk >&2; false` failed: no disk";
        assert_eq!(untimed.execute("echo no disk >&2; false"), failed(why));
        assert_eq!(first_line(b"\n\x1b[31mred\nmore\n"), "\\u{1b}[31mred");
        let stopped = Commands {
            stops: &|| 1,
            ..untimed
        };
        assert_eq!(stopped.execute("true"), Err(RunFailure::Interrupted));
        assert_eq!(stopped.execute_always("true"), Ok(()));
    }
}

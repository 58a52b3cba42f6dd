//! `exec_prerun` and `exec_postrun`: shell commands before and after a job.
//!
//! Their output goes to `NAME.prerun.txt` and `NAME.postrun.txt`, as in fio; with several ranks,
//! the names end as those of logs.

use std::fs::File;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::{fmt, io};

use fathom_core::{Nanos, StopRequest, Tick};
use fathom_host::output_file::Destination;
use fathom_job::Job;
use fathom_record::Warning;
use fathom_sys::child::{Child, Ended};
use fathom_sys::clock::{Clock, sleep_until};

/// Commands of one job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hooks {
    job: String,
    /// End of the names of files, by which those of ranks differ.
    suffix: String,
    before: Option<String>,
    after: Option<String>,
}

impl Hooks {
    /// Returns the commands of one clone of a job; the names of their files end with `suffix`.
    pub(crate) fn of(job: &Job, clone: u32, suffix: &str) -> Self {
        let rules = &job.options.lifecycle;
        Self {
            job: job.clone_name(clone).to_owned(),
            suffix: suffix.to_owned(),
            before: rules.exec_prerun.clone(),
            after: rules.exec_postrun.clone(),
        }
    }

    /// Returns true if a command runs before the job.
    pub(crate) const fn has_prerun(&self) -> bool {
        self.before.is_some()
    }

    /// Runs `exec_prerun`, no earlier than `start`. Returns a warning if the command failed; the
    /// job is then skipped.
    pub(crate) fn before(&self, start: Tick, clock: &Clock, stop: &StopRequest) -> Option<Warning> {
        let command = self.before.as_ref()?;
        while clock.now() < start && !stop.is_requested() {
            sleep_until(clock, start.min(clock.now() + LOOK_AROUND));
        }
        let error = self.run(command, "prerun", stop).err()?;
        let hint = "fix the command, or append `; true` if its failure does not matter";
        Some(self.warning(
            "prerun_failed",
            format!("job skipped: exec_prerun `{command}` {error}"),
            hint,
        ))
    }

    /// Runs `exec_postrun` and returns a warning if it failed.
    pub(crate) fn after(&self) -> Option<Warning> {
        let command = self.after.as_ref()?;
        let never = StopRequest::default();
        let error = self.run(command, "postrun", &never).err()?;
        let hint = "append `; true` to the command if its failure does not matter";
        Some(self.warning(
            "postrun_failed",
            format!("exec_postrun `{command}` {error}"),
            hint,
        ))
    }

    /// Returns the name of the job.
    pub(crate) fn job(&self) -> &str {
        &self.job
    }

    fn warning(&self, code: &str, message: String, hint: &str) -> Warning {
        Warning {
            code: code.into(),
            job: self.job.clone(),
            message,
            hint: hint.into(),
        }
    }

    /// Runs `command`.
    fn run(&self, command: &str, which: &str, stop: &StopRequest) -> Result<(), HookError> {
        // A name with a slash would be a path.
        let name = format!("{}.{which}.txt{}", self.job.replace('/', "."), self.suffix);
        let output = open_output(Path::new(&name));
        let both = output.and_then(|output| Ok((output.try_clone()?, output)));
        let (output, errors) = both.map_err(|source| HookError::Output { name, source })?;
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", command]).stdin(Stdio::null());
        shell.stdout(output).stderr(errors);
        let child = Child::spawn(&mut shell);
        let mut child = child.map_err(HookError::Start)?;
        match child.wait_unless(&|| stop.is_requested()) {
            Ok(Ended::ByItself(status)) if status.success() => Ok(()),
            Ok(Ended::ByItself(status)) => Err(HookError::Failed(status)),
            Ok(Ended::Stopped) => Err(HookError::Stopped),
            Err(error) => Err(HookError::Wait(error)),
        }
    }
}

/// Failure of a command. `Display` completes a sentence that begins with the command.
#[derive(Debug)]
enum HookError {
    /// Its output file cannot be written.
    Output { name: String, source: io::Error },
    /// It cannot be started.
    Start(io::Error),
    /// It exited with an error.
    Failed(ExitStatus),
    /// The run was stopped, and the command with it.
    Stopped,
    /// Waiting for it failed.
    Wait(io::Error),
}

impl fmt::Display for HookError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Output { name, source } => write!(f, "cannot write {name}: {source}"),
            Self::Start(error) => write!(f, "cannot be started: {error}"),
            Self::Failed(status) => write!(f, "failed ({status})"),
            Self::Stopped => f.write_str("was killed because the run was stopped"),
            Self::Wait(error) => write!(f, "could not be waited for: {error}"),
        }
    }
}

/// Opens the output file of a command. A named pipe is opened for reading and writing, because a
/// write-only open would block until a reader appears.
fn open_output(path: &Path) -> io::Result<File> {
    match Destination::of(path)? {
        Destination::Stream => File::options().read(true).write(true).open(path),
        _ => File::create(path),
    }
}

/// Interval between checks for a stop request.
const LOOK_AROUND: Nanos = Nanos::from_millis(20);

//! `fathom run --machine FILE …`: the plan on a machine that is not there, in virtual time.

use std::path::Path;

use anyhow::Context;
use fathom_host::output_file::{self, Stop};
use fathom_job::{JOB_FILE_BYTES_MAX, Settings, Surroundings};
use fathom_run::{LogFiles, Machine, Problem};

use crate::environment::Process;
use crate::run_command::Failure;

/// The machine that the settings ask for, if they ask for one.
pub(crate) fn machine(settings: &Settings) -> Result<Option<Machine>, Failure> {
    settings.machine.as_deref().map(read).transpose()
}

fn read(file: &str) -> Result<Machine, Failure> {
    let bytes = Process.read_file(file);
    let bytes = bytes.map_err(|error| unreadable(file, &error.to_string()))?;
    if bytes.len() as u64 > JOB_FILE_BYTES_MAX {
        return Err(unreadable(file, "it is longer than a machine file can be"));
    }
    let text = String::from_utf8(bytes).map_err(|_| unreadable(file, "it is not UTF-8 text"))?;
    Machine::parse(file, &text).map_err(Failure::Refused)
}

fn unreadable(file: &str, why: &str) -> Failure {
    let why = format!("cannot read the machine file `{file}`: {why}");
    let mut problem = Problem::new("machine_unreadable", why);
    let hint = "name a file that describes a machine; docs/MACHINE_FILES.md says how";
    problem.hint = Some(hint.into());
    Failure::Refused(problem.into())
}

/// What of a trigger is looked at from outside: in virtual time its time-out is part of the
/// simulation, and no command is run.
pub(crate) fn trigger(settings: &Settings) -> Settings {
    let mut settings = settings.clone();
    if settings.machine.is_some() {
        settings.trigger = None;
        settings.trigger_timeout = None;
    }
    settings
}

/// Writes the I/O logs that the jobs ask for.
pub(crate) fn write(logs: &LogFiles, stop: &Stop) -> anyhow::Result<()> {
    for (path, bytes) in logs {
        let written = output_file::write(Path::new(path), bytes, stop);
        written.with_context(|| format!("cannot write the log {path}"))?;
    }
    Ok(())
}

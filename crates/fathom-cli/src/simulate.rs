//! `fathom run --machine FILE …`: a plan on a modelled machine, in virtual time.

use std::path::Path;

use anyhow::Context;
use fathom_host::output_file::{self, Stop};
use fathom_job::{Environment, JOB_FILE_BYTES_MAX, Settings};
use fathom_setup::{ProblemKind, RunProblem};
use fathom_virtual::{LogFiles, MachineModel};

use crate::environment::Process;
use crate::failure::NoReport;

/// Machine of a simulation, and the text of its file.
pub(crate) struct SimulatedMachine {
    /// The machine.
    pub(crate) model: MachineModel,
    /// Text of the file.
    pub(crate) text: String,
}

/// Reads the machine file of the settings, if there is one.
pub(crate) fn machine(settings: &Settings) -> Result<Option<SimulatedMachine>, NoReport> {
    settings.machine.as_deref().map(read).transpose()
}

fn read(file: &str) -> Result<SimulatedMachine, NoReport> {
    let bytes = Process::new().read_file(file);
    let bytes = bytes.map_err(|error| unreadable(file, &error.to_string()))?;
    if bytes.len() as u64 > JOB_FILE_BYTES_MAX {
        return Err(unreadable(file, "the file is too long"));
    }
    let text = String::from_utf8(bytes).map_err(|_| unreadable(file, "not UTF-8 text"))?;
    let model = MachineModel::parse(file, &text).map_err(NoReport::Refused)?;
    Ok(SimulatedMachine { model, text })
}

fn unreadable(file: &str, why: &str) -> NoReport {
    let why = format!("cannot read machine file `{file}`: {why}");
    let mut problem = RunProblem::new(ProblemKind::MachineUnreadable, why);
    let hint = "examples/machines has files to start from, docs/MACHINE_FILES.md the format";
    problem.hint = Some(hint.into());
    NoReport::Refused(problem.into())
}

/// Returns the settings without the triggers that the simulation handles itself: in virtual time
/// the timeout is simulated and no command is run.
pub(crate) fn watched_triggers(settings: &Settings) -> Settings {
    let mut settings = settings.clone();
    if settings.machine.is_some() {
        settings.trigger = None;
        settings.trigger_timeout = None;
    }
    settings
}

/// Writes the I/O logs that the jobs ask for.
pub(crate) fn write(logs: &LogFiles, stop: &Stop) -> anyhow::Result<()> {
    let mut outcome = Ok(());
    for (path, bytes) in logs {
        let written = output_file::write(Path::new(path), bytes, stop);
        outcome = outcome.and(written.with_context(|| format!("cannot write log {path}")));
    }
    outcome
}

//! `fathom run --machine FILE …`: the plan on a machine that is not there, in virtual time.

use anyhow::Context;
use fathom_job::{Plan, Settings};
use fathom_run::{LogFiles, Machine, simulate_on};

use crate::exit::End;
use crate::report::Report;
use crate::run_command::{Failure, ended};
use crate::saved;

/// Runs a plan on the machine that `file` describes, and reports.
pub(crate) fn run(
    plan: &Plan,
    settings: &Settings,
    file: &str,
    report: &mut Report,
) -> Result<End, Failure> {
    let machine = machine(file)?;
    let tell = &mut |event: fathom_run::Event<'_>| report.hear(plan, &event, 0);
    let simulated = simulate_on(plan, &machine, settings.seeks, tell);
    let (mut record, logs) = simulated.map_err(Failure::Refused)?;
    record.warnings.splice(0..0, report.take_warnings());
    report.tell_record(&record);
    write(&logs).map_err(Failure::NotReported)?;
    saved::save(plan, settings, Some(&machine), &record)?;
    Ok(ended(&record, false))
}

/// The machine of a file.
fn machine(file: &str) -> Result<Machine, Failure> {
    let text = std::fs::read_to_string(file).map_err(|error| {
        let problem = fathom_run::Problem::new(
            "machine_unreadable",
            format!("cannot read the machine file `{file}`: {error}"),
        );
        Failure::Refused(problem.into())
    })?;
    Machine::parse(file, &text).map_err(Failure::Refused)
}

/// The I/O logs that the jobs ask for.
fn write(logs: &LogFiles) -> anyhow::Result<()> {
    for (path, bytes) in logs {
        std::fs::write(path, bytes).with_context(|| format!("cannot write the log {path}"))?;
    }
    Ok(())
}

//! `fathom run --machine FILE …`: the plan on a machine that is not there, in virtual time.

use anyhow::Context;
use fathom_job::{JOB_FILE_BYTES_MAX, Plan, Settings, Surroundings};
use fathom_run::{LogFiles, Machine, Problem, simulate_on};

use crate::exit::End;
use crate::report::Report;
use crate::run_command::{Failure, ended};
use crate::saved;
use crate::surroundings::Process;

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

/// The I/O logs that the jobs ask for.
fn write(logs: &LogFiles) -> anyhow::Result<()> {
    for (path, bytes) in logs {
        std::fs::write(path, bytes).with_context(|| format!("cannot write the log {path}"))?;
    }
    Ok(())
}

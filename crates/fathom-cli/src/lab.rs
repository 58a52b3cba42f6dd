//! `fathom lab`: experiments of a lab file.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use fathom_host::output_file;
use fathom_job::{Dialect, Environment, JOB_FILE_BYTES_MAX};
use fathom_lab::{
    FalseAlarms, Journal, LabAbout, LabEvent, LabOutcome, LabPlan, LockFile, MachineSource,
    Modelled, NoJournal, Real, lab_page, lab_table, run_lab,
};
use fathom_sys::signals::Interrupts;
use fathom_toml::TomlProblem;

use crate::environment::Process;
use crate::exit::ProgramEnd;
use crate::kept_output::at;
use crate::lab_journal;
use crate::lab_problems;
use crate::micro::usable_cpus;
use crate::output::{self, Data, StandardStream};
use crate::table_format::TableFormat;
use crate::{report_history, report_output, spared_inputs};

/// Arguments of `fathom lab`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LabArguments {
    /// Lab file
    file: String,
    /// Values that the file asks for, as DEV=/dev/nvme0n1
    #[arg(value_name = "NAME=VALUE", value_parser = named_value)]
    values: Vec<(String, String)>,
    /// Print cells, order, time, bytes to be written and what could be found; run nothing
    #[arg(long)]
    plan: bool,
    /// Run on this modelled machine, in virtual time; nothing is recorded
    #[arg(long, value_name = "MACHINE.toml")]
    rehearse: Option<String>,
    /// Run N experiments with the baseline in place of every variant, and count false alarms
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    a_a: Option<u32>,
    /// Start over instead of continuing
    #[arg(long)]
    fresh: bool,
    /// Refuse files that run commands of their own
    #[arg(long)]
    no_exec: bool,
    /// Write one page of HTML at the end, as `fathom report --html` does
    #[arg(long, value_name = "PAGE", conflicts_with_all = ["plan", "a_a"])]
    html: Option<PathBuf>,
    #[command(flatten)]
    format: TableFormat,
}

/// Runs what is missing of an experiment and prints its table.
pub(crate) fn run(arguments: &LabArguments) -> ProgramEnd {
    match execute(arguments) {
        Ok(end) => end,
        Err(error) => {
            output::print(StandardStream::Error, &format!("fathom: lab: {error:#}\n"));
            ProgramEnd::Refused
        }
    }
}

fn execute(arguments: &LabArguments) -> Result<ProgramEnd> {
    let environment = Process::new();
    let text = read(&environment, &arguments.file)?;
    let mut plan = LabPlan::parse(&arguments.file, &text, &arguments.values, &environment);
    if let Some(path) = &arguments.rehearse {
        let machine = MachineSource {
            path: path.clone(),
            text: read(&environment, path)?,
        };
        plan = plan.and_then(|plan| plan.rehearsed_on(machine, &environment));
    }
    let plan = match plan {
        Ok(plan) => plan,
        Err(problems) => return Ok(refused(&problems)),
    };
    refuse_devices(&plan, &environment)?;
    refuse_schedulers(&plan, &environment)?;
    if arguments.plan {
        let earlier = match arguments.rehearse {
            // Runs of another machine tell nothing of this one.
            Some(_) => Vec::new(),
            None => lab_journal::runs_before(&plan),
        };
        let text = plan.overview(&environment, &earlier);
        return Ok(output::show(&text, "fathom: lab", ProgramEnd::Printed));
    }
    if arguments.no_exec {
        refuse_commands(&plan)?;
    }
    if plan.waits_for_boots() && !cfg!(feature = "history") {
        bail!(
            "{}: `requires`: this build keeps no progress over a reboot",
            plan.file
        );
    }
    if let Some(path) = &arguments.html {
        spared_inputs::check("--html", path, environment.files_read())?;
        output_file::check(path).map_err(|error| at(path, error).context("--html"))?;
    }
    let lab = Lab {
        environment,
        interrupts: Interrupts::install().context("signals")?,
        is_kept: arguments.rehearse.is_none() && arguments.a_a.is_none(),
        is_fresh: arguments.fresh,
        format: arguments.format,
    };
    let _lock = lock(&plan)?;
    match arguments.a_a {
        Some(count) => lab.false_alarms(&plan, count),
        None => {
            let (end, outcome) = lab.experiment(&plan)?;
            if let Some(path) = &arguments.html {
                lab.write_page(&plan, &outcome, path)?;
            }
            Ok(end)
        }
    }
}

/// Runs an experiment from its beginning and prints its table.
pub(crate) fn run_plan(plan: &LabPlan, format: TableFormat) -> Result<ProgramEnd> {
    let lab = Lab {
        environment: Process::new(),
        interrupts: Interrupts::install().context("signals")?,
        is_kept: true,
        is_fresh: true,
        format,
    };
    refuse_devices(plan, &lab.environment)?;
    refuse_schedulers(plan, &lab.environment)?;
    let _lock = lock(plan)?;
    Ok(lab.experiment(plan)?.0)
}

/// Prints the problems of a lab file.
pub(crate) fn refused(problems: &[TomlProblem]) -> ProgramEnd {
    let diagnostics = lab_problems::diagnostics(problems);
    let text = output::render(&diagnostics, Dialect::Fathom);
    output::print(StandardStream::Error, &text);
    ProgramEnd::Refused
}

/// Takes the right to measure on this machine; a modelled one needs none.
fn lock(plan: &LabPlan) -> Result<Option<LockFile>> {
    let is_real = plan.machine.is_none();
    let lock = is_real.then(|| fathom_lab::lock_machine(&plan.name));
    lock.transpose().map_err(anyhow::Error::msg)
}

/// A lab and what it runs with.
struct Lab {
    environment: Process,
    interrupts: Interrupts,
    /// Progress is kept in the history.
    is_kept: bool,
    is_fresh: bool,
    format: TableFormat,
}

impl Lab {
    /// Runs the experiment and prints its table; also returns the outcome.
    fn experiment(&self, plan: &LabPlan) -> Result<(ProgramEnd, LabOutcome)> {
        let mut journal = self.journal(plan)?;
        let outcome = self.outcome(plan, 0, journal.as_mut())?;
        let table = lab_table(plan, &outcome);
        Data::Stdout.add(&self.format.render(&table))?;
        Ok((end(&outcome), outcome))
    }

    /// Writes the page of the lab: the one of `fathom report`, if the history has the lab.
    fn write_page(&self, plan: &LabPlan, outcome: &LabOutcome, path: &Path) -> Result<()> {
        if outcome.is_interrupted {
            let text = format!("{}: interrupted: the page is not written\n", plan.name);
            output::print(StandardStream::Error, &text);
            return Ok(());
        }
        let page = match self.is_kept && cfg!(feature = "history") {
            true => report_history::lab_of_file(&plan.file)?,
            false => lab_page(plan, outcome, &LabAbout::default()),
        };
        report_output::write(&page, path, None)
    }

    /// Opens the place of the lab's progress. Rehearsals are not kept.
    fn journal<'p>(&self, plan: &'p LabPlan) -> Result<Box<dyn Journal + 'p>> {
        if !self.is_kept {
            return Ok(Box::new(NoJournal));
        }
        lab_journal::open(plan, self.is_fresh)
    }

    fn outcome(
        &self,
        plan: &LabPlan,
        runs_before: u64,
        journal: &mut dyn Journal,
    ) -> Result<LabOutcome> {
        let stops = || self.interrupts.count();
        let threads = usize::try_from(usable_cpus()).unwrap_or(1);
        let is_watched = io::stderr().is_terminal() && !plan.a_a;
        let mut tell = |event: LabEvent<'_>| {
            let without_notes = !self.format.has_notes();
            if let Some(line) = line(plan, &event, is_watched, without_notes) {
                output::print(StandardStream::Error, &format!("{}: {line}\n", plan.name));
            }
        };
        let ran = if plan.machine.is_some() {
            let executor = Modelled::new(plan, &self.environment, &stops, threads);
            run_lab(plan, &mut executor.after(runs_before), journal, &mut tell)
        } else {
            let fathom = std::env::current_exe().context("this program's path")?;
            let executor = Real::new(plan, fathom, &self.environment, &stops);
            let mut executor = executor.map_err(anyhow::Error::msg)?;
            run_lab(plan, &mut executor, journal, &mut tell)
        };
        Ok(ran?)
    }

    /// Counts the false alarms of experiments without a difference.
    fn false_alarms(&self, plan: &LabPlan, count: u32) -> Result<ProgramEnd> {
        if plan.search.is_some() {
            bail!(
                "{}: --a-a: a search judges nothing, so it cannot raise a false alarm",
                plan.file
            );
        }
        if plan.comparisons() == 0 {
            bail!("{}: --a-a: the experiment compares nothing", plan.file);
        }
        let alarms = FalseAlarms::of(plan, count, &mut |plan, runs_before| {
            self.outcome(plan, runs_before, &mut NoJournal)
        })?;
        Data::Stdout.add(&self.format.render(&alarms.table(plan)))?;
        Ok(ProgramEnd::Ran {
            // A cell that failed claims nothing: without this, an experiment that cannot run at
            // all would look like one that never cries wolf.
            failed_jobs: usize::try_from(alarms.failed_cells).unwrap_or(usize::MAX),
            tolerated_errors: 0,
            interrupted: alarms.is_interrupted,
        })
    }
}

/// Refuses a lab that would write block devices which it does not name.
fn refuse_devices(plan: &LabPlan, environment: &Process) -> Result<()> {
    match plan.forbidden_devices(environment).as_slice() {
        [] => Ok(()),
        devices => bail!("{}: {}", plan.file, devices.join("\n")),
    }
}

/// Refuses a lab that asks for I/O schedulers which its devices do not offer.
fn refuse_schedulers(plan: &LabPlan, environment: &Process) -> Result<()> {
    match plan.missing_schedulers(environment).as_slice() {
        [] => Ok(()),
        [first, ..] => bail!("{first}"),
    }
}

/// Refuses a lab that runs commands.
fn refuse_commands(plan: &LabPlan) -> Result<()> {
    let runs = plan.run.before.iter().chain(&plan.run.after);
    let services = plan.services.iter().map(|service| &service.command);
    match runs.chain(services).next() {
        Some(command) => bail!("{}: --no-exec: the lab runs `{command}`", plan.file),
        None => Ok(()),
    }
}

/// Returns the line about an event; of those without a failure only if standard error is a
/// terminal.
fn line(
    plan: &LabPlan,
    event: &LabEvent<'_>,
    is_watched: bool,
    without_notes: bool,
) -> Option<String> {
    let name = |slot: &fathom_lab::Slot| {
        let (cell, variant) = (
            &plan.cells[slot.cell].label,
            &plan.variants[slot.variant].name,
        );
        let repeat = format!("repeat {}", slot.repeat + 1);
        let parts = [cell, variant, &repeat]
            .into_iter()
            .filter(|part| !part.is_empty());
        parts.cloned().collect::<Vec<_>>().join(", ")
    };
    let line = match event {
        LabEvent::Retry { slot, why } => format!("{}: {why}; the repeat is done again", name(slot)),
        LabEvent::RetryOfOne { slot, why } => {
            format!(
                "{}: {why}; all others failed in the same way, and this one is done again",
                name(slot)
            )
        }
        LabEvent::AllFailed { why } => format!(
            "{why}; every run fails this way: the lab is \
                                                abandoned"
        ),
        LabEvent::Failed { slot, why } => format!("{}: {why}; the cell is abandoned", name(slot)),
        // Notes of the table have them all; CSV has no notes.
        LabEvent::Ended {
            slot,
            disturbance: Some(what),
        } if without_notes => format!("{}: disturbed: {what}", name(slot)),
        LabEvent::GoesOn { runs: 1 } => "continues after 1 run".into(),
        LabEvent::GoesOn { runs } => format!("continues after {runs} runs"),
        LabEvent::Precondition { name, pass, bytes } => {
            let (pass, passes) = pass;
            let whole = match bytes {
                Some(bytes) => format!("{} MiB", bytes.div_ceil(1 << 20)),
                None => "whole".into(),
            };
            format!("precondition: writes {name}, {whole}, pass {pass} of {passes}")
        }
        LabEvent::Round { number, cells } if is_watched => {
            let s = if *cells == 1 { "" } else { "s" };
            format!("round {number}: {cells} cell{s}")
        }
        LabEvent::Round { .. } | LabEvent::Ended { .. } => return None,
    };
    Some(line)
}

/// Returns the end of the program: a worse metric is a check that failed, a failed cell too.
fn end(outcome: &LabOutcome) -> ProgramEnd {
    let cells = outcome.results.cells.iter();
    ProgramEnd::Ran {
        failed_jobs: cells.filter(|cell| cell.failure.is_some()).count(),
        tolerated_errors: outcome.worse() as u64,
        interrupted: outcome.is_interrupted,
    }
}

fn read(environment: &Process, file: &str) -> Result<String> {
    let bytes = environment.read_file(file);
    let bytes = bytes.with_context(|| format!("cannot read `{file}`"))?;
    if bytes.len() as u64 > JOB_FILE_BYTES_MAX {
        bail!("cannot read `{file}`: the file is too long");
    }
    String::from_utf8(bytes)
        .ok()
        .with_context(|| format!("cannot read `{file}`: not UTF-8 text"))
}

/// Parses `NAME=VALUE`.
fn named_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("expected NAME=VALUE".into()),
    }
}

const EXAMPLES: &str = "\
Examples:
  fathom lab examples/lab/hdd-tags.toml
  fathom lab examples/lab/hdd-tags.toml --plan
  fathom lab examples/lab/hdd-tags.toml --markdown
  fathom lab examples/lab/hdd-tags.toml --html hdd-tags.html
  fathom lab my.toml DEV=/dev/nvme0n1
  fathom lab my.toml --rehearse examples/machines/noisy.toml --a-a 200

Exit codes: 0 done; 1 done, and a judged metric is worse or a cell failed; 2 not \
done, or not completely.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disturbed_run_is_told_where_the_table_has_no_notes() {
        let text = "[lab]\nname = \"s\"\n[job]\nfilename = \"f\"\nsize = \"1m\"\nrw = \"read\"\n\
                    [axes]\niodepth = [1, 2]\n";
        let plan = LabPlan::parse("s.toml", text, &[], &Process::new()).expect("a lab");
        let slot = fathom_lab::order(&plan, 0)[0];
        let event = LabEvent::Ended {
            slot: &slot,
            disturbance: Some("a fan stopped"),
        };
        let told = |without_notes| line(&plan, &event, true, without_notes);
        assert_eq!(told(false), None, "the notes tell it");
        let told = told(true).expect("a line");
        assert!(
            told.ends_with("repeat 1: disturbed: a fan stopped"),
            "{told}"
        );
    }
}

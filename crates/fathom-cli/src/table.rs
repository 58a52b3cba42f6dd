//! `fathom table`: published measurements, repeated and compared with the published figures.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use fathom_host::output_file::{self, Stop};
use fathom_lab::{
    AioSubmit, LabError, LogEntries, Table, TableContext, UringIrq, aio_submit, experiments,
    hdd_seeks, hdd_single, hdd_tags, io_pacing, log_entries, task_list_table, uring_irq,
};
use fathom_sys::signals::Interrupts;
use fathom_sys::thread;

use crate::environment::Process;
use crate::exit::ProgramEnd;
use crate::failure::with_hint;
use crate::kept_output::{Kept, write_or_keep};
use crate::micro::{measured, usable_cpus};
use crate::output::{self, Data, StandardStream};
use crate::spared_inputs;
use crate::table_format::{TableFormat, first_given};
use crate::table_hdd::HddArguments;
use crate::table_pacing::PacingArguments;
use crate::text_width::fitted_sentences;

/// Arguments of `fathom table`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TableArguments {
    /// Table to repeat [default: list the tables]
    name: Option<String>,
    /// File or block device to read from; for aio-submit, a directory to write to
    target: Option<PathBuf>,
    #[command(flatten)]
    format: TableFormat,
    /// Write a plot to FILE, as SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Duration per row, in seconds, of tables that have a target [default: 5]
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=SECONDS_MAX))]
    seconds: Option<u32>,
    /// Repeats in turn, of the runs of log-entries [default: 5] or the rows of io-pacing
    /// [default: 3]
    #[arg(long, visible_alias = "repeat", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeats: Option<u32>,
    /// CPU to pin uring-irq to [default: the last]
    #[arg(long, value_name = "N")]
    cpu: Option<u32>,
    #[command(flatten)]
    hdd: HddArguments,
    #[command(flatten)]
    pacing: PacingArguments,
}

/// Repeats the measurement and prints its table.
pub(crate) fn run(arguments: &TableArguments) -> ProgramEnd {
    match make(arguments) {
        Ok(end) => end,
        Err(error) => {
            output::print(
                StandardStream::Error,
                &format!("fathom: table: {error:#}\n"),
            );
            ProgramEnd::Refused
        }
    }
}

fn make(arguments: &TableArguments) -> Result<ProgramEnd> {
    let Some(name) = &arguments.name else {
        if let Some(option) = given(arguments) {
            bail!("{option}: no table to apply it to\nhint: name one; `fathom table` lists them");
        }
        return Ok(output::show(
            &fitted_sentences(&list()),
            "fathom: table",
            ProgramEnd::Printed,
        ));
    };
    if !experiments().iter().any(|known| known.name == name) {
        bail!("{name}: no such table\nhint: `fathom table` lists them");
    }
    if let Some(path) = &arguments.svg {
        spared_inputs::check("--svg", path, &arguments.target)?;
        output_file::check(path).with_context(|| format!("--svg: {}", path.display()))?;
    }
    refuse_foreign_options(arguments, name)?;
    let Some(target) = &arguments.target else {
        let table = match name.as_str() {
            "hdd-single" => hdd_single(),
            "hdd-seeks" => hdd_seeks(),
            "hdd-tags" => hdd_tags(&arguments.hdd.to_config()?),
            "io-pacing" => return measure_pacing(arguments),
            "task-list" => measured(usable_cpus().max(2), REPEATS, task_list_table),
            _ => bail!(
                "{name}: no target\nhint: name a file or block device to read from, or for \
                 aio-submit a directory"
            ),
        };
        return print(&table, arguments, None);
    };
    measure(arguments, name, target)
}

/// Returns an option that was given, if there is one.
fn given(arguments: &TableArguments) -> Option<&'static str> {
    let own = first_given([
        ("--svg", arguments.svg.is_some()),
        ("--seconds", arguments.seconds.is_some()),
        ("--repeats", arguments.repeats.is_some()),
        ("--cpu", arguments.cpu.is_some()),
    ]);
    let format = arguments.format.given();
    format
        .or(own)
        .or_else(|| arguments.hdd.given())
        .or_else(|| arguments.pacing.given())
}

/// Refuses options that the table would ignore.
fn refuse_foreign_options(arguments: &TableArguments, name: &str) -> Result<()> {
    if name != "hdd-tags" {
        arguments.hdd.refuse_for(name)?;
    }
    if name != "io-pacing" {
        arguments.pacing.refuse_for(name)?;
    }
    if !matches!(name, "io-pacing" | "log-entries") && arguments.repeats.is_some() {
        bail!("{name}: --repeats does not apply\nhint: omit it");
    }
    if name != "uring-irq" && arguments.cpu.is_some() {
        bail!("{name}: --cpu does not apply\nhint: omit it");
    }
    let how = match name {
        "task-list" => "measured in memory",
        "io-pacing" if arguments.target.is_none() => return Ok(()),
        "io-pacing" => "measured with targets of its own",
        name if name.starts_with("hdd") => "modelled",
        _ => return Ok(()),
    };
    if arguments.target.is_some() {
        bail!("{name}: the table is {how} and takes no target\nhint: omit it");
    }
    if arguments.seconds.is_some() {
        bail!("{name}: the table is {how}; --seconds does not apply\nhint: omit it");
    }
    Ok(())
}

fn measure(arguments: &TableArguments, name: &str, target: &Path) -> Result<ProgramEnd> {
    let seconds = arguments.seconds.unwrap_or(SECONDS);
    let interrupts = Interrupts::install().context("signals")?;
    let stops = || interrupts.count();
    let mut context = TableContext {
        environment: &Process::new(),
        fathom: std::env::current_exe().context("this program's path")?,
        tell: &mut |run| output::print(StandardStream::Error, &format!("{name}: {run}\n")),
        stops: &stops,
    };
    let table = if name == "aio-submit" {
        let asked = AioSubmit {
            folder: target.to_owned(),
            seconds,
        };
        aio_submit(&asked, &mut context).map_err(problem)
    } else if name == "log-entries" {
        let asked = LogEntries {
            target: target.to_owned(),
            seconds,
            repeats: arguments.repeats.unwrap_or(RUN_REPEATS),
        };
        log_entries(&asked, &mut context).map_err(problem)
    } else {
        let asked = UringIrq {
            target: target.to_owned(),
            cpu: arguments.cpu.map_or_else(|| Ok(last_cpu()), allowed)?,
            seconds,
        };
        uring_irq(&asked, &mut context).map_err(problem)
    };
    print(&table?, arguments, Some(interrupts))
}

/// Measures pacing in targets that it starts itself.
fn measure_pacing(arguments: &TableArguments) -> Result<ProgramEnd> {
    let config = arguments
        .pacing
        .to_config(arguments.seconds, arguments.repeats)?;
    let interrupts = Interrupts::install().context("signals")?;
    let stops = || interrupts.count();
    let mut tell = |run: &str| output::print(StandardStream::Error, &format!("io-pacing: {run}\n"));
    let table = io_pacing(&config, &mut tell, &stops).map_err(problem)?;
    print(&table, arguments, Some(interrupts))
}

fn problem(error: LabError) -> anyhow::Error {
    let hint = error.hint();
    with_hint(error, hint)
}

fn print(
    table: &Table,
    arguments: &TableArguments,
    interrupts: Option<Interrupts>,
) -> Result<ProgramEnd> {
    Data::Stdout.add(&arguments.format.render(table))?;
    let stops = move || interrupts.map_or(0, Interrupts::count);
    if let Some(path) = &arguments.svg {
        let stop = Stop::when(move || stops() > 0);
        write_or_keep(path, table.svg().as_bytes(), DRAWING, &stop).context("--svg")?;
    }
    Ok(ProgramEnd::Ran {
        failed_jobs: 0,
        tolerated_errors: 0,
        interrupted: stops() > 0,
    })
}

fn list() -> String {
    let one = |known: &fathom_lab::Experiment| {
        format!(
            "{}\n    {}\n    published: {}\n",
            known.name, known.about, known.origin
        )
    };
    experiments().iter().map(one).collect()
}

/// Refuses a CPU that this process may not use, before each run does.
fn allowed(cpu: u32) -> Result<u32> {
    let allowed = thread::allowed_cpus().unwrap_or_default();
    if !allowed.is_empty() && !allowed.contains(&cpu) {
        bail!("uring-irq: --cpu: CPU {cpu} is outside this process's affinity mask");
    }
    Ok(cpu)
}

/// Returns the last CPU of the affinity mask: the first one usually serves most interrupts.
fn last_cpu() -> u32 {
    let allowed = thread::allowed_cpus().unwrap_or_default();
    allowed.last().copied().unwrap_or(0)
}

const EXAMPLES: &str = "\
Examples:
  fathom table
  fathom table uring-irq /dev/nvme0n1
  fathom table uring-irq --seconds 2 --json --svg irq.svg /dev/nvme0n1
  fathom table log-entries --seconds 60 /dev/sda
  fathom table aio-submit --seconds 10 /var/tmp
  fathom table task-list --json
  fathom table io-pacing --depth 32,256 --repeats 5 --svg pacing.svg
  fathom table io-pacing --test slow-shared,slow-held
  fathom table hdd-tags
  fathom table hdd-tags --markdown
  fathom table hdd-tags --numjobs 512 --nr-requests 2048 --policy fair,elastic";

/// Default duration of a row.
const SECONDS: u32 = 5;
/// Longest duration of a row, as of `fathom peak`.
const SECONDS_MAX: i64 = 1_000_000;
/// Default repeats of the runs of `log-entries`.
const RUN_REPEATS: u32 = 5;
/// Runs of each implementation in `task-list`; medians of 21 repeat to within a few percent.
const REPEATS: u32 = 21;

const DRAWING: Kept = Kept {
    words: "the drawing was",
    extension: "svg",
};

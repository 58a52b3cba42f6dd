//! `fathom ab`: two or more settings of one option, or two job files, in a lab without a file.

use std::path::Path;

use anyhow::{Context, Result};
use clap::Args;
use fathom_host::output_file::{self, Stop};
use fathom_job::Environment;
use fathom_lab::LabPlan;
use fathom_toml::TomlProblem;

use crate::ab_lab::{AbLab, NAME};
use crate::environment::Process;
use crate::exit::ProgramEnd;
use crate::output::{self, StandardStream};
use crate::table_format::TableFormat;
use crate::{compare, lab, metric_name, spared_inputs};

/// Arguments of `fathom ab`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AbArguments {
    /// Job file, or the two to compare; the first is the baseline
    #[arg(value_name = "JOB.fio", required = true, num_args = 1..=2)]
    pub(crate) jobs: Vec<String>,
    /// Option and its values; the first is the baseline
    #[arg(long, value_name = "OPTION=V1,V2[,V3…]")]
    pub(crate) set: Option<String>,
    /// Repeats, each with every side once: 6 to 100, as fewer prove nothing
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = repeats)]
    pub(crate) repeats: u32,
    /// Metric to judge, with the change that is too small to matter [default: all.iops=2%]
    #[arg(long, value_name = "METRIC=PERCENT%", value_parser = judged)]
    pub(crate) judge: Vec<Judged>,
    /// Run on this modelled machine, in virtual time
    #[arg(long, value_name = "MACHINE.toml")]
    pub(crate) machine: Option<String>,
    /// Write the lab file instead of running it
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) save: Option<String>,
    #[command(flatten)]
    format: TableFormat,
}

/// Metric to judge, as a lab file has it.
#[derive(Clone, Debug)]
pub(crate) struct Judged {
    pub(crate) metric: String,
    /// Tolerance, with its sign.
    pub(crate) tolerance: String,
}

/// Compares, and prints the table with the verdict.
pub(crate) fn run(arguments: &AbArguments) -> ProgramEnd {
    match execute(arguments) {
        Ok(end) => end,
        Err(error) => {
            output::print(StandardStream::Error, &format!("fathom: ab: {error:#}\n"));
            ProgramEnd::Refused
        }
    }
}

fn execute(arguments: &AbArguments) -> Result<ProgramEnd> {
    let ab = AbLab::of(arguments)?;
    let environment = Process::new();
    for file in arguments.jobs.iter().chain(&arguments.machine) {
        let read = environment.read_file(file);
        read.with_context(|| format!("cannot read {file}"))?;
    }
    let file = arguments.save.as_deref().unwrap_or(NAME);
    let plan = match LabPlan::parse(file, &ab.text, &[], &environment) {
        Ok(plan) => plan,
        Err(problems) => return Ok(refused(&ab, file, problems)),
    };
    let Some(path) = &arguments.save else {
        return lab::run_plan(&plan, arguments.format);
    };
    spared_inputs::check("--save", Path::new(path), environment.files_read())?;
    let written = output_file::write(Path::new(path), ab.text.as_bytes(), &Stop::never());
    written.with_context(|| format!("--save: {path}"))?;
    let line = format!("fathom: ab: run it with `fathom lab {path}`\n");
    output::print(StandardStream::Error, &line);
    Ok(ProgramEnd::Printed)
}

/// Prints problems: those of the lab at the arguments that it is made of, as nobody has seen its
/// text; those of the user's files at their places.
fn refused(ab: &AbLab, file: &str, problems: Vec<TomlProblem>) -> ProgramEnd {
    let (of_lab, of_files): (Vec<_>, Vec<_>) = problems
        .into_iter()
        .partition(|problem| problem.origin.file == file);
    let mut told: Vec<String> = Vec::new();
    for problem in &of_lab {
        let place = match ab.argument(&problem.origin) {
            "" => String::new(),
            argument => format!("{argument}: "),
        };
        let hint = match problem.hint.as_str() {
            "" => String::new(),
            hint => format!("hint: {hint}\n"),
        };
        let text = format!("fathom: ab: {place}{}\n{hint}", problem.message);
        // Each value of an option repeats what is wrong with the option.
        if !told.contains(&text) {
            output::print(StandardStream::Error, &output::printable_lines(&text));
            told.push(text);
        }
    }
    if of_files.is_empty() {
        return ProgramEnd::Refused;
    }
    lab::refused(&of_files)
}

/// Reads a number of repeats.
fn repeats(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(0..6) => Err("at least 6 repeats: fewer prove nothing".into()),
        Ok(count @ 6..=100) => Ok(count),
        Ok(_) => Err("at most 100 repeats: a comparison counts no more".into()),
        Err(_) => Err("a number from 6 to 100".into()),
    }
}

/// Reads `read.iops=2%`.
fn judged(text: &str) -> Result<Judged, String> {
    let Some((metric, tolerance)) = text.split_once('=') else {
        return Err(format!("no tolerance: write `{text}=2%`"));
    };
    metric_name::parse(metric)?;
    compare::percent(tolerance)?;
    let number = tolerance.trim().trim_end_matches('%').trim_end();
    Ok(Judged {
        metric: metric.to_owned(),
        tolerance: format!("{number}%"),
    })
}

const EXAMPLES: &str = "\
Examples:
  fathom ab job.fio --set ioscheduler=none,mq-deadline
  fathom ab job.fio --set iodepth=8,16,32 --repeats 20 --judge read.clat_p99=5%
  fathom ab before.fio after.fio --save ab.toml
  fathom ab job.fio --set iodepth=8,16 --machine examples/machines/ssd.toml

Exit codes: as of `fathom lab`.";

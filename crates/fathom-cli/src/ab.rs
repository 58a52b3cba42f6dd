//! `fathom ab`: two or more settings of one option, or two job files, in a lab without a file.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::Args;
use fathom_host::output_file::{self, Stop};
use fathom_lab::LabPlan;

use crate::environment::Process;
use crate::exit::ProgramEnd;
use crate::lab;
use crate::output::{self, StandardStream};
use crate::spared_inputs;
use crate::table_format::TableFormat;

/// Arguments of `fathom ab`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AbArguments {
    /// Job file, or the two to compare; the first is the baseline
    #[arg(value_name = "JOB.fio", required = true, num_args = 1..=2)]
    jobs: Vec<String>,
    /// Option and its values; the first is the baseline
    #[arg(long, value_name = "OPTION=V1,V2[,V3…]")]
    set: Option<String>,
    /// Repeats, each with every side once
    #[arg(long, value_name = "N", default_value_t = 12)]
    #[arg(value_parser = clap::value_parser!(u32).range(6..=100))]
    repeats: u32,
    /// Metric to judge, with the change that is too small to matter [default: all.iops=2%]
    #[arg(long, value_name = "METRIC=PERCENT%")]
    judge: Vec<String>,
    /// Write the lab file instead of running it
    #[arg(long, value_name = "FILE.toml")]
    save: Option<String>,
    #[command(flatten)]
    format: TableFormat,
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
    let text = text(arguments)?;
    let file = arguments.save.as_deref().unwrap_or(NAME);
    let environment = Process::new();
    let plan = match LabPlan::parse(file, &text, &[], &environment) {
        Ok(plan) => plan,
        Err(problems) => return Ok(lab::refused(&problems)),
    };
    let Some(path) = &arguments.save else {
        return lab::run_plan(&plan, arguments.format);
    };
    spared_inputs::check("--save", Path::new(path), environment.files_read())?;
    let written = output_file::write(Path::new(path), text.as_bytes(), &Stop::never());
    written.with_context(|| format!("--save: {path}"))?;
    let line = format!("fathom: ab: run it with `fathom lab {path}`\n");
    output::print(StandardStream::Error, &line);
    Ok(ProgramEnd::Printed)
}

/// Returns the text of the lab file.
fn text(arguments: &AbArguments) -> Result<String> {
    let variants = variants(arguments)?;
    for (at, (name, _)) in variants.iter().enumerate() {
        if variants[..at].iter().any(|(earlier, _)| earlier == name) {
            bail!(
                "two sides are `{name}`\n\
                 hint: name each side once; `fathom lab FILE --a-a N` compares one with itself"
            );
        }
    }
    let judged = match arguments.judge.as_slice() {
        [] => vec![JUDGED.to_owned()],
        judged => judged.to_vec(),
    };
    let mut metrics = Vec::new();
    for one in &judged {
        let Some((metric, tolerance)) = one.split_once('=') else {
            bail!("--judge {one}: no tolerance\nhint: write `--judge {one}=2%`");
        };
        metrics.push(format!("{} = {}", quoted(metric), quoted(tolerance)));
    }
    let job = job_path(arguments, &arguments.jobs[0])?;
    let (name, repeats) = (quoted(NAME), arguments.repeats);
    let mut text = format!(
        "[lab]\nname = {name}\n[job]\nfile = {}\n[variants]\n",
        quoted(&job)
    );
    for (name, settings) in &variants {
        let _infallible = writeln!(text, "{} = {settings}", quoted(name));
    }
    let _infallible = write!(
        text,
        "[judge]\nbaseline = {}\nmetrics = {{ {} }}\nrepeats = {{ min = {repeats}, max = \
         {repeats}, stop = \"never\" }}\n",
        quoted(&variants[0].0),
        metrics.join(", ")
    );
    Ok(text)
}

/// Returns the name of each side and its settings.
fn variants(arguments: &AbArguments) -> Result<Vec<(String, String)>> {
    match (&arguments.set, arguments.jobs.as_slice()) {
        (None, [one, other]) => {
            let file = quoted(&job_path(arguments, other)?);
            Ok(vec![
                (one.clone(), "{}".into()),
                (other.clone(), format!("{{ file = {file} }}")),
            ])
        }
        (Some(set), [_]) => {
            let values = set.split_once('=');
            let (option, values) = values
                .filter(|(_, values)| values.contains(','))
                .with_context(|| format!("--set {set}: expected OPTION=V1,V2"))?;
            let side = |value: &str| {
                let settings = format!("{{ job = {{ {} = {} }} }}", quoted(option), quoted(value));
                (value.to_owned(), settings)
            };
            Ok(values.split(',').map(side).collect())
        }
        (None, _) => {
            bail!("nothing to compare\nhint: add --set OPTION=V1,V2, or name a second job file")
        }
        (Some(_), _) => bail!("--set takes one job file\nhint: name one"),
    }
}

/// Returns the path of a job file as the lab file has it, which may be saved elsewhere.
fn job_path(arguments: &AbArguments, job: &str) -> Result<String> {
    let folder = arguments
        .save
        .as_ref()
        .and_then(|save| Path::new(save).parent());
    if folder.is_none_or(|folder| folder.as_os_str().is_empty()) {
        return Ok(job.to_owned());
    }
    let path = std::path::absolute(job).with_context(|| job.to_owned())?;
    Ok(path.to_string_lossy().into_owned())
}

/// Quotes a text as TOML: its strings have JSON's escapes.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Name of the lab.
const NAME: &str = "ab";
/// Metric that every job has.
const JUDGED: &str = "all.iops=2%";

const EXAMPLES: &str = "\
Examples:
  fathom ab job.fio --set ioscheduler=none,mq-deadline
  fathom ab job.fio --set iodepth=8,16,32 --repeats 20 --judge read.clat_p99=5%
  fathom ab before.fio after.fio --save ab.toml

Exit codes: as of `fathom lab`.";

//! `fathom report`: pages of runs that were kept.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use fathom_host::output_file::{self, Stop};
use fathom_record::Record;
use fathom_report::run_page;
use fathom_sys::signals::Interrupts;

use crate::exit::ProgramEnd;
use crate::output::{self, StandardStream};
use crate::saved_runs;

/// Arguments of `fathom report`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReportArguments {
    /// Run: a record (`fathom run --record FILE`), or a number of the history
    #[arg(value_name = "RUN")]
    run: String,
    /// Write one page of HTML, which needs no network and no other file
    #[arg(long, value_name = "FILE", required = true)]
    html: PathBuf,
}

/// Writes the page.
pub(crate) fn run(arguments: &ReportArguments) -> ProgramEnd {
    match write(arguments) {
        Ok(()) => ProgramEnd::Printed,
        Err(error) => {
            let text = format!("fathom: report: {error:#}\n");
            output::print(StandardStream::Error, &text);
            ProgramEnd::Refused
        }
    }
}

fn write(arguments: &ReportArguments) -> Result<()> {
    let to = || format!("--html: {}", arguments.html.display());
    output_file::check(&arguments.html).with_context(to)?;
    let record = record(&arguments.run)?;
    let name = Path::new(&arguments.run).file_name();
    let name = name.map_or_else(
        || arguments.run.clone(),
        |name| name.to_string_lossy().into(),
    );
    let interrupts = Interrupts::install().context("signals")?;
    let stop = Stop::when(move || interrupts.count() > 0);
    let page = run_page(&record, &name).html();
    output_file::write(&arguments.html, page.as_bytes(), &stop).with_context(to)
}

/// Reads the record of a run: of a file if there is one of that name, else of the history.
fn record(name: &str) -> Result<Record> {
    let path = Path::new(name);
    let is_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    if is_number && !path.exists() {
        return of_history(name);
    }
    if path.is_dir() {
        bail!("{name}: a directory\nhint: name one of its files");
    }
    let text = saved_runs::text(path)?;
    if !Record::is_in(&text) {
        bail!(
            "{name}: no record of a run\nhint: `fathom run --record FILE` makes one; other output \
             lacks the course of a run"
        );
    }
    Record::from_json(&text).with_context(|| name.to_owned())
}

#[cfg(not(feature = "history"))]
fn of_history(name: &str) -> Result<Record> {
    let why = format!("{name}: this program was built without the history");
    let hint = "build it with the feature `history`, or name a file";
    Err(crate::failure::with_hint(why, Some(hint)))
}

#[cfg(feature = "history")]
fn of_history(name: &str) -> Result<Record> {
    use crate::history_keep::{reader, with_its_hint};
    use fathom_lab::RunId;

    let run: i64 = name.parse().with_context(|| format!("run {name}"))?;
    let history = reader()?;
    let row = history.show(RunId(run)).map_err(with_its_hint)?;
    let text = history.record_of(row.id).map_err(with_its_hint)?;
    let text = text.with_context(|| format!("run {name} has no record"))?;
    Record::from_json(&text).with_context(|| format!("run {name}"))
}

const EXAMPLES: &str = "\
Examples:
  fathom run --record run.json job.fio
  fathom report run.json --html run.html
  fathom report 12 --html run.html";

//! `fathom report`: pages of runs, labs, comparisons and trends that were kept.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use fathom_report::LogKind;

use crate::compare::RuleArguments;
use crate::exit::ProgramEnd;
use crate::history::SeriesArguments;
use crate::output::{self, StandardStream};
use crate::report_logs;
use crate::report_output;
use crate::report_subject::{self, Wanted};
use crate::spared_inputs;

/// Arguments of `fathom report`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReportArguments {
    /// Subject of the page, see below; two words are the sides of a comparison, if not I/O logs
    #[arg(value_name = "WHAT", required = true)]
    what: Vec<String>,
    /// Quantity in the I/O logs, if their names do not give it: resp, lat, clat, slat, bw, iops
    #[arg(long, value_name = "KIND", value_parser = report_logs::kind)]
    kind: Option<LogKind>,
    /// Write one page of HTML, which needs no network and no other file
    #[arg(long, value_name = "FILE", required = true)]
    html: PathBuf,
    /// Write each figure by itself, too, as SVG in black and greys
    #[arg(long, value_name = "DIR")]
    svg_dir: Option<PathBuf>,
    #[command(flatten, next_help_heading = "Rules of a comparison")]
    rules: RuleArguments,
    #[command(flatten, next_help_heading = "Series of a trend")]
    series: SeriesArguments,
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
    let inputs = arguments.what.iter().map(String::as_str);
    spared_inputs::check("--html", &arguments.html, inputs)?;
    let (logs, what) = report_logs::split(&arguments.what, arguments.kind)?;
    let page = if what.is_empty() {
        report_logs::page(&logs, arguments.kind)?
    } else {
        let subject = report_subject::resolve(&Wanted {
            what: &what,
            rules: &arguments.rules,
            series: arguments.series,
        })?;
        let logs = match logs.is_empty() {
            true => None,
            false => Some(report_logs::read(&logs, arguments.kind)?),
        };
        subject.page(logs.as_ref())?
    };
    report_output::write(&page, &arguments.html, arguments.svg_dir.as_deref())
}

const EXAMPLES: &str = "\
Examples:
  fathom run --record run.json job.fio
  fathom report run.json --html run.html
  fathom report fio.json --html fio.html
  fathom report 12 --html run.html --svg-dir figures
  fathom report --html logs.html job_clat.1.log job_clat.2.log
  fathom report run.json job_clat.1.log --html run.html
  fathom report my-lab.toml --html lab.html
  fathom report before/ after/ --html comparison.html
  fathom report trend:read.iops --html trend.html

WHAT is
  FILE                   a record, an exported run, or fio's report as JSON or JSON+
  LOG…                   I/O logs, fio's or fathom's, which are overlaid
  RUN LOG…               a record, fio's report or a run of the history, and its I/O logs
  FILE.toml, lab:NAME    a lab of the history: the last one of that file or name
  NUMBER                 a run of the history
  trend:METRIC           a metric over the runs of the history
  BEFORE AFTER           two sides, as `fathom compare` takes them
A file of that name comes first; write ./12 or ./lab:x to be sure.";

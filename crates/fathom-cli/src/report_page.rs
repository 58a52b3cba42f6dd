//! `fathom report`: pages of runs that were kept.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use fathom_report::{LogKind, Page, run_page};

use crate::exit::ProgramEnd;
use crate::output::{self, StandardStream};
use crate::report_logs;
use crate::report_output;
use crate::report_subject::{self, Subject};

/// Arguments of `fathom report`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReportArguments {
    /// Run: a record (`fathom run --record FILE`), a report of fio as JSON or JSON+, or a number
    /// of the history; or I/O logs of fio or fathom, which are laid over each other
    #[arg(value_name = "WHAT", required = true)]
    what: Vec<String>,
    /// Quantity in the I/O logs, if their names do not tell: resp, lat, clat, slat, bw, iops
    #[arg(long, value_name = "KIND", value_parser = report_logs::kind)]
    kind: Option<LogKind>,
    /// Write one page of HTML, which needs no network and no other file
    #[arg(long, value_name = "FILE", required = true)]
    html: PathBuf,
    /// Write each figure by itself, too, as SVG in black on white
    #[arg(long, value_name = "DIR")]
    svg_dir: Option<PathBuf>,
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
    let page = match report_logs::page(&arguments.what, arguments.kind)? {
        Some(page) => page,
        None => of_subject(&arguments.what)?,
    };
    report_output::write(&page, &arguments.html, arguments.svg_dir.as_deref())
}

fn of_subject(what: &[String]) -> Result<Page> {
    let [what] = what else {
        bail!("only I/O logs can share a page\nhint: name one of these, or logs alone");
    };
    let title = report_subject::title(what);
    Ok(match report_subject::resolve(what)? {
        Subject::Run(run) => run_page(&run.record, &title),
    })
}

const EXAMPLES: &str = "\
Examples:
  fathom run --record run.json job.fio
  fathom report run.json --html run.html
  fathom report fio.json --html fio.html
  fathom report --html logs.html job_clat.1.log job_clat.2.log
  fathom report 12 --html run.html --svg-dir figures";

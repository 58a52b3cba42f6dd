//! `fathom report`: pages of runs that were kept.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use fathom_report::run_page;

use crate::exit::ProgramEnd;
use crate::output::{self, StandardStream};
use crate::report_output;
use crate::report_subject::{self, Subject};

/// Arguments of `fathom report`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReportArguments {
    /// Run: a record (`fathom run --record FILE`), a report of fio as JSON or JSON+, or a number
    /// of the history
    #[arg(value_name = "WHAT")]
    what: String,
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
    let subject = report_subject::resolve(&arguments.what)?;
    let title = report_subject::title(&arguments.what);
    let page = match &subject {
        Subject::Run(run) => run_page(&run.record, &title),
    };
    report_output::write(&page, &arguments.html, arguments.svg_dir.as_deref())
}

const EXAMPLES: &str = "\
Examples:
  fathom run --record run.json job.fio
  fathom report run.json --html run.html
  fathom report fio.json --html fio.html
  fathom report 12 --html run.html --svg-dir figures";

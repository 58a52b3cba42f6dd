//! Conversion of finished I/O logs: `--inflate-log`, `fathom log`.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use fathom_host::output_file::Stop;
use fathom_job::Dialect;
use fathom_report::LogKind;
use fathom_sys::signals::Interrupts;

use crate::exit::ProgramEnd;
use crate::output::{self, StandardStream};
use crate::report_logs;

/// Arguments of `fathom log`.
#[derive(Args, Clone, Debug)]
pub(crate) struct LogArguments {
    #[command(subcommand)]
    command: LogCommand,
}

#[derive(Clone, Debug, Subcommand)]
enum LogCommand {
    /// Convert a log to text, compressed text, CSV or Parquet
    ///
    /// The format of FROM is detected, that of TO follows from its extension: .log is fio's text;
    /// .fz is compressed text, as with log_store_compressed; .csv is text with a header; .parquet
    /// is missing in builds without the feature `parquet`.
    #[command(after_help = EXAMPLES)]
    Convert {
        /// Log written by fathom or fio
        from: PathBuf,
        /// File to write
        to: PathBuf,
        /// Quantity that was logged, for the name of the value column [default: from the file name,
        /// else from the value column]
        #[arg(long, value_parser = report_logs::kind)]
        kind: Option<LogKind>,
    },
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &LogArguments) -> ProgramEnd {
    let LogCommand::Convert { from, to, kind } = &arguments.command;
    let stop = match Interrupts::install() {
        Ok(interrupts) => Stop::when(move || interrupts.count() > 0),
        Err(_) => Stop::never(), // then signals end the process
    };
    match fathom_log::convert_log(from, to, kind.map(LogKind::word), &stop) {
        Ok(converted) => {
            let mut text = format!("{}: {} lines\n", to.display(), converted.lines);
            if converted.is_nameless {
                text += NAMELESS;
            }
            output::print(StandardStream::Error, &text);
            ProgramEnd::Printed
        }
        Err(error) => {
            let text = format!("fathom: log convert: {error}\n");
            output::print(StandardStream::Error, &text);
            ProgramEnd::Refused
        }
    }
}

/// Prints a compressed log as text.
pub(crate) fn inflate(path: &str, dialect: Dialect) -> ProgramEnd {
    let file = File::open(path).map(BufReader::new);
    match file.and_then(|file| fathom_log::inflate_log(file, io::stdout().lock())) {
        Ok(()) => ProgramEnd::Printed,
        // The reader has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ProgramEnd::Printed,
        Err(error) => {
            let message = format!(
                "{}: cannot inflate log: {path}: {error}\n\
                 hint: name a file written with `log_store_compressed=1`\n",
                dialect.program()
            );
            output::print(StandardStream::Error, &message);
            ProgramEnd::Refused
        }
    }
}

/// Said of tables whose value column has no telling name.
const NAMELESS: &str = "\
note: neither the file name nor a column says what was logged: values are in `value`, without a unit
hint: add `--kind`, as in `--kind=clat`, or keep the name under which the log was written
";

const EXAMPLES: &str = "\
Examples:
  fathom log convert run1_clat.1.log run1_clat.csv
  fathom log convert --kind bw server7.log server7.csv
  fathom log convert run1_clat.1.log.fz run1_clat.parquet";

//! Choice of the command: `run` passes fio's arguments on unparsed, clap parses the rest.

use std::ffi::OsString;
use std::path::Path;

use clap::error::ErrorKind;
use clap::{Command, CommandFactory, Parser, Subcommand};
use fathom_job::Dialect;

use crate::ab::{self, AbArguments};
use crate::compare::{self, CompareArguments};
use crate::completions::{self, CompletionsArguments};
use crate::exit::ProgramEnd;
use crate::history::{self, HistoryArguments};
use crate::lab::{self, LabArguments};
use crate::lint;
use crate::log::{self, LogArguments};
use crate::manual::{self, ManArguments};
use crate::merge::{self, MergeArguments};
use crate::micro::{self, MicroArguments};
use crate::output::{self, StandardStream};
use crate::peak;
use crate::peak_arguments::PeakArguments;
use crate::report_page::{self, ReportArguments};
use crate::run_command;
use crate::table::{self, TableArguments};
use crate::target::{self, TargetArguments};
use crate::text_width;
use crate::trace::{self, TraceArguments};
use crate::version::VERSION;

/// Measure storage: fio's jobs, honest latency
#[derive(Parser)]
#[command(name = "fathom", version = VERSION, arg_required_else_help = true)]
#[command(after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: FathomCommand,
}

#[derive(Subcommand)]
enum FathomCommand {
    /// Run fio job files or jobs given as options
    ///
    /// Arguments are parsed as by fio, `-` is standard input; see `fathom run --help`.
    #[command(disable_help_flag = true)]
    Run {
        /// Job files and options, as for fio
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "FIO ARGUMENTS"
        )]
        words: Vec<OsString>,
    },
    /// Check a job for common measurement mistakes
    ///
    /// Takes the arguments of `fathom run` but runs nothing. Exit codes: 0 no findings; 1 findings;
    /// 2 the job cannot be read.
    Lint {
        /// Print findings as JSON
        #[arg(long)]
        json: bool,
        /// List the rules
        #[arg(long)]
        rules: bool,
        /// Job files and options, as for `fathom run`
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "FIO ARGUMENTS"
        )]
        words: Vec<OsString>,
    },
    /// Measure the raw maximum of a device or of the kernel's I/O path
    Peak(PeakArguments),
    /// Repeat a published measurement and compare it with the published figures
    Table(Box<TableArguments>),
    /// Run an experiment of interleaved repeats, with a verdict per cell
    Lab(Box<LabArguments>),
    /// Compare settings of an option, or two job files, by interleaved repeats
    Ab(AbArguments),
    /// Trace a disk's requests and seek distances, or io_uring task work
    Trace(TraceArguments),
    /// Convert I/O logs
    Log(LogArguments),
    /// Compare earlier runs: files, directories, runs of the history
    ///
    /// Exit codes: 0 done; 1 done, and a judged metric is worse; 2 not done.
    Compare(CompareArguments),
    /// Add up the records that the ranks of a run have written
    ///
    /// Exit codes: 0 done; 1 done, and ranks are missing or cut, or a job failed; 2 not done.
    Merge(MergeArguments),
    /// Show a run as a page of HTML: tables, percentiles, its course over time
    Report(ReportArguments),
    /// List, query, import and export the runs that are kept on this machine
    History(HistoryArguments),
    /// Serve block devices over NVMe/TCP
    Target(Box<TargetArguments>),
    /// Micro-benchmark the completion list, the tag set and the generation map
    Micro(MicroArguments),
    /// Print a completion script for a shell
    Completions(CompletionsArguments),
    /// Print or write the manual pages
    Man(ManArguments),
}

/// Returns the definition of the command line, as clap parses it.
pub(crate) fn definition() -> Command {
    Arguments::command()
}

/// Returns the dialect that the program's name selects.
pub(crate) fn dialect(name: Option<&OsString>) -> Dialect {
    let name = name.and_then(|name| Path::new(name).file_name());
    if name.is_some_and(|name| name == "fio") {
        Dialect::Fio
    } else {
        Dialect::Fathom
    }
}

/// Runs the command that the arguments select.
pub(crate) fn run(words: &[OsString], dialect: Dialect) -> ProgramEnd {
    let rest = words.get(1..).unwrap_or_default();
    if dialect == Dialect::Fio {
        return run_command::run(rest, Dialect::Fio);
    }
    // Handled before clap, which would interpret `--` and abbreviations itself.
    if let Some((first, rest)) = rest.split_first()
        && first == "run"
    {
        return run_command::run(rest, Dialect::Fathom);
    }
    if let Some((first, rest)) = rest.split_first()
        && first == "lint"
        && !rest.is_empty()
        && !rest.iter().any(|word| word == "--help" || word == "-h")
    {
        return lint::run(rest);
    }
    match Arguments::try_parse_from(words) {
        Ok(arguments) => execute(arguments.command, words),
        Err(error) if error.use_stderr() => {
            let text = error.render().to_string();
            let text = match error.kind() {
                ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => text_width::fitted(&text),
                _ => text,
            };
            output::print(StandardStream::Error, &text);
            if looks_like_fio(rest) {
                let hint = "hint: put fio options and job files after `run`: `fathom run …`\n";
                output::print(StandardStream::Error, hint);
            }
            ProgramEnd::Refused
        }
        Err(help) => {
            let help = text_width::fitted(&help.render().to_string());
            output::show(&help, "fathom", ProgramEnd::Printed)
        }
    }
}

fn execute(command: FathomCommand, words: &[OsString]) -> ProgramEnd {
    match command {
        FathomCommand::Run { words } => run_command::run(&words, Dialect::Fathom),
        FathomCommand::Lint { words, .. } => lint::run(&words),
        FathomCommand::Peak(arguments) => peak::run(&arguments, words),
        FathomCommand::Table(arguments) => table::run(&arguments),
        FathomCommand::Ab(arguments) => ab::run(&arguments),
        FathomCommand::Lab(arguments) => lab::run(&arguments),
        FathomCommand::Trace(arguments) => trace::run(&arguments),
        FathomCommand::Log(arguments) => log::run(&arguments),
        FathomCommand::Compare(arguments) => compare::run(&arguments),
        FathomCommand::Merge(arguments) => merge::run(&arguments),
        FathomCommand::Report(arguments) => report_page::run(&arguments),
        FathomCommand::History(arguments) => history::run(&arguments),
        FathomCommand::Target(arguments) => target::run(&arguments),
        FathomCommand::Micro(arguments) => micro::run(&arguments),
        FathomCommand::Completions(arguments) => completions::run(&arguments),
        FathomCommand::Man(arguments) => manual::run(&arguments),
    }
}

/// Returns whether the arguments are fio's, with `run` forgotten.
fn looks_like_fio(words: &[OsString]) -> bool {
    let is_command = |word: &OsString| Arguments::command().find_subcommand(word).is_some();
    !words.first().is_some_and(is_command)
        && words.iter().any(|word| {
            let text = word.to_string_lossy();
            text.ends_with(".fio") || text.starts_with("--name") || Path::new(word).is_file()
        })
}

const EXAMPLES: &str = "\
Examples:
  fathom run examples/quickstart.fio
  fathom run --name=t --rw=randread --size=1g --ioengine=io_uring --iodepth=32

Called as `fio` (through a link or a copy), it takes fio's arguments directly.
Exit codes: 0 done; 1 done, but a check failed; 2 not done, or not completely.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_at_run_is_for_those_who_left_it_out() {
        let check = |line: &str, want| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(looks_like_fio(&words), want, "{line}");
        };
        check("job.fio --output-format=json", true);
        check("--name=t --rw=read", true);
        check("ab job.fio --machine m.toml", false);
        check("lab --a-a 0 job.fio", false);
        check("labb lab.toml", false);
    }
}

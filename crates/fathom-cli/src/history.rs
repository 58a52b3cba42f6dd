//! `fathom history`: the runs that are kept on this machine.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::exit::ProgramEnd;

#[cfg(feature = "history")]
#[path = "history_commands.rs"]
mod commands;

/// Arguments of `fathom history`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct HistoryArguments {
    #[command(subcommand)]
    pub(crate) command: Option<HistoryCommand>,
    #[command(flatten)]
    pub(crate) list: ListArguments,
}

/// Subcommands of `fathom history`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum HistoryCommand {
    /// List runs, the newest first; the default
    List(ListArguments),
    /// Show one run
    Show {
        /// Number of the run
        run: i64,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Print the record, as `fathom run --record` writes it; long timelines have wider windows
        #[arg(long, conflicts_with = "json")]
        record: bool,
    },
    /// Answer a query in SQL; nothing can be changed
    Sql {
        /// Query, such as 'SELECT * FROM run'
        query: String,
        /// Print JSON: an array with an object per row
        #[arg(long)]
        json: bool,
    },
    /// Add runs from files
    ///
    /// Records of `fathom run --record`, exported runs, and reports of fio as JSON or JSON+.
    Import {
        /// Files, or directories with files that end in .json
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Label of the added runs; may be repeated
        #[arg(long = "tag", value_name = "KEY=VALUE", value_parser = tag)]
        tags: Vec<(String, String)>,
    },
    /// Write runs as JSON, one a line, for `fathom history import`
    Export {
        /// File to write [default: standard output]
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        #[command(flatten)]
        select: SelectArguments,
    },
    /// Remove old runs
    Prune {
        /// Age of the runs to remove, in days
        #[arg(long, value_name = "DAYS")]
        older_than: u32,
        /// Remove the records only; runs and metrics stay
        #[arg(long)]
        records_only: bool,
        /// Remove nothing, print how many runs it would be
        #[arg(long)]
        dry_run: bool,
    },
    /// Copy the history into a new file, also while it is in use
    Backup {
        /// File to create
        file: PathBuf,
    },
}

/// Arguments of `fathom history list`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ListArguments {
    /// Number of runs; 0: all
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) last: u32,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) select: SelectArguments,
}

/// Selection of runs.
#[derive(Args, Clone, Debug)]
pub(crate) struct SelectArguments {
    /// Only runs of this lab, the last one of its name
    #[arg(long, value_name = "NAME")]
    pub(crate) lab: Option<String>,
    /// Only runs with this label; may be repeated
    #[arg(long = "tag", value_name = "KEY=VALUE", value_parser = tag)]
    pub(crate) tags: Vec<(String, String)>,
}

/// Runs the subcommand.
#[cfg(feature = "history")]
pub(crate) fn run(arguments: &HistoryArguments) -> ProgramEnd {
    commands::run(arguments)
}

/// Refuses the command.
#[cfg(not(feature = "history"))]
pub(crate) fn run(_arguments: &HistoryArguments) -> ProgramEnd {
    let text = "fathom: history: this program was built without it\n\
                hint: build it with the feature `history`, which needs a C compiler\n";
    crate::output::print(crate::output::StandardStream::Error, text);
    ProgramEnd::Refused
}

/// Reads a label.
fn tag(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("a label is KEY=VALUE".into()),
    }
}

const EXAMPLES: &str = "\
Examples:
  fathom run --history --tag commit=1a2b3c job.fio
  fathom history list --tag commit=1a2b3c
  fathom history sql 'SELECT run, value FROM measure WHERE metric = \"iops\"'

The history is the file FATHOM_HISTORY, else fathom/history.db in XDG_DATA_HOME
or ~/.local/share.";

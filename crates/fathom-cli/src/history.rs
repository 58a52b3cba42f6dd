//! `fathom history`: the runs that are kept on this machine.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use fathom_record::MetricName;

use crate::exit::ProgramEnd;
use crate::metric_name;

#[cfg(feature = "history")]
#[path = "history_check.rs"]
mod checks;
#[cfg(feature = "history")]
#[path = "history_commands.rs"]
mod commands;
#[cfg(feature = "history")]
#[path = "history_export.rs"]
mod exports;
#[cfg(feature = "history")]
#[path = "history_trend.rs"]
mod trends;

#[cfg(feature = "history")]
pub(crate) use trends::trend_page_of;

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
    /// Write runs for another history, or in a format of other programs
    ///
    /// Other formats than JSON have the runs that measured something, in the order in which they
    /// began. docs/EXPORTS.md describes each format.
    Export {
        /// Format
        #[arg(long, value_enum, default_value = "json")]
        format: ExportFormat,
        /// File to write [default: standard output]
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        #[command(flatten)]
        select: SelectArguments,
    },
    /// Remove old runs, those of a lab together
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
    /// Show how a metric developed: its levels, and what changed between them
    Trend(TrendArguments),
    /// Check whether the newest runs changed for the worse: exit code 1 if so
    ///
    /// Of each metric and each plan on each machine, a change for the worse among the newest 10
    /// runs counts, and the newest 5 runs are held against those before. Each of them has a chance
    /// of 1 % of a false alarm; the result says how many are to be expected. A check also fails if
    /// the newest 5 runs lack a metric that earlier ones have.
    Check(CheckArguments),
    /// Copy the history into a new file, also while it is in use
    Backup {
        /// File to create
        file: PathBuf,
    },
}

/// Format of exported runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// JSON, a run per line, which `fathom history import` reads
    Json,
    /// A row per run, with units in the headings
    Csv,
    /// The same table as Parquet; missing in builds without the feature `parquet`
    Parquet,
    /// Samples with timestamps, for Prometheus
    Openmetrics,
    /// An OTLP request per line as JSON, as the OpenTelemetry collector's file exporter writes
    Otlp,
    /// CSV for Apache Otava: runs of one plan on one machine
    Otava,
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

/// Arguments of `fathom history trend`.
#[derive(Args, Clone, Debug)]
pub(crate) struct TrendArguments {
    /// Metric, such as read.iops or write.clat_p99
    #[arg(value_parser = metric_name::parse)]
    pub(crate) metric: MetricName,
    #[command(flatten)]
    pub(crate) series: SeriesArguments,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `fathom history check`.
#[derive(Args, Clone, Debug)]
pub(crate) struct CheckArguments {
    /// Metric to check; may be repeated [default: bandwidth and the 99th percentile of clat of each
    /// direction]
    #[arg(long = "metric", value_name = "METRIC", value_parser = metric_name::parse)]
    pub(crate) metrics: Vec<MetricName>,
    #[command(flatten)]
    pub(crate) series: SeriesArguments,
    /// Change that is too small to count
    #[arg(long, value_name = "PERCENT", default_value = "2%")]
    #[arg(value_parser = crate::compare::percent)]
    pub(crate) tolerance: f64,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Selection of series of comparable runs.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct SeriesArguments {
    /// Only runs of this plan, by its number
    #[arg(long, value_name = "P")]
    pub(crate) plan: Option<i64>,
    /// Only runs on this machine, by its number
    #[arg(long, value_name = "M")]
    pub(crate) machine: Option<i64>,
}

/// Selection of runs.
#[derive(Args, Clone, Debug)]
pub(crate) struct SelectArguments {
    /// Only runs of this lab, the last one of its name
    #[arg(long, value_name = "NAME")]
    pub(crate) lab: Option<String>,
    /// Only runs of this plan, by its number
    #[arg(long, value_name = "P")]
    pub(crate) plan: Option<i64>,
    /// Only runs on this machine, by its number
    #[arg(long, value_name = "M")]
    pub(crate) machine: Option<i64>,
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
  fathom history trend read.iops
  fathom history check --metric read.iops --tolerance 3%
  fathom history export --format csv --output runs.csv
  fathom history sql 'SELECT run, value FROM measure WHERE metric = \"iops\"'

The history is the file FATHOM_HISTORY, else fathom/history.db in XDG_DATA_HOME
or ~/.local/share.";

//! Reports: a record in fio's text, JSON and terse formats, and Fathom's own tables.
//!
//! [`render`] gives a run's report in any format. Every number comes from the record: nothing here
//! measures, reads a clock or does I/O. Formats that fio has match fio's byte by byte, because
//! scripts parse them; the golden tests hold this.
#![forbid(unsafe_code)]

mod block_lives;
mod caveats;
mod characters;
mod client_stats;
mod device_trace;
mod disks;
mod distribution;
mod document;
mod exposition;
mod extensions;
mod group;
mod header;
mod host_differences;
mod hosts;
mod json;
mod late;
mod log_page;
mod markup;
mod number;
pub mod pad;
mod page;
mod peak;
mod peak_table;
mod percentile_curve;
mod percentiles;
pub mod plot;
mod priorities;
mod prometheus;
mod rate;
mod run_metrics;
mod run_page;
mod seeks;
mod stalls;
mod status;
mod steady;
mod summary;
mod target;
mod terse;
mod text;
mod text_latency;
mod timelines;
mod trace;
mod unified;

use fathom_core::OutputFormat;
use fathom_record::Record;

// Public items, listed once.
pub use caveats::{caveats, note_as_fio};
pub use characters::{acts_on_terminal, printable, printable_lines};
pub use client_stats::ClientStats;
pub use exposition::{BOUNDS, MetricsFormat, MetricsKind, MetricsPage, MetricsSamples};
pub use header::{job_header, starting_line};
pub use log_page::{
    KindSource, LogDescription, LogHistogram, LogKind, LogReduction, LogSample, log_page,
};
pub use page::{Drawing, Figure, Page, Picture, Shaded};
pub use peak::{aligned, peak_line, peak_summary};
pub use peak_table::{peak_matrix, peak_table};
pub use prometheus::prometheus;
pub use run_metrics::{DirectionMetrics, RunMetrics, openmetrics};
pub use run_page::{run_page, run_page_with_logs};
pub use seeks::seeks;
pub use stalls::stall_lines;
pub use status::{StatusFigures, status_line};
pub use summary::{report_count, summary};
pub use target::target_state;
pub use text::{text_as_fio, unit_of_work};
pub use trace::{trace, uring_trace};

/// Renders the report of a run in one format.
///
/// `terse_version` is the layout of the terse report, 2 to 5; 0 stands for fio's default, 3.
/// A new format is a file of this crate with a function from a record to text, and an arm here.
#[must_use]
pub fn render(record: &Record, format: OutputFormat, terse_version: u32) -> String {
    match format {
        OutputFormat::Terse => terse::terse(record, terse_version),
        OutputFormat::Json => document::json(record, false),
        OutputFormat::JsonPlus => document::json(record, true),
        OutputFormat::Normal => text::text(record),
    }
}

/// Version in the place of fio's, in JSON and before a report: scripts compare it with the version
/// of fio that they need.
pub const FIO_VERSION: &str = concat!("fio-3.42-fathom-", env!("CARGO_PKG_VERSION"));

/// Returns whether disk statistics are printed: there are some, and a job without `disk_util=0`.
fn show_disks(record: &Record) -> bool {
    !record.disks.is_empty() && record.jobs.iter().any(|job| job.display.disk_util)
}

//! A record in fio's text and JSON.
//!
//! Every number comes from the record alone; nothing here measures, reads a clock or does I/O.
//! The forms are fio's to the blank, because scripts cut them apart; see the golden tests.
#![forbid(unsafe_code)]

mod disks;
mod distribution;
mod document;
mod group;
mod header;
mod json;
mod number;
mod ours;
mod peak;
mod percentiles;
mod priorities;
mod rate;
mod seeks;
mod status;
mod steady;
mod terse;
mod text;
mod text_latency;
mod trace;
mod unified;
mod worth;

use fathom_record::Record;

// Public items, listed once.
pub use document::json;
pub use header::{job_header, starting_line};
pub use peak::{aligned, peak_line, peak_summary, peak_sweep};
pub use seeks::seeks;
pub use status::{Status, status_line};
pub use terse::terse;
pub use text::{text, unit_of_work};
pub use trace::{trace, uring_trace};
pub use worth::notes;

/// What stands in fio's place for its version, in JSON and before a report: scripts compare the
/// number with the fio they need.
pub const FIO_VERSION: &str = concat!("fio-3.42-fathom-", env!("CARGO_PKG_VERSION"));

/// Whether the devices are shown: there are some, and not every job has `disk_util=0`.
fn show_disks(record: &Record) -> bool {
    !record.disks.is_empty() && record.jobs.iter().any(|job| job.display.disk_util)
}

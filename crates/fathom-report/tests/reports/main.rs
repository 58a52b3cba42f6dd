//! Reports compared with fio's own outputs, read by tools, and made from odd records.
#![expect(
    clippy::unwrap_used,
    reason = "whatever is odd in a captured output or a report fails the test"
)]

mod captured;
mod consumers;
mod forms;
mod odd_records;
mod processors;
mod terse_consumers;
mod timelines;

use fathom_core::OutputFormat;
use fathom_record::Record;
use fathom_report::render;

fn text(record: &Record) -> String {
    render(record, OutputFormat::Normal, 0)
}

fn json(record: &Record, plus: bool) -> String {
    let format = if plus {
        OutputFormat::JsonPlus
    } else {
        OutputFormat::Json
    };
    render(record, format, 0)
}

fn terse(record: &Record, version: u32) -> String {
    render(record, OutputFormat::Terse, version)
}

//! Reports held against fio's own outputs, the tools that read them, and records out of the way.
#![expect(
    clippy::unwrap_used,
    reason = "whatever is odd in a captured output or a report fails the test"
)]

mod captured;
mod consumers;
mod forms;
mod odd_records;
mod terse_consumers;

//! Options of fio's built-in workloads (`--profile`). In job files they are accepted without
//! effect.

use super::row::{Row, ValueKind};

/// Creates the row of an option of a profile.
const fn row(name: &'static str, profile: &'static str, example: &'static str) -> Row {
    let why = match profile.as_bytes() {
        b"act" => "belongs to fio's profile `act` and has no effect in a job, as in fio",
        _ => "belongs to fio's profile `tiobench` and has no effect in a job, as in fio",
    };
    Row::new(
        name,
        "",
        "No effect in a job",
        example,
        ValueKind::Ignored(why),
    )
}

pub(super) const ROWS: &[Row] = &[
    row("threads", "tiobench", "threads=1"),
    row("block", "tiobench", "block=4k"),
    row("numruns", "tiobench", "numruns=1"),
    row("dir", "tiobench", "dir=/tmp"),
    row("device-names", "act", "device-names=/dev/null"),
    row("load", "act", "load=1"),
    row("test-duration", "act", "test-duration=1h"),
    row("threads-per-queue", "act", "threads-per-queue=8"),
    row(
        "read-req-num-512-blocks",
        "act",
        "read-req-num-512-blocks=3",
    ),
    row("large-block-op-kbytes", "act", "large-block-op-kbytes=128"),
    Row::new(
        "prep",
        "0",
        "No effect in a job",
        "prep",
        ValueKind::Flag(|_, _| {}),
    ),
];

//! Options on compression and deduplication of written data.

use super::general::{U32, choice};
use super::read::{byte, narrow};
use super::row::{Row, ValueKind};
use crate::workload::DedupeMode;

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "buffer_compress_percentage",
        "",
        "Percentage of compressible data (zeros or `buffer_pattern`) in write buffers",
        "buffer_compress_percentage=50",
        ValueKind::Int {
            min: 0,
            max: 100,
            set: |o, v| o.content.compress_percentage = Some(byte(v)),
        },
    )
    .different("layout does not apply it: files laid out before a job hold ordinary content"),
    Row::new(
        "buffer_compress_chunk",
        "512",
        "Unit in which random and compressible data alternate, bytes; 0: whole op",
        "buffer_compress_chunk=4k",
        ValueKind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.content.compress_chunk = narrow(v),
        },
    ),
    Row::new(
        "dedupe_percentage",
        "0",
        "Percentage of duplicate write buffers",
        "dedupe_percentage=30",
        ValueKind::Int {
            min: 0,
            max: 100,
            set: |o, v| {
                o.content.dedupe_percentage = Some(byte(v));
                // As in fio, even for 0; a later `refill_buffers` overrides it.
                o.refill_buffers = true;
            },
        },
    )
    .different("exactly this many of each hundred buffers; fio decides at random for each"),
    Row::new(
        "dedupe_mode",
        "repeat",
        "Source of duplicate buffers",
        "dedupe_mode=working_set",
        ValueKind::Choice(&[
            choice("repeat", "the previous unique buffer", |o| {
                o.content.dedupe_mode = DedupeMode::Repeat;
            }),
            choice("working_set", "a fixed working set", |o| {
                o.content.dedupe_mode = DedupeMode::WorkingSet;
            }),
        ]),
    ),
    Row::new(
        "dedupe_working_set_percentage",
        "5",
        "Size of the working set, percentage of `size`",
        "dedupe_working_set_percentage=10",
        ValueKind::Int {
            min: 0,
            max: 100,
            set: |o, v| o.content.dedupe_working_set_percentage = byte(v),
        },
    ),
    Row::new(
        "dedupe_global",
        "0",
        "Share one working set among all jobs that set this",
        "dedupe_global=1",
        ValueKind::Bool(|o, v| o.content.dedupe_global = v),
    ),
];

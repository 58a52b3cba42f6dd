//! How well what is written compresses, and how much of it was written before.

use super::general::{U32, choice};
use super::read::{byte, narrow};
use super::row::{Kind, Row};
use crate::workload::DedupeMode;

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "buffer_compress_percentage",
        "",
        "How much of what is written is zeros or `buffer_pattern`, and not random, in percent",
        "buffer_compress_percentage=50",
        Kind::Int {
            min: 0,
            max: 100,
            set: |o, v| o.content.compress_percentage = Some(byte(v)),
        },
    )
    .different("files that are laid out before a job hold plain content"),
    Row::new(
        "buffer_compress_chunk",
        "512",
        "In each so many bytes random ones come first; 0 for the whole op",
        "buffer_compress_chunk=4k",
        Kind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.content.compress_chunk = narrow(v),
        },
    ),
    Row::new(
        "dedupe_percentage",
        "0",
        "How many of the buffers that are written were written before, in percent",
        "dedupe_percentage=30",
        Kind::Int {
            min: 0,
            max: 100,
            set: |o, v| {
                o.content.dedupe_percentage = Some(byte(v));
                // As in fio, 0 too; a `refill_buffers` behind it has the last word.
                o.refill_buffers = true;
            },
        },
    )
    .different("as many of each hundred buffers as asked for; fio throws dice for each"),
    Row::new(
        "dedupe_mode",
        "repeat",
        "Which buffer comes again",
        "dedupe_mode=working_set",
        Kind::Choice(&[
            choice("repeat", "the last new one", |o| {
                o.content.dedupe_mode = DedupeMode::Repeat;
            }),
            choice("working_set", "any of a fixed set", |o| {
                o.content.dedupe_mode = DedupeMode::WorkingSet;
            }),
        ]),
    ),
    Row::new(
        "dedupe_working_set_percentage",
        "5",
        "How large that set is, in percent of the job's size",
        "dedupe_working_set_percentage=10",
        Kind::Int {
            min: 0,
            max: 100,
            set: |o, v| o.content.dedupe_working_set_percentage = byte(v),
        },
    ),
    Row::new(
        "dedupe_global",
        "0",
        "All jobs that say so have the same set",
        "dedupe_global=1",
        Kind::Bool(|o, v| o.content.dedupe_global = v),
    ),
];

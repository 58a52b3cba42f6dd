//! Options on trims of blocks that a job has written and verifies.

use super::general::U32;
use super::read::{byte, narrow};
use super::row::{Row, ValueKind};

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "trim_percentage",
        "0",
        "Percentage of the written blocks to trim before they are verified",
        "trim_percentage=30",
        ValueKind::Int {
            min: 0,
            max: 100,
            set: |o, v| o.trims.percentage = byte(v),
        },
    )
    .stricter("flags a job that does not write and verify")
    .different(
        "what no `trim_backlog` has trimmed is trimmed before blocks are read back; fio 3.33 \
         leaves it untrimmed, and aborts with `trim_backlog`",
    ),
    Row::new(
        "trim_verify_zero",
        "1",
        "Verify that trimmed blocks read as zeros",
        "trim_verify_zero=0",
        ValueKind::Bool(|o, v| o.trims.verify_zero = v),
    ),
    Row::new(
        "trim_backlog",
        "0",
        "Trim after every N written blocks; 0: before blocks are read back",
        "trim_backlog=64",
        ValueKind::Int {
            min: 0,
            max: u64::MAX,
            set: |o, v| o.trims.backlog = v,
        },
    ),
    Row::new(
        "trim_backlog_batch",
        "same as `trim_backlog`",
        "Number of blocks to trim at a time",
        "trim_backlog_batch=16",
        ValueKind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.trims.batch = narrow(v),
        },
    ),
];

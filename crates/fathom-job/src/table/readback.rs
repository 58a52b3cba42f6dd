//! Options on reading back what was written.

use super::row::{Row, ValueKind};

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "verify_backlog",
        "0",
        "Number of writes after which a batch of them is read back; 0: only after each pass",
        "verify_backlog=1024",
        ValueKind::Int {
            min: 0,
            max: u64::MAX,
            set: |o, v| o.readback.backlog = v,
        },
    ),
    Row::new(
        "verify_backlog_batch",
        "",
        "Number of writes that a batch of `verify_backlog` reads back; the rest follows later \
         [default: all]",
        "verify_backlog_batch=512",
        ValueKind::Int {
            min: 0,
            max: u32::MAX as u64,
            set: |o, v| o.readback.backlog_batch = v,
        },
    ),
    Row::new(
        "verify_map_limit",
        "25%",
        "Limit of the memory, bytes or percent of the host's, that tracks the latest write of \
         each block",
        "verify_map_limit=2g",
        ValueKind::Size {
            min: 0,
            set: |o, v| o.readback.map_limit = Some(v),
        },
    )
    .different("Fathom extension; a job that needs more is refused before it starts"),
];

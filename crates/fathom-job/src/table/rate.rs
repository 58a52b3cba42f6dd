//! How fast a job goes.

use fathom_core::{Nanos, PerDirection};

use super::general::{TIMES, U32, choice};
use super::read::narrow;
use super::row::{Kind, Row};
use crate::plan::RateProcess;
use crate::time::Bare;

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "rate",
        "",
        "Bytes per second at most",
        "rate=100m,50m",
        Kind::PerDirection {
            min: 0,
            max: u64::MAX,
            set: |o, values| overlay(&mut o.rate, values),
        },
    )
    .different("together with `rate_iops` it is refused, as in fio when the job is to run"),
    Row::new(
        "rate_iops",
        "",
        "Ops per second at most",
        "rate_iops=1000",
        Kind::PerDirection {
            min: 0,
            max: U32,
            set: |o, values| overlay(&mut o.rate_iops, values),
        },
    ),
    Row::new(
        "rate_min",
        "",
        "Bytes per second at least, or the job fails",
        "rate_min=10m",
        Kind::PerDirection {
            min: 0,
            max: u64::MAX,
            set: |o, values| overlay(&mut o.rate_min, values),
        },
    )
    .aliases(&["ratemin"]),
    Row::new(
        "rate_iops_min",
        "",
        "Ops per second at least, or the job fails",
        "rate_iops_min=100",
        Kind::PerDirection {
            min: 0,
            max: U32,
            set: |o, values| overlay(&mut o.rate_iops_min, values),
        },
    ),
    Row::new(
        "rate_process",
        "linear",
        "How ops are spread over time under a rate",
        "rate_process=poisson",
        Kind::Choice(&[
            choice("linear", "evenly", |o| o.rate_process = RateProcess::Linear),
            choice(
                "poisson",
                "with exponential gaps, as from many independent users",
                |o| {
                    o.rate_process = RateProcess::Poisson;
                },
            ),
        ]),
    ),
    Row::new(
        "rate_cycle",
        "1000",
        "Over how many milliseconds the least rates are checked",
        "rate_cycle=500",
        Kind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.rate_cycle = Nanos::from_millis(v),
        },
    )
    .aliases(&["ratecycle"]),
    Row::new(
        "thinktime",
        "0",
        "Pause so long after `thinktime_blocks` ops",
        "thinktime=10ms",
        Kind::Time {
            bare: Bare::Microseconds,
            set: |o, v| o.thinktime = v,
        },
    )
    .stricter(TIMES),
    Row::new(
        "thinktime_spin",
        "0",
        "Of the pause, burn the processor for so long first",
        "thinktime_spin=1ms",
        Kind::Time {
            bare: Bare::Microseconds,
            set: |o, v| o.thinktime_spin = v,
        },
    )
    .stricter(TIMES),
    Row::new(
        "thinkcycles",
        "0",
        "Burn so many cycles of the processor at the start of each pause, on top of `thinktime`",
        "thinkcycles=10000",
        Kind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.thinkcycles = narrow(v),
        },
    ),
    Row::new(
        "thinktime_blocks",
        "1",
        "Ops between two pauses",
        "thinktime_blocks=16",
        Kind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.thinktime_blocks = narrow(v).max(1),
        },
    ),
    Row::new(
        "thinktime_blocks_type",
        "complete",
        "Which ops `thinktime_blocks` counts",
        "thinktime_blocks_type=issue",
        Kind::Choice(&[
            choice("complete", "those that have completed", |o| {
                o.thinktime_blocks_issue = false
            }),
            choice("issue", "those that were issued", |o| {
                o.thinktime_blocks_issue = true
            }),
        ]),
    ),
    Row::new(
        "thinktime_iotime",
        "0",
        "Pause whenever so much time was spent on I/O",
        "thinktime_iotime=5s",
        Kind::Time {
            bare: Bare::Seconds,
            set: |o, v| o.thinktime_iotime = v,
        },
    )
    .stricter(TIMES),
    Row::new(
        "rate_ignore_thinktime",
        "0",
        "What was due in a pause is not made up for after it",
        "rate_ignore_thinktime=1",
        Kind::Bool(|o, v| o.rate_ignore_thinktime = v),
    ),
];

/// Values that were given replace those that are there; 0 means no limit.
fn overlay(limits: &mut PerDirection<Option<u64>>, values: PerDirection<Option<u64>>) {
    for (direction, value) in values.iter() {
        if let Some(value) = *value {
            limits[direction] = (value > 0).then_some(value);
        }
    }
}

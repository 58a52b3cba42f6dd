//! Options on rates and think time.

use fathom_core::{Nanos, PerDirection};

use super::general::{TIMES, U32, choice};
use super::read::narrow;
use super::row::{Row, ValueKind};
use crate::plan::RateProcess;
use crate::time::Bare;

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "rate",
        "",
        "Bandwidth limit, bytes/s",
        "rate=100m,50m",
        ValueKind::PerDirection {
            min: 0,
            max: u64::MAX,
            set: |o, values| overlay(&mut o.rate, values),
        },
    )
    .different("refused together with `rate_iops`, as in fio when the job is about to run"),
    Row::new(
        "rate_iops",
        "",
        "IOPS limit",
        "rate_iops=1000",
        ValueKind::PerDirection {
            min: 0,
            max: U32,
            set: |o, values| overlay(&mut o.rate_iops, values),
        },
    ),
    Row::new(
        "rate_min",
        "",
        "Minimum bandwidth, bytes/s; the job fails below it",
        "rate_min=10m",
        ValueKind::PerDirection {
            min: 0,
            max: u64::MAX,
            set: |o, values| overlay(&mut o.rate_min, values),
        },
    )
    .aliases(&["ratemin"]),
    Row::new(
        "rate_iops_min",
        "",
        "Minimum IOPS; the job fails below it",
        "rate_iops_min=100",
        ValueKind::PerDirection {
            min: 0,
            max: U32,
            set: |o, values| overlay(&mut o.rate_iops_min, values),
        },
    ),
    Row::new(
        "rate_process",
        "linear",
        "Arrival process of ops under a rate limit",
        "rate_process=poisson",
        ValueKind::Choice(&[
            choice("linear", "evenly spaced", |o| {
                o.rate_process = RateProcess::Linear
            }),
            choice(
                "poisson",
                "exponential gaps, as from many independent clients",
                |o| {
                    o.rate_process = RateProcess::Poisson;
                },
            ),
        ]),
    ),
    Row::new(
        "rate_cycle",
        "1000",
        "Interval over which minimum rates are checked, ms",
        "rate_cycle=500",
        ValueKind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.rate_cycle = Nanos::from_millis(v),
        },
    )
    .aliases(&["ratecycle"]),
    Row::new(
        "thinktime",
        "0",
        "Pause after every `thinktime_blocks` ops",
        "thinktime=10ms",
        ValueKind::Time {
            bare: Bare::Microseconds,
            set: |o, v| o.thinktime = v,
        },
    )
    .stricter(TIMES),
    Row::new(
        "thinktime_spin",
        "0",
        "Part of `thinktime` spent busy on the CPU; the rest sleeps",
        "thinktime_spin=1ms",
        ValueKind::Time {
            bare: Bare::Microseconds,
            set: |o, v| o.thinktime_spin = v,
        },
    )
    .stricter(TIMES),
    Row::new(
        "thinkcycles",
        "0",
        "CPU cycles to burn at the start of each pause, in addition to `thinktime`",
        "thinkcycles=10000",
        ValueKind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.thinkcycles = narrow(v),
        },
    ),
    Row::new(
        "thinktime_blocks",
        "1",
        "Ops between pauses",
        "thinktime_blocks=16",
        ValueKind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.thinktime_blocks = Some(narrow(v)),
        },
    ),
    Row::new(
        "thinktime_blocks_type",
        "complete",
        "Ops counted by `thinktime_blocks`",
        "thinktime_blocks_type=issue",
        ValueKind::Choice(&[
            choice("complete", "completed ops", |o| {
                o.thinktime_blocks_issue = false
            }),
            choice("issue", "issued ops", |o| o.thinktime_blocks_issue = true),
        ]),
    ),
    Row::new(
        "thinktime_iotime",
        "0",
        "Time spent on I/O between pauses",
        "thinktime_iotime=5s",
        ValueKind::Time {
            bare: Bare::Seconds,
            set: |o, v| o.thinktime_iotime = v,
        },
    )
    .stricter(TIMES),
    Row::new(
        "rate_ignore_thinktime",
        "0",
        "Do not catch up after a pause on ops that were due during it",
        "rate_ignore_thinktime=1",
        ValueKind::Bool(|o, v| o.rate_ignore_thinktime = v),
    )
    .different(
        "each pause moves the schedule by its whole length, as fio's manual has it; fio 3.33 moves \
         it by up to one period of the rate less",
    ),
];

/// Replaces the limits of the directions that were given; 0 means no limit.
fn overlay(limits: &mut PerDirection<Option<u64>>, values: PerDirection<Option<u64>>) {
    for (direction, value) in values.iter() {
        if let Some(value) = *value {
            limits[direction] = (value > 0).then_some(value);
        }
    }
}

//! Averages over windows on a fixed grid from the start of measurement.
//!
//! ```text
//! started      +every       +2·every     +3·every   ended
//!    │ · · ··     │            │  ·  ··· ·  │  ··  · │
//!    └── line ────┴── zeros ───┴── line ────┴─ line ─┘  latencies
//!    └── line ────┴── zeros ───┴── line ────┘           rates
//! ```
//!
//! The window that the end of the job cuts short is a line of the latency series only, as in fio: a
//! rate over what may be microseconds says nothing. No two lines of a direction have the same
//! millisecond: a rest of less than one is part of the window before it. So that it can be, the
//! last window of a latency series is held until the next one ends.

use fathom_core::{Direction, Nanos, PerDirection, Tick};

use super::entry::{LogItem, Series};
use crate::window_rate::WindowRate;

/// Op, as seen by windows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Op {
    pub(super) bytes: u64,
    pub(super) clat: u64,
    /// `None` if it was issued before measuring began.
    pub(super) slat: Option<u64>,
    pub(super) lat: u64,
    pub(super) resp: u64,
}

/// Windows of one series.
#[derive(Debug)]
pub(super) struct Windows {
    series: Series,
    every: Nanos,
    used: PerDirection<bool>,
    ends: Tick,
    sums: PerDirection<Sum>,
    /// Previous window of a latency series: its end and its sums.
    held: Option<(Tick, PerDirection<Sum>)>,
    rates: PerDirection<WindowRate>,
}

/// Sums of one direction over the current window.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    total: u64,
    count: u64,
    max: u64,
}

impl Windows {
    /// Creates windows of length `every`, at least 1 ns.
    pub(super) fn new(series: Series, every: Nanos, used: PerDirection<bool>) -> Self {
        Self {
            series,
            every: every.max(Nanos::new(1)),
            used,
            ends: Tick::MAX,
            sums: PerDirection::default(),
            held: None,
            rates: PerDirection::default(),
        }
    }

    pub(super) fn begin(&mut self, now: Tick) {
        self.ends = now + self.every;
        self.sums = PerDirection::default();
        self.held = None;
        self.rates = PerDirection::default();
    }

    /// Returns the end of the current window.
    pub(super) const fn ends(&self) -> Tick {
        self.ends
    }

    pub(super) fn add(&mut self, direction: Direction, op: Op) {
        let value = match self.series {
            Series::Bandwidth => op.bytes,
            Series::Iops => 1,
            Series::Lat => op.lat,
            Series::Resp => op.resp,
            Series::Clat => op.clat,
            Series::Slat => match op.slat {
                Some(slat) => slat,
                None => return,
            },
        };
        let sum = &mut self.sums[direction];
        sum.total += value;
        sum.count += 1;
        sum.max = sum.max.max(value);
    }

    /// Closes all windows that have ended by `now`, empty ones included.
    pub(super) fn roll(&mut self, now: Tick, started: Tick, write: &mut impl FnMut(LogItem)) {
        while self.ends <= now {
            let window = (self.ends, std::mem::take(&mut self.sums));
            let ended = if self.series.is_rate() {
                Some(window)
            } else {
                self.held.replace(window)
            };
            if let Some((at, sums)) = ended {
                self.write(at, &sums, started, write);
            }
            self.ends += self.every;
        }
    }

    /// Writes the remaining latencies of a job that ended at `ended`; a partial window has no rate.
    pub(super) fn flush(&mut self, ended: Tick, started: Tick, write: &mut impl FnMut(LogItem)) {
        if self.series.is_rate() {
            return;
        }
        let mut rest = std::mem::take(&mut self.sums);
        if let Some((at, mut sums)) = self.held.take() {
            if ended - at < MILLISECOND {
                for direction in Direction::ALL {
                    sums[direction].add(std::mem::take(&mut rest[direction]));
                }
            }
            self.write(at, &sums, started, write);
        }
        if Direction::ALL.iter().any(|&d| rest[d].count > 0) {
            self.write(ended, &rest, started, write);
        }
    }

    fn write(
        &mut self,
        at: Tick,
        sums: &PerDirection<Sum>,
        started: Tick,
        write: &mut impl FnMut(LogItem),
    ) {
        for direction in Direction::ALL {
            let sum = sums[direction];
            if !self.used[direction] && sum.count == 0 {
                continue;
            }
            let rate = &mut self.rates[direction];
            let value = match self.series {
                _ if sum.count == 0 => 0,
                Series::Bandwidth => rate.of(sum.total, self.every, 1024),
                Series::Iops => rate.of(sum.total, self.every, 1),
                Series::Lat | Series::Clat | Series::Slat | Series::Resp => sum.total / sum.count,
            };
            // A window has one sample of a rate, which is its own maximum.
            let max = if self.series.is_rate() {
                value
            } else {
                sum.max
            };
            write(LogItem::Window {
                series: self.series,
                direction,
                time_ns: (at - started).get(),
                value,
                max,
            });
        }
    }
}

impl Sum {
    fn add(&mut self, other: Self) {
        self.total += other.total;
        self.count += other.count;
        self.max = self.max.max(other.max);
    }
}

/// Unit of a log's times.
const MILLISECOND: Nanos = Nanos::from_millis(1);

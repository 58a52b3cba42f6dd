//! Averages over windows on a fixed grid from the start of measurement.
//!
//! ```text
//! started      +every       +2·every     +3·every   ended
//!    │ · · ··     │            │  ·  ··· ·  │  ··  · │
//!    └── line ────┴── zeros ───┴── line ────┴─ line ─┘
//! ```

use fathom_core::{Direction, Nanos, PerDirection, Tick};

use super::entry::{Item, Series};

/// One op, as windows see it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Op {
    pub(super) bytes: u64,
    pub(super) clat: u64,
    /// `None` if it was issued before measuring began.
    pub(super) slat: Option<u64>,
    pub(super) lat: u64,
}

/// The windows of one series.
#[derive(Debug)]
pub(super) struct Windows {
    series: Series,
    every: Nanos,
    used: PerDirection<bool>,
    began: Tick,
    ends: Tick,
    sums: PerDirection<Sum>,
}

/// What one direction did in the current window.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    total: u64,
    count: u64,
    max: u64,
    /// What was lost in rounding the rates written so far, times a second: it goes into the next
    /// window that is not empty, so that the rates add up to the total.
    carry: u128,
}

impl Windows {
    /// Windows of `every` (at least 1 ns).
    pub(super) fn new(series: Series, every: Nanos, used: PerDirection<bool>) -> Self {
        Self {
            series,
            every: every.max(Nanos::new(1)),
            used,
            began: Tick::ZERO,
            ends: Tick::MAX,
            sums: PerDirection::default(),
        }
    }

    pub(super) fn begin(&mut self, now: Tick) {
        self.began = now;
        self.ends = now + self.every;
        self.sums = PerDirection::default();
    }

    /// When the current window ends.
    pub(super) const fn ends(&self) -> Tick {
        self.ends
    }

    pub(super) fn add(&mut self, direction: Direction, op: Op) {
        let value = match self.series {
            Series::Bandwidth => op.bytes,
            Series::Iops => 1,
            Series::Lat => op.lat,
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

    /// Writes all windows that have ended by `now`, empty ones as well.
    pub(super) fn roll(&mut self, now: Tick, started: Tick, write: &mut impl FnMut(Item)) {
        while self.ends <= now {
            self.write(self.ends, started, write);
            self.began = self.ends;
            self.ends += self.every;
        }
    }

    /// Writes what there is of the window that is cut short at `ended`, if anything is.
    pub(super) fn flush(&mut self, ended: Tick, started: Tick, write: &mut impl FnMut(Item)) {
        let is_empty = Direction::ALL.iter().all(|&d| self.sums[d].count == 0);
        if !is_empty {
            self.write(ended, started, write);
        }
    }

    fn write(&mut self, at: Tick, started: Tick, write: &mut impl FnMut(Item)) {
        // An op that completes at the very moment of the start leaves a window without length.
        let length = (at - self.began).get().max(1);
        for direction in Direction::ALL {
            if !self.used[direction] && self.sums[direction].count == 0 {
                continue;
            }
            let sum = &mut self.sums[direction];
            let value = match self.series {
                _ if sum.count == 0 => 0,
                Series::Bandwidth => sum.rate(length, 1024),
                Series::Iops => sum.rate(length, 1),
                Series::Lat | Series::Clat | Series::Slat => sum.total / sum.count,
            };
            let max = match self.series {
                // One sample a window: its own maximum.
                Series::Bandwidth | Series::Iops => value,
                Series::Lat | Series::Clat | Series::Slat => sum.max,
            };
            write(Item::Window {
                series: self.series,
                direction,
                time_ns: (at - started).get(),
                value,
                max,
            });
            *sum = Sum {
                carry: sum.carry,
                ..Sum::default()
            };
        }
    }
}

impl Sum {
    /// In `unit`s a second, over `length` ns.
    fn rate(&mut self, length: u64, unit: u64) -> u64 {
        let amount = u128::from(self.total) * 1_000_000_000 + self.carry;
        let per = u128::from(length) * u128::from(unit);
        self.carry = amount % per;
        u64::try_from(amount / per).unwrap_or(u64::MAX)
    }
}

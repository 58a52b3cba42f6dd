//! Histograms of clat over windows on a fixed grid: each line has the ops since the previous one.
//!
//! As in fio a window is written when an op completes past its end; ops after the last such window,
//! or in a job shorter than one, have no line.

use fathom_core::{Direction, Nanos, PerDirection, Tick};
use fathom_stats::Histogram;

use super::entry::LogItem;

/// Histogram log of one job.
#[derive(Debug)]
pub(super) struct Histograms {
    every: Nanos,
    ends: Tick,
    counts: PerDirection<Option<Histogram>>,
    /// Ops in the current window, and bytes of the last one.
    seen: PerDirection<(u64, u32)>,
}

impl Histograms {
    pub(super) fn new(every: Nanos, used: PerDirection<bool>) -> Self {
        Self {
            every: every.max(Nanos::new(1)),
            ends: Tick::MAX,
            counts: used.map(|used| used.then(Histogram::new)),
            seen: PerDirection::default(),
        }
    }

    pub(super) fn begin(&mut self, now: Tick) {
        self.ends = now + self.every;
    }

    /// Returns the end of the current window.
    pub(super) const fn ends(&self) -> Tick {
        self.ends
    }

    pub(super) fn add(&mut self, direction: Direction, clat: u64, length: u32) {
        if let Some(counts) = &mut self.counts[direction] {
            counts.record(clat);
            self.seen[direction] = (self.seen[direction].0 + 1, length);
        }
    }

    /// Writes the window that has ended by `now`. Empty windows have no line.
    pub(super) fn roll(&mut self, now: Tick, started: Tick, write: &mut impl FnMut(LogItem)) {
        if self.ends <= now {
            self.write(self.ends, started, write);
            let passed = (now - self.ends).get() / self.every.get() + 1;
            self.ends += Nanos::new(passed.saturating_mul(self.every.get()));
        }
    }

    /// Writes the counts up to `at`.
    fn write(&mut self, at: Tick, started: Tick, write: &mut impl FnMut(LogItem)) {
        for direction in Direction::ALL {
            let (ops, length) = std::mem::take(&mut self.seen[direction]);
            let Some(counts) = self.counts[direction].as_mut().filter(|_| ops > 0) else {
                continue;
            };
            write(LogItem::HistogramBegin);
            for (bucket, count) in counts.buckets() {
                write(LogItem::HistogramBin {
                    bucket: u32::try_from(bucket).unwrap_or(u32::MAX),
                    count,
                });
            }
            write(LogItem::HistogramEnd {
                direction,
                time_ns: (at - started).get(),
                ops,
                length,
            });
            counts.clear();
        }
    }
}

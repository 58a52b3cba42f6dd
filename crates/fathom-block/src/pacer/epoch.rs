//! Epoch: a time in which the rate at one setting is measured.

use fathom_core::{Nanos, Tick};

/// Counters of all threads, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// Bytes and requests that ended, of devices that are not slow.
    pub(super) fast_bytes: u64,
    pub(super) fast_ops: u64,
    /// Bytes that ended, of slow devices.
    pub(super) slow_bytes: u64,
    /// Bytes of requests that had to wait.
    pub(super) waited_bytes: u64,
    /// Most bytes in flight of a thread since the last call.
    pub(super) peak: u64,
    /// Longest request so far.
    pub(super) largest: u64,
    /// Most bytes of a thread in flight or waiting since the last call.
    pub(super) demand: u64,
    /// Bytes in flight now, of all devices and threads.
    pub(super) in_flight: u64,
}

/// Result of an epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Measured {
    /// Work per second of devices that are not slow: bytes, and a constant per request.
    pub(super) rate: f64,
    /// Bytes per second of all devices.
    pub(super) bandwidth: f64,
    /// Part of the bytes that had to wait.
    pub(super) waited: f64,
    /// Most bytes in flight of a thread.
    pub(super) peak: u64,
    /// Most bytes of a thread in flight or waiting.
    pub(super) demand: u64,
    /// Longest request.
    pub(super) largest: u64,
    /// Slow devices moved data.
    pub(super) has_slow: bool,
    /// Too few requests to say anything.
    pub(super) is_idle: bool,
}

/// Epoch under way.
#[derive(Debug, Default)]
pub(super) struct Epoch {
    begun: Tick,
    from: Totals,
    /// The setting is new, and what was in flight under the old one is to be gone first.
    settles: bool,
    peak: u64,
    demand: u64,
}

impl Epoch {
    pub(super) fn begin(&mut self, totals: &Totals, settles: bool, now: Tick) {
        *self = Self {
            begun: now,
            from: *totals,
            settles,
            peak: 0,
            demand: 0,
        };
    }

    /// Takes the counters; returns the result if the epoch is over.
    pub(super) fn advance(&mut self, totals: &Totals, now: Tick) -> Option<Measured> {
        self.peak = self.peak.max(totals.peak);
        self.demand = self.demand.max(totals.demand);
        let elapsed = now.since(self.begun);
        let ops = totals.fast_ops - self.from.fast_ops;
        if self.settles {
            let bytes = |totals: &Totals| totals.fast_bytes + totals.slow_bytes;
            let moved = bytes(totals) - bytes(&self.from);
            let is_drained = moved >= self.from.in_flight;
            let is_settled = elapsed >= SETTLE_MIN && is_drained || elapsed >= SETTLE_MAX;
            if is_settled {
                self.begin(totals, false, now);
            }
            return None;
        }
        let is_over = elapsed >= EPOCH && ops >= OPS_ENOUGH || elapsed >= EPOCH_MAX;
        is_over.then(|| self.measure(totals, elapsed))
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of a tenth of a second, below 2^53"
    )]
    fn measure(&self, totals: &Totals, elapsed: Nanos) -> Measured {
        let seconds = elapsed.get().max(1) as f64 / 1e9;
        let ops = totals.fast_ops - self.from.fast_ops;
        let fast = totals.fast_bytes - self.from.fast_bytes;
        let slow = totals.slow_bytes - self.from.slow_bytes;
        let waited = totals.waited_bytes - self.from.waited_bytes;
        Measured {
            rate: (fast + ops * OP_BYTES) as f64 / seconds,
            bandwidth: (fast + slow) as f64 / seconds,
            waited: waited as f64 / fast.max(1) as f64,
            peak: self.peak,
            demand: self.demand,
            largest: totals.largest,
            has_slow: slow > 0,
            is_idle: ops < OPS_MIN,
        }
    }

    /// Returns the time of the next call of `advance`.
    pub(super) fn due(&self, now: Tick) -> Tick {
        if self.settles {
            return now + SETTLE_MIN;
        }
        let end = self.begun + EPOCH;
        if end > now { end } else { now + SETTLE_MIN }
    }
}

/// Length of an epoch: some hundred transfers of 128 KiB on a fast target, so that the rate is
/// known to a percent or two, and forty epochs in a second.
const EPOCH: Nanos = Nanos::from_millis(16);
/// Longest epoch, where requests are few.
const EPOCH_MAX: Nanos = Nanos::from_millis(128);
const OPS_ENOUGH: u64 = 64;
/// Requests in an epoch below which nothing is compared.
const OPS_MIN: u64 = 16;
/// Time after a change of the setting in which nothing is measured: until what was in flight has
/// been moved, but not for ever where a device stalls.
const SETTLE_MIN: Nanos = Nanos::from_millis(1);
const SETTLE_MAX: Nanos = Nanos::from_millis(64);
/// Bytes that take as long to move as a request takes besides.
const OP_BYTES: u64 = 4096;

//! Tuners of a rate pacer: they fit its period to what the target can do.

use fathom_core::{Nanos, Tick};

/// Rule by which a pacer's period is changed while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tuner {
    /// Follows the measured period of a credit, a step ahead of it, up to twice the configured one:
    /// a backlog drives the period down to the configured one, an idle target drives it up.
    IoPeriod,
    /// Lengthens the period in proportion to the bytes in flight above a threshold, up to four
    /// times the configured one.
    InFlight,
}

/// Configuration of a tuner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunerConfig {
    /// Rule.
    pub tuner: Tuner,
    /// Time between changes.
    pub interval: Nanos,
    /// `IoPeriod`: largest change.
    pub step: Nanos,
    /// `InFlight`: bytes in flight over all threads that change nothing; each thread counts its
    /// own, above its equal share of them.
    pub threshold_bytes: u64,
    /// `InFlight`: nanoseconds per 1000 bytes above the threshold.
    pub factor: u32,
}

impl TunerConfig {
    /// Returns the prototype's values for a tuner.
    #[must_use]
    pub const fn new(tuner: Tuner) -> Self {
        Self {
            tuner,
            interval: Nanos::from_millis(10),
            step: Nanos::from_micros(1),
            threshold_bytes: 12 << 20,
            factor: 1,
        }
    }
}

/// State of a tuner.
#[derive(Debug)]
pub(super) struct Tuning {
    config: TunerConfig,
    /// Configured period.
    base: Nanos,
    credit: u64,
    /// The threshold's share of this thread.
    threshold: u64,
    tuned: Option<Tick>,
    bytes: u64,
}

impl Tuning {
    pub(super) fn new(config: TunerConfig, base: Nanos, credit: u32, threads: u32) -> Self {
        Self {
            config,
            base,
            credit: u64::from(credit),
            threshold: config.threshold_bytes / u64::from(threads.max(1)),
            tuned: None,
            bytes: 0,
        }
    }

    /// Counts bytes that the pacer let go.
    pub(super) fn count(&mut self, bytes: u32) {
        self.bytes += u64::from(bytes);
    }

    /// Returns the new period, once per interval.
    pub(super) fn tune(&mut self, period: Nanos, in_use_bytes: u64, now: Tick) -> Option<Nanos> {
        let Some(tuned) = self.tuned else {
            self.tuned = Some(now);
            return None;
        };
        let elapsed = now.since(tuned);
        if elapsed < self.config.interval {
            return None;
        }
        self.tuned = Some(now);
        let bytes = std::mem::take(&mut self.bytes);
        Some(match self.config.tuner {
            Tuner::IoPeriod => self.by_period(period, elapsed, bytes),
            Tuner::InFlight => self.by_bytes(in_use_bytes),
        })
    }

    fn by_period(&self, period: Nanos, elapsed: Nanos, bytes: u64) -> Nanos {
        // Intervals that passed while nothing called count as if each had been tuned.
        let intervals = elapsed.get() / self.config.interval.get().max(1);
        let step = self.config.step.get();
        let change = step.saturating_mul(intervals.max(1));
        let measured = period_of(elapsed, self.credit, bytes).get();
        let aim = measured.saturating_sub(step);
        let period = period.get();
        let base = self.base.get();
        let next = aim.clamp(period.saturating_sub(change), period.saturating_add(change));
        Nanos::new(next.clamp(base, base.saturating_mul(2)))
    }

    fn by_bytes(&self, in_use_bytes: u64) -> Nanos {
        let above = in_use_bytes.saturating_sub(self.threshold);
        let more = above.saturating_mul(u64::from(self.config.factor)) / 1000;
        let base = self.base.get();
        Nanos::new(base.saturating_add(more).min(base.saturating_mul(4)))
    }
}

/// Returns the time that `credit` bytes took if `bytes` took `elapsed`: all of it if nothing was
/// moved.
pub(super) fn period_of(elapsed: Nanos, credit: u64, bytes: u64) -> Nanos {
    if bytes == 0 {
        return elapsed;
    }
    let ns = u128::from(elapsed.get()) * u128::from(credit) / u128::from(bytes);
    Nanos::new(u64::try_from(ns).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Nanos = Nanos::from_micros(20);
    const CREDIT: u32 = 131_072;

    fn tuning(tuner: Tuner) -> Tuning {
        let mut tuning = Tuning::new(TunerConfig::new(tuner), BASE, CREDIT, 4);
        assert_eq!(tuning.tune(BASE, 0, Tick::ZERO), None);
        tuning
    }

    #[test]
    fn an_idle_target_has_twice_the_period_and_a_backlog_the_configured_one() {
        let mut tuning = tuning(Tuner::IoPeriod);
        let (mut period, mut now) = (BASE, Tick::ZERO);
        for _ in 0..30 {
            now += Nanos::from_millis(10);
            period = tuning.tune(period, 0, now).expect("an interval");
        }
        assert_eq!(period, Nanos::from_micros(40));
        for _ in 0..30 {
            // A backlog takes all credit.
            now += Nanos::from_millis(10);
            let credits = 10_000_000 / period.get();
            (0..credits).for_each(|_| tuning.count(CREDIT));
            period = tuning.tune(period, 0, now).expect("an interval");
        }
        assert_eq!(period, BASE);
    }

    #[test]
    fn sums_at_the_limits_neither_wrap_nor_divide_by_zero() {
        let mut tuning = tuning(Tuner::IoPeriod);
        // Fewer bytes than a credit, then many more than the time allows.
        tuning.count(1);
        let period = tuning.tune(BASE, 0, Tick::new(10_000_000));
        assert_eq!(period, Some(Nanos::from_micros(21)));
        (0..1000).for_each(|_| tuning.count(u32::MAX));
        let period = tuning.tune(BASE, 0, Tick::new(20_000_000));
        assert_eq!(period, Some(BASE));
        assert_eq!(tuning.tune(BASE, 0, Tick::new(20_000_001)), None);
        let late = tuning.tune(BASE, 0, Tick::MAX);
        assert_eq!(late, Some(Nanos::from_micros(40)));
    }

    #[test]
    fn bytes_in_flight_above_the_share_lengthen_the_period() {
        let mut tuning = tuning(Tuner::InFlight);
        let mut now = Tick::ZERO;
        let mut tune = |in_use_bytes| {
            now += Nanos::from_millis(10);
            tuning.tune(BASE, in_use_bytes, now).expect("an interval")
        };
        assert_eq!(tune(3 << 20), BASE, "a quarter of the threshold");
        assert_eq!(tune((3 << 20) + 10_000_000), Nanos::from_micros(30));
        assert_eq!(tune(u64::MAX), Nanos::from_micros(80));
    }
}

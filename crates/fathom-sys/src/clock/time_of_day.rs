//! The time of day as a measuring clock: steps are removed.
//!
//! ```text
//!  time of day   ───────╱  set back   ╱───────
//!                      │             ╱
//!  shown         ───────────────────────────── goes on from where it was
//! ```
//!
//! Steps are detected by comparing with `CLOCK_MONOTONIC`, which cannot be set, once a millisecond;
//! readers in between pay two loads. A reading moved by a millisecond or more triggers a check.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// State shared by all copies of a clock.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct TimeOfDay {
    /// Offset subtracted from the time of day, modulo 2⁶⁴.
    offset: AtomicU64,
    /// Reading at the last check, and the lead of `CLOCK_MONOTONIC` over it, modulo 2⁶⁴.
    checked_at: AtomicU64,
    ahead: AtomicU64,
    steps: AtomicU32,
}

impl TimeOfDay {
    /// Creates a clock that reads 0 now.
    pub(super) fn starting(time_of_day_ns: u64, monotonic_ns: u64) -> Self {
        Self {
            offset: AtomicU64::new(time_of_day_ns),
            checked_at: AtomicU64::new(0),
            ahead: AtomicU64::new(monotonic_ns),
            steps: AtomicU32::new(0),
        }
    }

    /// Returns the current reading, ns.
    pub(super) fn now(
        &self,
        time_of_day_ns: impl Fn() -> u64,
        monotonic_ns: impl Fn() -> u64,
    ) -> u64 {
        // Relaxed, here and below: the values are independent, and a stale one is corrected by
        // the next check.
        let offset = self.offset.load(Ordering::Relaxed);
        let shown = time_of_day_ns().wrapping_sub(offset);
        let since = shown.wrapping_sub(self.checked_at.load(Ordering::Relaxed));
        // A slow reader may return a time just before the check.
        if since < CHECK_EVERY_NS || since.wrapping_neg() < CHECK_EVERY_NS {
            return shown.min(i64::MAX.unsigned_abs());
        }
        self.check(offset, time_of_day_ns, monotonic_ns)
    }

    /// Returns the number of steps detected.
    pub(super) fn steps(&self) -> u32 {
        self.steps.load(Ordering::Relaxed)
    }

    #[cold]
    fn check(
        &self,
        offset: u64,
        time_of_day_ns: impl Fn() -> u64,
        monotonic_ns: impl Fn() -> u64,
    ) -> u64 {
        let ahead = self.ahead.load(Ordering::Relaxed);
        for _ in 0..READ_ATTEMPTS {
            let before = monotonic_ns();
            let shown = time_of_day_ns().wrapping_sub(offset);
            let after = monotonic_ns();
            let expected = after.wrapping_sub(ahead);
            let off = shown.wrapping_sub(expected);
            if off < STEP_NS || off.wrapping_neg() < STEP_NS {
                // The two may run at slightly different rates (slewing): follow.
                self.ahead
                    .store(after.wrapping_sub(shown), Ordering::Relaxed);
                self.checked_at.store(shown, Ordering::Relaxed);
                return shown;
            }
            // The thread was descheduled between the two reads: not a step.
            if after.wrapping_sub(before) < STEP_NS / 2 {
                self.step(offset, off, expected);
                return expected;
            }
        }
        monotonic_ns().wrapping_sub(ahead)
    }

    /// Removes a step; only the first of several threads succeeds.
    fn step(&self, offset: u64, off: u64, expected: u64) {
        let moved = offset.wrapping_add(off);
        let first =
            self.offset
                .compare_exchange(offset, moved, Ordering::Relaxed, Ordering::Relaxed);
        if first.is_ok() {
            self.steps.fetch_add(1, Ordering::Relaxed);
            self.checked_at.store(expected, Ordering::Relaxed);
        }
    }
}

/// Interval between checks.
const CHECK_EVERY_NS: u64 = 1_000_000;
/// Smaller differences come from slewing and from the time between the two reads.
const STEP_NS: u64 = 100_000_000;
/// Attempts to read both clocks without being descheduled in between.
const READ_ATTEMPTS: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const DAY: u64 = 1_700_000_000_000_000_000;
    const BOOT: u64 = 77_000 * MS;

    /// Reads at each `(time of day, monotonic)`, in milliseconds since the start.
    fn shown(reads: &[(i64, u64)]) -> (Vec<u64>, u32) {
        let clock = TimeOfDay::starting(DAY, BOOT);
        let read = |&(day, monotonic): &(i64, u64)| {
            let day = DAY.saturating_add_signed(day * 1_000_000);
            clock.now(|| day, || BOOT + monotonic * MS) / MS
        };
        let all = reads.iter().map(read).collect();
        (all, clock.steps())
    }

    #[test]
    fn a_clock_that_nobody_sets_shows_the_time_of_day() {
        let (all, steps) = shown(&[(0, 0), (1, 1), (5, 5), (700, 700), (90_000, 90_000)]);
        assert_eq!((all, steps), (vec![0, 1, 5, 700, 90_000], 0));
    }

    #[test]
    fn a_clock_that_is_set_goes_on_from_where_it_was() {
        let (all, steps) = shown(&[(10, 10), (-999_980, 20), (-999_970, 30), (500_000, 40)]);
        assert_eq!((all, steps), (vec![10, 20, 30, 40], 2));
    }

    #[test]
    fn slewing_is_followed() {
        let reads: Vec<_> = (0..1000_i64)
            .map(|second| (second * 1_001, second.unsigned_abs() * 1_000))
            .collect();
        let (all, steps) = shown(&reads);
        assert_eq!(steps, 0);
        assert_eq!(all.last(), Some(&(999 * 1_001)));
    }
}

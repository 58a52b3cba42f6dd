//! Samples of bandwidth and IOPS, over windows of fixed length.

use fathom_core::{Nanos, PerDirection, Tick};

use crate::window_rate::WindowRate;

/// Sampler of bandwidth or IOPS over windows on a fixed grid from the start of measurement, as in
/// the logs: a window in which a direction moved nothing gives no sample, as in fio.
///
/// It is asked before anything that completed past the end of a window is counted, so that what is
/// counted by then is of that window, and the windows after it are empty, however late the job's
/// thread comes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sampler {
    window: Nanos,
    /// Unit of the rates, per second.
    unit: u64,
    /// End of the current window.
    ends: Tick,
    seen: PerDirection<u64>,
    rates: PerDirection<WindowRate>,
}

impl Sampler {
    /// Creates a sampler of rates in `unit`s per second, over windows of at least 1 ns. It takes no
    /// sample before [`begin`](Self::begin).
    pub(crate) fn new(window: Nanos, unit: u64) -> Self {
        Self {
            window: window.max(Nanos::new(1)),
            unit,
            ends: Tick::MAX,
            seen: PerDirection::default(),
            rates: PerDirection::default(),
        }
    }

    /// Starts measuring at `now`, with counts of 0.
    pub(crate) fn begin(&mut self, now: Tick) {
        *self = Self::new(self.window, self.unit);
        self.ends = now + self.window;
    }

    /// Returns the end of the current window, when the next sample is due.
    pub(crate) const fn ends(&self) -> Tick {
        self.ends
    }

    /// Closes all windows that have ended by `now`, and returns the rate of each direction that
    /// moved something in the first of them.
    pub(crate) fn sample(
        &mut self,
        counts: PerDirection<u64>,
        now: Tick,
    ) -> PerDirection<Option<u64>> {
        if now < self.ends {
            return PerDirection::default();
        }
        let windows = (now - self.ends).get() / self.window.get() + 1;
        self.ends += Nanos::new(windows.saturating_mul(self.window.get()));
        let seen = std::mem::replace(&mut self.seen, counts);
        PerDirection::from_fn(|direction| {
            let moved = counts[direction] - seen[direction];
            let rate = &mut self.rates[direction];
            (moved > 0).then(|| rate.of(moved, self.window, self.unit))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Nanos = Nanos::from_millis(500);

    /// Checks the samples of reads, of which `looks` has the number counted so far at a time in µs.
    #[track_caller]
    fn check(unit: u64, looks: &[(u64, u64)], want: &[Option<u64>]) {
        let mut sampler = Sampler::new(WINDOW, unit);
        sampler.begin(Tick::new(7));
        let samples = looks.iter().map(|&(us, count)| {
            let counts = PerDirection::new(count, 0, 0);
            let samples = sampler.sample(counts, Tick::new(7 + us * 1000));
            assert_eq!((samples.write, samples.trim), (None, None));
            samples.read
        });
        assert_eq!(samples.collect::<Vec<_>>(), want);
    }

    #[test]
    fn a_window_seen_microseconds_late_has_its_nominal_length() {
        let looks = [(499_999, 1), (500_003, 1), (1_000_001, 3), (1_500_090, 4)];
        check(1, &looks, &[None, Some(2), Some(4), Some(2)]);
    }

    #[test]
    fn windows_that_the_thread_slept_through_are_empty() {
        let looks = [
            (1_900_000, 5),
            (1_999_999, 9),
            (2_000_000, 9),
            (9_000_000, 9),
        ];
        check(1, &looks, &[Some(10), None, Some(8), None]);
    }

    #[test]
    fn rounding_is_carried_over() {
        let looks = [(500_000, 768), (1_000_000, 1536), (1_500_000, 2304)];
        check(1024, &looks, &[Some(1), Some(2), Some(1)]);
    }

    #[test]
    fn nothing_is_sampled_before_measuring_begins() {
        let mut sampler = Sampler::new(WINDOW, 1);
        let samples = sampler.sample(PerDirection::all(5), Tick::new(u64::MAX / 2));
        assert_eq!(samples, PerDirection::default());
    }
}

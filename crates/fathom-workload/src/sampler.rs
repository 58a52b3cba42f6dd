//! Samples of bandwidth and IOPS, over windows of fixed length.

use fathom_core::{Nanos, PerDirection, Tick};

/// Sampler of bandwidth or IOPS over windows of fixed length, as in fio: a window in which a
/// direction moved nothing gives no sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sampler {
    window: Nanos,
    last: Tick,
    /// Time of the next sample.
    pub(crate) next: Tick,
    seen: PerDirection<u64>,
}

impl Sampler {
    pub(crate) fn new(window: Nanos) -> Self {
        Self {
            window,
            last: Tick::ZERO,
            next: Tick::ZERO + window,
            seen: PerDirection::default(),
        }
    }

    pub(crate) fn begin(&mut self, now: Tick) {
        self.last = now;
        self.next = now + self.window;
        self.seen = PerDirection::default();
    }

    /// Returns the rate of each direction since the last sample, per second, if one is due.
    pub(crate) fn sample(
        &mut self,
        counts: PerDirection<u64>,
        now: Tick,
    ) -> PerDirection<Option<u64>> {
        if now < self.next {
            return PerDirection::default();
        }
        let spent_ns = u128::from((now - self.last).get());
        let rates = PerDirection::from_fn(|direction| {
            let moved = counts[direction] - self.seen[direction];
            (moved > 0 && spent_ns > 0).then(|| per_second(moved, spent_ns))
        });
        self.seen = counts;
        self.last = now;
        self.next = now + self.window;
        rates
    }
}

fn per_second(count: u64, spent_ns: u128) -> u64 {
    u64::try_from(u128::from(count) * 1_000_000_000 / spent_ns).unwrap_or(u64::MAX)
}

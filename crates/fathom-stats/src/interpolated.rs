//! Percentiles interpolated within the bucket of a histogram.

use crate::{Histogram, Latency};

impl Histogram {
    /// Returns a percentile, interpolated within its bucket as if the values there were spread
    /// evenly; `None` of an empty histogram. `percent` is clamped to 0–100.
    ///
    /// A midpoint moves in steps of a bucket, up to 1.6 %: repeats of a run would give the same
    /// value or jump by a step, so comparisons of repeats use this one.
    #[must_use]
    pub fn interpolated(&self, percent: f64) -> Option<f64> {
        let wanted = float(self.count()) * percent.clamp(0.0, 100.0) / 100.0;
        let mut below = 0.0;
        let mut last = None;
        for (index, count) in self.buckets() {
            let count = float(count);
            let (low, width) = (
                float(Self::lower_bound(index)),
                float(Self::bucket_width(index)),
            );
            if below + count >= wanted {
                return Some(low + width * (wanted - below) / count);
            }
            below += count;
            last = Some(low + width);
        }
        // Rounding of the sum put the last value out of reach.
        last
    }
}

impl Latency {
    /// Returns a percentile, interpolated within its bucket and between the smallest and largest
    /// value; `None` without a histogram, or if fewer than [`BEYOND_MIN`] values are beyond it.
    #[must_use]
    pub fn interpolated(&self, percent: f64) -> Option<f64> {
        let histogram = self.histogram.as_ref()?;
        let beyond = percent.min(100.0 - percent).max(0.0) / 100.0 * float(histogram.count());
        // A little less: 1 % of 1000 is 10, whatever the rounding of 99.0 and its like.
        if beyond < BEYOND_MIN - 1e-6 {
            return None;
        }
        let (least, most) = (float(self.summary.min()), float(self.summary.max()));
        // Not `clamp`, which panics where a stored summary contradicts itself.
        Some(histogram.interpolated(percent)?.max(least).min(most))
    }
}

#[expect(clippy::cast_precision_loss, reason = "rounded once, to the nearest")]
const fn float(value: u64) -> f64 {
    value as f64
}

/// Least number of values beyond a percentile: with fewer, it is a matter of single ops.
pub const BEYOND_MIN: f64 = 10.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_spread_over_their_bucket() {
        let mut histogram = Histogram::new();
        // 1,024 to 1,039 share a bucket.
        histogram.record_n(1_024, 50);
        histogram.record_n(2_048, 50);
        let close = |percent: f64, want: f64| {
            let got = histogram.interpolated(percent).unwrap();
            assert!((got - want).abs() < 1e-9, "{percent} %: {got}");
        };
        close(0.0, 1_024.0);
        close(25.0, 1_032.0);
        close(50.0, 1_040.0);
        close(75.0, 2_064.0);
        close(100.0, 2_080.0);
        assert_eq!(Histogram::new().interpolated(50.0), None);
    }

    #[test]
    fn equal_values_are_their_percentile() {
        let mut latency = Latency::new(true);
        latency.record_n(1_000_000, 100);
        assert_eq!(latency.interpolated(50.0), Some(1_000_000.0));
    }

    #[test]
    fn too_few_values_beyond_give_none() {
        let mut latency = Latency::new(true);
        latency.record_n(5, 999);
        assert_eq!(latency.interpolated(99.0), None);
        assert_eq!(latency.interpolated(1.0), None);
        latency.record(5);
        assert_eq!(latency.interpolated(99.0), Some(5.0));
        assert_eq!(latency.interpolated(99.9), None);
        assert_eq!(Latency::new(false).interpolated(50.0), None);
    }
}

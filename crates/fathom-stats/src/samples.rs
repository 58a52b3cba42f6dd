//! Statistics over periodic samples (bandwidth, IOPS).

use serde::{Deserialize, Serialize};

/// Running statistics of a sampled value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SampleStats {
    count: u64,
    min: u64,
    max: u64,
    mean: f64,
    /// Sum of the squared distances from the mean.
    squares: f64,
}

impl SampleStats {
    /// Records one sample.
    pub fn record(&mut self, value: u64) {
        self.min = if self.count == 0 {
            value
        } else {
            self.min.min(value)
        };
        self.max = self.max.max(value);
        self.count += 1;
        // Welford's update: no cancellation, unlike a sum of squares of large, close samples.
        let value = value as f64;
        let distance = value - self.mean;
        self.mean += distance / self.count as f64;
        self.squares += distance * (value - self.mean);
    }

    /// Adds another job's samples to those of a group, as fio does: concurrent jobs' rates add up,
    /// so minimum, maximum and mean are summed.
    pub fn add_group(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.min = self.min.saturating_add(other.min);
        self.max = self.max.saturating_add(other.max);
        self.mean += other.mean;
        self.squares += other.squares;
    }

    /// Returns the number of samples.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the smallest sample; 0 if there is none.
    #[must_use]
    pub const fn min(&self) -> u64 {
        self.min
    }

    /// Returns the largest sample; 0 if there is none.
    #[must_use]
    pub const fn max(&self) -> u64 {
        self.max
    }

    /// Returns the mean; 0 if there is no sample.
    #[must_use]
    pub const fn mean(&self) -> f64 {
        self.mean
    }

    /// Returns the sample standard deviation (divisor n − 1); 0 for fewer than two samples.
    #[must_use]
    pub fn stddev(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        (self.squares / (self.count - 1) as f64).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[u64]) -> SampleStats {
        let mut stats = SampleStats::default();
        values.iter().for_each(|&value| stats.record(value));
        stats
    }

    #[test]
    fn one_jobs_samples() {
        let stats = of(&[2, 4, 6]);
        assert_eq!((stats.count(), stats.min(), stats.max()), (3, 2, 6));
        assert_eq!((stats.mean(), stats.stddev()), (4.0, 2.0));
        assert_eq!(of(&[]).stddev(), 0.0);
        assert_eq!(of(&[9]).stddev(), 0.0);
    }

    #[test]
    fn a_group_adds_up() {
        let mut group = SampleStats::default();
        group.add_group(&of(&[2, 4, 6]));
        group.add_group(&of(&[10, 30]));
        assert_eq!((group.count(), group.min(), group.max()), (5, 12, 36));
        assert_eq!(group.mean(), 24.0);
    }
}

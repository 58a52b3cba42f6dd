//! Median of a series, with a distribution-free confidence interval.

/// Median of repeats, and the interval that covers the true one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MedianInterval {
    /// Median.
    pub middle: f64,
    /// Lower end of the interval: a value of the series.
    pub low: f64,
    /// Upper end of the interval: a value of the series.
    pub high: f64,
    /// Probability that such an interval covers the true median; 0 of a single value.
    pub coverage: f64,
}

impl MedianInterval {
    /// Takes the narrowest interval of order statistics that covers 95 %, or of fewer than six
    /// values their range. `None` of nothing.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1)?;
        let (cut, coverage) = cut(sorted.len());
        Some(Self {
            middle: median(&sorted),
            low: sorted[cut],
            high: sorted[last - cut],
            coverage,
        })
    }

    /// Returns the coverage of the interval of `count` values, without the values.
    #[must_use]
    pub fn coverage_of(count: usize) -> f64 {
        cut(count).1
    }
}

/// Returns the median of sorted values, of which there must be at least one.
#[must_use]
pub fn median(sorted: &[f64]) -> f64 {
    let upper = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[upper]
    } else {
        f64::midpoint(sorted[upper - 1], sorted[upper])
    }
}

/// Returns how many values are beyond either end of the interval, and its coverage.
fn cut(count: usize) -> (usize, f64) {
    let (mut cut, mut coverage, mut outside) = (0, 0.0, 0.0);
    for (index, chance) in heads(count).iter().enumerate().take(count.div_ceil(2)) {
        outside += 2.0 * chance;
        let covered = 1.0 - outside;
        if index > 0 && covered < WANTED_COVERAGE {
            break;
        }
        (cut, coverage) = (index, covered.max(0.0));
    }
    (cut, coverage)
}

/// Returns the probabilities of 0 to `count` heads in as many tosses of a fair coin: each value is
/// as likely to be below the true median as above it.
fn heads(count: usize) -> Vec<f64> {
    let mut chances = vec![1.0];
    for _ in 0..count {
        let mut next = vec![0.0; chances.len() + 1];
        for (heads, chance) in chances.iter().enumerate() {
            next[heads] += chance / 2.0;
            next[heads + 1] += chance / 2.0;
        }
        chances = next;
    }
    chances
}

/// Coverage to reach where there are enough values.
pub(crate) const WANTED_COVERAGE: f64 = 0.95;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(count: u32, [low, middle, high]: [f64; 3], coverage: f64) {
        let values: Vec<f64> = (1..=count).rev().map(f64::from).collect();
        let median = MedianInterval::of(&values).unwrap();
        assert_eq!(
            [median.low, median.middle, median.high],
            [low, middle, high]
        );
        assert!((median.coverage - coverage).abs() < 1e-12, "{median:?}");
        let alone = MedianInterval::coverage_of(count as usize);
        assert!((alone - coverage).abs() < 1e-12, "{alone}");
    }

    /// `1 - 2 * binom.cdf(cut, n, 0.5)`, SciPy 1.17.1.
    #[test]
    fn ends_are_values_of_the_series() {
        check(1, [1.0, 1.0, 1.0], 0.0);
        check(5, [1.0, 3.0, 5.0], 0.9375);
        check(6, [1.0, 3.5, 6.0], 0.96875);
        check(12, [3.0, 6.5, 10.0], 0.961_425_781_25);
        check(21, [6.0, 11.0, 16.0], 0.973_396_301_269_531_2);
        check(100, [40.0, 50.5, 61.0], 0.964_799_799_782_295_1);
        assert_eq!(MedianInterval::of(&[]), None);
    }

    #[test]
    fn six_values_or_more_cover_95_percent() {
        for count in 6..300 {
            let coverage = MedianInterval::coverage_of(count);
            assert!((0.95..1.0).contains(&coverage), "{count}: {coverage}");
        }
    }
}

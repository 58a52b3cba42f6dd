//! Count, minimum, maximum, mean and standard deviation, in integers until printed.

use serde::{Deserialize, Serialize};

/// Exact running sums of values, usually nanoseconds.
///
/// Recording costs three additions, a multiplication and two comparisons, in 128-bit integers where
/// needed. Merging is exact and independent of order, so a group equals its jobs' values recorded
/// in one summary. Welford's running mean was rejected here: it divides per value, and two merge
/// orders give different last digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct Summary {
    count: u64,
    /// `u64::MAX` while there is no value.
    min: u64,
    max: u64,
    /// Cannot overflow: 2⁶⁴ values of 64 bits fit.
    sum: u128,
    /// Wraps on overflow, so that the order of recording and merging does not matter. Overflow
    /// takes 2⁴⁰ values of two hours each.
    sum_of_squares: u128,
}

impl Summary {
    /// Creates a summary of no values.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            count: 0,
            min: u64::MAX,
            max: 0,
            sum: 0,
            sum_of_squares: 0,
        }
    }

    /// Restores a summary whose sums were not kept, as precisely as mean and deviation tell them.
    /// Numbers that no values have, such as NaN, count as 0.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "the sums are rounded, and saturate"
    )]
    pub fn from_moments(count: u64, [min, max]: [u64; 2], mean: f64, stddev: f64) -> Self {
        if count == 0 {
            return Self::new();
        }
        let bounded = |moment: f64| moment.max(0.0).min(u64::MAX as f64);
        let (mean, stddev) = (bounded(mean), bounded(stddev));
        let sum = mean * count as f64;
        let around_mean = stddev * stddev * (count - 1) as f64;
        Self {
            count,
            min,
            max: max.max(min),
            sum: sum.round() as u128,
            sum_of_squares: (around_mean + mean * sum).round() as u128,
        }
    }

    /// Records one value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        let wide = u128::from(value);
        self.count += 1;
        // Branches instead of `min` and `max`: they are almost never taken, and then save the
        // stores.
        if value < self.min {
            self.min = value;
        }
        if value > self.max {
            self.max = value;
        }
        self.sum += wide;
        self.sum_of_squares = self.sum_of_squares.wrapping_add(wide * wide);
    }

    /// Records one value `times` times.
    #[inline]
    pub fn record_n(&mut self, value: u64, times: u64) {
        if times == 0 {
            return;
        }
        let wide = u128::from(value);
        let squares = (wide * wide).wrapping_mul(u128::from(times));
        self.count += times;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.sum += wide * u128::from(times);
        self.sum_of_squares = self.sum_of_squares.wrapping_add(squares);
    }

    /// Records each value.
    #[inline]
    pub fn record_all(&mut self, values: &[u64]) {
        // A local copy, so that the sums stay in registers during the loop.
        let mut sums = *self;
        for &value in values {
            sums.record(value);
        }
        *self = sums;
    }

    /// Records each value, as [`record_all`](Self::record_all) does, but vectorised for 32 bits.
    #[inline]
    pub fn record_u32(&mut self, values: &[u32]) {
        for values in values.chunks(CHUNK_VALUES) {
            self.record_few(values);
        }
    }

    /// Records at most `CHUNK_VALUES` values. The loops are simple enough to be vectorised.
    #[inline]
    fn record_few(&mut self, values: &[u32]) {
        let mut base = 0;
        if !self.spans(values) {
            let Some((least, most)) =
                bounds(values).filter(|(least, most)| most - least <= SQUARES_FIT)
            else {
                return values.iter().for_each(|&value| self.record(value.into()));
            };
            self.min = self.min.min(least.into());
            self.max = self.max.max(most.into());
            if most > SQUARES_FIT {
                // Large but close together: sum their distances from the smallest, which are small.
                base = least;
            }
        }
        let (mut sum, mut squares) = (0_u64, 0_u64);
        for &value in values {
            let above = u64::from(value - base);
            sum += above;
            squares += above * above;
        }
        let (count, base) = (values.len() as u128, u128::from(base));
        let (sum, squares) = (u128::from(sum), u128::from(squares));
        self.count += values.len() as u64;
        self.sum += sum + count * base;
        // (a + b)² = a² + 2ab + b²
        let squares = squares + base * (2 * sum + count * base);
        self.sum_of_squares = self.sum_of_squares.wrapping_add(squares);
    }

    /// Returns true if all of `values` lie between the minimum and maximum so far, and their
    /// squares fit. Almost always true: exceptions are the first values and rare outliers.
    #[inline]
    fn spans(&self, values: &[u32]) -> bool {
        let Ok(min) = u32::try_from(self.min) else {
            return false;
        };
        let max = u32::try_from(self.max).map_or(SQUARES_FIT, |max| max.min(SQUARES_FIT));
        let span = max.wrapping_sub(min);
        let beyond = |value: u32| value.wrapping_sub(min) > span;
        max >= min && !values.iter().fold(false, |any, &value| any | beyond(value))
    }

    /// Adds the values of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum = self.sum.saturating_add(other.sum);
        self.sum_of_squares = self.sum_of_squares.wrapping_add(other.sum_of_squares);
    }

    /// Returns the smallest and largest value since this was last called, `None` without values,
    /// and forgets them: [`widen`](Self::widen) puts them back.
    pub fn take_bounds(&mut self) -> Option<(u64, u64)> {
        let bounds = (self.min, self.max);
        (self.min, self.max) = (u64::MAX, 0);
        (bounds.0 <= bounds.1).then_some(bounds)
    }

    /// Makes the smallest value at most, and the largest at least, one of these.
    pub fn widen(&mut self, (min, max): (u64, u64)) {
        self.min = self.min.min(min);
        self.max = self.max.max(max);
    }

    /// Returns the number of values.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the smallest value; 0 if there is none.
    #[must_use]
    pub const fn min(&self) -> u64 {
        if self.count == 0 { 0 } else { self.min }
    }

    /// Returns the largest value; 0 if there is none.
    #[must_use]
    pub const fn max(&self) -> u64 {
        self.max
    }

    /// Returns the sum of the values.
    #[must_use]
    pub const fn sum(&self) -> u128 {
        self.sum
    }

    /// Returns the mean; 0 if there is no value.
    #[must_use]
    pub fn mean(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        self.sum as f64 / self.count as f64
    }

    /// Returns the sample standard deviation (divisor n − 1); 0 for fewer than two values.
    #[must_use]
    pub fn stddev(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        // With sum = q·n + r: Σ(x−q)² = Σx² − q·(sum + r), an integer, and the mean q + r/n is so
        // close to q that nothing cancels when r²/n, the rest, is taken off in floating point.
        // `q·(sum + r)` is at most Σx², so it overflows only where Σx² has.
        let count = u128::from(self.count);
        let quotient = self.sum / count;
        let rest = self.sum % count;
        let below = quotient.saturating_mul(self.sum.saturating_add(rest));
        let around_quotient = self.sum_of_squares.saturating_sub(below) as f64;
        let rest = rest as f64;
        let around_mean = (around_quotient - rest * (rest / self.count as f64)).max(0.0);
        (around_mean / (self.count - 1) as f64).sqrt()
    }
}

impl Default for Summary {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the minimum and maximum of `values`; `None` if there are none, or one exceeds
/// `BOUNDS_FIT`.
///
/// Compares them as floats: non-negative floats order like their bits, and every x86-64 processor
/// has a vector minimum of floats, but not of unsigned integers.
#[inline]
fn bounds(values: &[u32]) -> Option<(u32, u32)> {
    if values.iter().fold(0, |all, &value| all | value) > BOUNDS_FIT {
        return None;
    }
    let (mut least, mut most) = ([f32::MAX; 4], [0.0; 4]);
    let (fours, rest) = values.as_chunks();
    let mut meet = |four: [u32; 4]| {
        for (lane, value) in four.map(f32::from_bits).into_iter().enumerate() {
            // Not `f32::min`, which also handles NaN and so does not compile to one instruction.
            least[lane] = if value < least[lane] {
                value
            } else {
                least[lane]
            };
            most[lane] = if value > most[lane] {
                value
            } else {
                most[lane]
            };
        }
    };
    fours.iter().for_each(|&four| meet(four));
    rest.iter().for_each(|&value| meet([value; 4]));
    let least = least.map(f32::to_bits).into_iter().min()?;
    let most = most.map(f32::to_bits).into_iter().max()?;
    (!values.is_empty()).then_some((least, most))
}

/// Serialised form of a summary: sums as upper and lower 64 bits, because JSON readers do not keep
/// longer integers.
#[derive(Serialize, Deserialize)]
struct Stored {
    count: u64,
    min: u64,
    max: u64,
    sum: [u64; 2],
    sum_of_squares: [u64; 2],
}

impl From<Summary> for Stored {
    fn from(summary: Summary) -> Self {
        Self {
            count: summary.count,
            min: summary.min(),
            max: summary.max,
            sum: split(summary.sum),
            sum_of_squares: split(summary.sum_of_squares),
        }
    }
}

impl From<Stored> for Summary {
    fn from(stored: Stored) -> Self {
        Self {
            count: stored.count,
            min: if stored.count == 0 {
                u64::MAX
            } else {
                stored.min
            },
            max: stored.max,
            sum: join(stored.sum),
            sum_of_squares: join(stored.sum_of_squares),
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "each half is 64 bits")]
const fn split(wide: u128) -> [u64; 2] {
    [(wide >> 64) as u64, wide as u64]
}

const fn join([upper, lower]: [u64; 2]) -> u128 {
    (upper as u128) << 64 | lower as u128
}

/// Values summed at once; their sum fits in 64 bits: 128 · 2³² < 2⁶⁴.
const CHUNK_VALUES: usize = 128;

/// Largest value whose squares sum up in 64 bits: 128 · (2²⁸ − 1)² < 2⁶⁴.
const SQUARES_FIT: u32 = (1 << 28) - 1;

/// Largest value checked for bounds as a float; below it, no bit pattern is infinite or NaN.
const BOUNDS_FIT: u32 = (1 << 30) - 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(values: &[u64], mean: f64, stddev: f64) {
        let mut summary = Summary::new();
        summary.record_all(values);
        assert_eq!((summary.mean(), summary.stddev()), (mean, stddev));
    }

    #[test]
    fn known_values() {
        check(&[], 0.0, 0.0);
        check(&[7], 7.0, 0.0);
        check(&[5; 1000], 5.0, 0.0);
        check(&[2, 4, 4, 4, 5, 5, 7, 9], 5.0, (32.0_f64 / 7.0).sqrt());
        check(&[1, 2], 1.5, 0.5_f64.sqrt());
        check(
            &[0, u64::MAX],
            9_223_372_036_854_775_807.5,
            13_043_817_825_332_782_212.0,
        );
    }

    #[test]
    fn moments_restore_a_summary() {
        let mut summary = Summary::new();
        summary.record_all(&[40_000, 41_000, 90_000, 6_000_000]);
        let restored =
            Summary::from_moments(4, [40_000, 6_000_000], summary.mean(), summary.stddev());
        assert_eq!(restored.mean(), summary.mean());
        assert!((restored.stddev() / summary.stddev() - 1.0).abs() < 1e-12);
        let nonsense = Summary::from_moments(2, [1, 1], f64::NAN, f64::NEG_INFINITY);
        assert_eq!((nonsense.mean(), nonsense.stddev()), (0.0, 0.0));
        assert_eq!(Summary::from_moments(0, [1, 1], 1.0, 1.0), Summary::new());
    }

    #[test]
    fn a_small_spread_far_from_zero_is_not_lost() {
        // The textbook formula in floating point gives 0 or NaN here.
        let hour = 3_600_000_000_000;
        check(&[hour, hour + 1, hour + 2], (hour + 1) as f64, 1.0);
    }

    #[test]
    fn short_values_are_taken_in_as_any_others() {
        let mut values: Vec<u32> = (0..32).flat_map(|bit| [1 << bit, (1 << bit) - 1]).collect();
        values.extend([
            u32::MAX,
            SQUARES_FIT,
            SQUARES_FIT + 1,
            BOUNDS_FIT,
            BOUNDS_FIT + 1,
        ]);
        for length in [1, 2, 3, 4, 5, values.len()] {
            for values in values.windows(length) {
                let (mut summary, mut want) = (Summary::new(), Summary::new());
                summary.record_u32(values);
                let wide = values.iter().copied().map(u64::from);
                want.record_all(&wide.collect::<Vec<_>>());
                assert_eq!(summary, want, "{values:?}");
            }
        }
    }

    #[test]
    fn absurd_values_do_not_panic() {
        let mut summary = Summary::new();
        summary.record_n(u64::MAX, u64::MAX / 2);
        summary.record(1);
        summary.record_n(3, 0);
        assert_eq!((summary.min(), summary.max()), (1, u64::MAX));
        assert!(summary.stddev().is_finite());
    }
}

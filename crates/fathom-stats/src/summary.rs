//! Count, smallest, largest, mean and standard deviation, in integers until printed.

use serde::{Deserialize, Serialize};

/// Exact running sums of values (nanoseconds, as a rule); merging loses nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct Summary {
    count: u64,
    /// `u64::MAX` while there is no value.
    min: u64,
    max: u64,
    /// Cannot overflow: that would take 2⁶⁴ values.
    sum: u128,
    /// Wraps, so that no order of recording and merging matters; it takes 2⁴⁰ values of two hours.
    sum_of_squares: u128,
}

impl Summary {
    /// A summary of nothing.
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

    /// Takes one value in.
    #[inline]
    pub fn record(&mut self, value: u64) {
        let wide = u128::from(value);
        self.count += 1;
        // Branches, and not `min` and `max`: they are all but never taken, and then store nothing.
        if value < self.min {
            self.min = value;
        }
        if value > self.max {
            self.max = value;
        }
        self.sum += wide;
        self.sum_of_squares = self.sum_of_squares.wrapping_add(wide * wide);
    }

    /// Takes one value in `times` times.
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

    /// Takes each value in.
    #[inline]
    pub fn record_all(&mut self, values: &[u64]) {
        // A copy, so that the sums live in registers meanwhile.
        let mut sums = *self;
        for &value in values {
            sums.record(value);
        }
        *self = sums;
    }

    /// Takes each value in: the same as [`record_all`](Self::record_all), for values of 32 bits.
    #[inline]
    pub fn record_short(&mut self, values: &[u32]) {
        for values in values.chunks(SHORT_AT_ONCE) {
            self.record_few(values);
        }
    }

    /// Takes in at most `SHORT_AT_ONCE` values. Loops this simple do several values at a time.
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
                // Large but close together: summed up is what they exceed the smallest by.
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

    /// Returns whether all of `values` lie between the smallest and the largest so far, and their
    /// squares fit: true but for the first ones and now and then a slow one.
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

    /// Takes in all that `other` took in.
    pub fn merge(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum = self.sum.saturating_add(other.sum);
        self.sum_of_squares = self.sum_of_squares.wrapping_add(other.sum_of_squares);
    }

    /// Returns the number of values.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The smallest value; 0 if there is none.
    #[must_use]
    pub const fn min(&self) -> u64 {
        if self.count == 0 { 0 } else { self.min }
    }

    /// The largest value; 0 if there is none.
    #[must_use]
    pub const fn max(&self) -> u64 {
        self.max
    }

    /// The mean; 0 if there is no value.
    #[must_use]
    pub fn mean(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        self.sum as f64 / self.count as f64
    }

    /// The standard deviation of a sample (n − 1 below the line); 0 for fewer than two values.
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

/// The smallest and the largest of `values`; `None` if one is over `BOUNDS_FIT`, or there is none.
///
/// Floats that are not negative have the order of their bits, and every processor knows the larger
/// of four floats at once; of unsigned integers not every one does.
#[inline]
fn bounds(values: &[u32]) -> Option<(u32, u32)> {
    if values.iter().fold(0, |all, &value| all | value) > BOUNDS_FIT {
        return None;
    }
    let (mut least, mut most) = ([f32::MAX; 4], [0.0; 4]);
    let (fours, rest) = values.as_chunks();
    let mut meet = |four: [u32; 4]| {
        for (lane, value) in four.map(f32::from_bits).into_iter().enumerate() {
            // Not `f32::min`: that would look for what is not a number.
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

/// Stored form of a summary: sums as their upper and lower 64 bits, because JSON's readers do not
/// keep longer integers.
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

/// Values whose sums fit into 64 bits: 128 · 2³² < 2⁶⁴.
const SHORT_AT_ONCE: usize = 128;

/// The largest of them whose squares do too: 128 · (2²⁸ − 1)² < 2⁶⁴.
const SQUARES_FIT: u32 = (1 << 28) - 1;

/// Nothing up to here has the bits of an infinite float, or of none.
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
                summary.record_short(values);
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

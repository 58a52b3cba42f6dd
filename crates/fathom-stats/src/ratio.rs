//! Ratio of two measured quantities, with a distribution-free confidence interval.
//!
//! Rates of repeats are skewed and have outliers in one direction, so nothing here assumes a
//! distribution: the intervals are order statistics, and their coverage is exact without ties, and
//! at least what is said with them. Ratios are compared as logarithms, in which twice as much and
//! half as much are equally far from no change.

use crate::median::{WANTED_COVERAGE, median};
use crate::rank_sum::SERIES_MAX;
use crate::ranks::spread;
use crate::signed_rank::{DIFFERENCES_MAX, pair_means, rank_sum_chances, signed_rank};

/// Ratio of two quantities, and the interval that covers the true ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatioInterval {
    /// Estimate of Hodges and Lehmann.
    pub middle: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Probability that such an interval covers the true ratio.
    pub coverage: f64,
}

impl RatioInterval {
    /// Fewest pairs that have an interval.
    pub const PAIRS_MIN: usize = 5;

    /// Estimates the ratio of pairs measured in turn: the median of the geometric means of the
    /// ratios of any two pairs, with the interval of the signed-rank test
    /// ([`signed_rank`](fn@crate::signed_rank)). Drift that is slow compared with a pair cancels
    /// out.
    ///
    /// Of more than [`DIFFERENCES_MAX`] pairs, this many count, evenly spread over all. `None` with
    /// fewer pairs than a coverage of 90 % takes ([`PAIRS_MIN`](Self::PAIRS_MIN)), or if a value is
    /// not positive.
    #[must_use]
    pub fn of_pairs(pairs: &[(f64, f64)]) -> Option<Self> {
        let has_zero = |&(over, under): &(f64, f64)| over == 0.0 || under == 0.0;
        match pairs.iter().any(has_zero) {
            true => None,
            false => Self::of_pairs_with_zeros(pairs),
        }
    }

    /// As [`of_pairs`](Self::of_pairs), of values that may be 0: a change from 0 is an infinite
    /// ratio, one to 0 the ratio 0, and 0 on both sides no change. Estimate and ends may be 0 or
    /// infinite; [`is_bounded`](Self::is_bounded) tells. `None` also if some pairs rise from 0 and
    /// others fall to it: the mean of both is no number.
    #[must_use]
    pub fn of_pairs_with_zeros(pairs: &[(f64, f64)]) -> Option<Self> {
        let pairs = spread(pairs, DIFFERENCES_MAX);
        let logs = log_ratios(pairs.iter().copied())?;
        if logs.contains(&f64::INFINITY) && logs.contains(&f64::NEG_INFINITY) {
            return None;
        }
        Self::between(pair_means(&logs), &rank_sum_chances(pairs.len()))
    }

    /// Estimates the ratio of two independent series: the median of all ratios of one value of
    /// `over` to one of `under` (Hodges and Lehmann), with the interval of the rank-sum test
    /// ([`rank_sum`](fn@crate::rank_sum)). Drift between the series is part of the result.
    ///
    /// Of more than [`SERIES_MAX`] values, this many count, evenly spread over all. `None` with
    /// fewer values than a coverage of 90 % takes (3 and 3, 2 and 5), or if one is not positive.
    #[must_use]
    pub fn of_series(over: &[f64], under: &[f64]) -> Option<Self> {
        match over.contains(&0.0) || under.contains(&0.0) {
            true => None,
            false => Self::of_series_with_zeros(over, under),
        }
    }

    /// As [`of_series`](Self::of_series), of values that may be 0: a ratio to 0 is infinite, one of
    /// 0 is 0, and that of 0 to 0 is 1. `None` also if the estimate lies between 0 and infinity.
    #[must_use]
    pub fn of_series_with_zeros(over: &[f64], under: &[f64]) -> Option<Self> {
        let (over, under) = (spread(over, SERIES_MAX), spread(under, SERIES_MAX));
        let all = over
            .iter()
            .flat_map(|&over| under.iter().map(move |&under| (over, under)));
        let logs = log_ratios(all)?;
        Self::between(logs, &rank_sums(over.len(), under.len()))
    }

    /// Returns the p value of pairs measured in turn, by the test that the interval of
    /// [`of_pairs_with_zeros`](Self::of_pairs_with_zeros) belongs to; `None` if a value is negative
    /// or no number.
    #[must_use]
    pub fn p_of_pairs(pairs: &[(f64, f64)]) -> Option<f64> {
        Some(signed_rank(&log_ratios(pairs.iter().copied())?))
    }

    /// Returns whether the interval has ends: of values that are 0 it may reach to 0 or to
    /// infinity.
    #[must_use]
    pub fn is_bounded(&self) -> bool {
        self.low > 0.0 && self.high < f64::INFINITY
    }

    /// Returns whether the interval excludes equality: a difference is shown.
    #[must_use]
    pub fn shows_difference(&self) -> bool {
        self.low > 1.0 || self.high < 1.0
    }

    /// Returns the coverage that all intervals reach, in percent, rounded down; `None` without any.
    #[must_use]
    pub fn level_percent(intervals: impl IntoIterator<Item = Self>) -> Option<f64> {
        let coverages = intervals.into_iter().map(|one| one.coverage);
        // The sums behind a coverage of exactly 90 % may end below it.
        let percent = |coverage| libm::floor(coverage * 100.0 + 1e-6);
        coverages.reduce(f64::min).map(percent)
    }

    /// Selects the narrowest interval of order statistics that covers 95 %, or else the widest.
    /// `chances[i]` is the probability that exactly `i` of the logarithms are below the true one.
    fn between(mut logs: Vec<f64>, chances: &[f64]) -> Option<Self> {
        logs.sort_by(f64::total_cmp);
        let (mut cut, mut coverage, mut outside) = (0, 0.0, 0.0);
        for (index, chance) in chances.iter().enumerate().take(logs.len().div_ceil(2)) {
            outside += 2.0 * chance;
            let covered = 1.0 - outside;
            if index > 0 && covered < WANTED_COVERAGE {
                break;
            }
            (cut, coverage) = (index, covered);
        }
        let is_enough = coverage >= COVERAGE_MIN;
        // Of an even number, the middle may lie between 0 and infinity.
        let middle = is_enough.then(|| median(&logs));
        middle.filter(|log| !log.is_nan()).map(|log| Self {
            middle: libm::exp(log),
            low: libm::exp(logs[cut]),
            high: libm::exp(logs[logs.len() - 1 - cut]),
            coverage,
        })
    }
}

/// Returns the logarithms of ratios, or `None` if a number is negative or not finite. That of a
/// change from 0 is infinite, and that of 0 to 0 is 0: nothing has changed.
fn log_ratios(pairs: impl Iterator<Item = (f64, f64)>) -> Option<Vec<f64>> {
    let is_amount = |number: f64| number >= 0.0 && number.is_finite();
    let log = |(over, under): (f64, f64)| match (over, under) {
        (over, under) if !is_amount(over) || !is_amount(under) => None,
        (0.0, 0.0) => Some(0.0),
        (0.0, _) => Some(f64::NEG_INFINITY),
        (_, 0.0) => Some(f64::INFINITY),
        (over, under) => Some(libm::log(over / under)),
    };
    pairs.map(log).collect()
}

/// Returns the distribution of the rank-sum statistic U: of the number of pairs, one value of
/// each of two series of the same distribution, in which the first is the smaller one.
fn rank_sums(first: usize, second: usize) -> Vec<f64> {
    // `rows[n]` is the distribution for n values of the first series and `m` of the second. The
    // largest value of all belongs to the first series with probability n / (n + m): then it is
    // in no such pair. Otherwise it is in n of them.
    let mut rows = vec![vec![1.0]; first + 1];
    for m in 1..=second {
        rows[0] = vec![1.0];
        for n in 1..=first {
            let from_first = ratio(n, n + m);
            let mut row = vec![0.0; n * m + 1];
            for (count, chance) in rows[n - 1].iter().enumerate() {
                row[count] += chance * from_first;
            }
            // Not yet replaced: the row of `m - 1`.
            for (count, chance) in rows[n].iter().enumerate() {
                row[count + n] += chance * (1.0 - from_first);
            }
            rows[n] = row;
        }
    }
    rows.swap_remove(first)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "both are at most twice SERIES_MAX"
)]
fn ratio(part: usize, whole: usize) -> f64 {
    part as f64 / whole as f64
}

/// Least coverage worth reporting: five pairs have 93.75 %, three values each 90 %.
const COVERAGE_MIN: f64 = 0.9 - 1e-9;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn close(got: f64, want: f64) {
        assert!((got - want).abs() < 1e-9, "{got} instead of {want}");
    }

    #[test]
    fn five_pairs_give_the_range_of_their_ratios() {
        let pairs = [(2.0, 1.0), (3.0, 1.0), (5.0, 2.0), (9.0, 3.0), (1.2, 1.0)];
        let ratio = RatioInterval::of_pairs(&pairs).unwrap();
        // The eighth of 15 means.
        close(ratio.middle, 6.0_f64.sqrt());
        close(ratio.low, 1.2);
        close(ratio.high, 3.0);
        close(ratio.coverage, 1.0 - 2.0 / 32.0);
        assert!(ratio.shows_difference());
        assert_eq!(RatioInterval::of_pairs(&pairs[..4]), None);
        close(RatioInterval::p_of_pairs(&pairs).unwrap(), 2.0 / 32.0);
        assert_eq!(RatioInterval::p_of_pairs(&[(-1.0, 1.0)]), None);
        assert_eq!(RatioInterval::p_of_pairs(&[(f64::NAN, 1.0)]), None);
    }

    #[test]
    fn many_pairs_leave_outliers_out() {
        // Published tables of the signed-rank test: 13 for 12 pairs at 5 %, two-sided. 87 of the
        // 4096 assignments of signs have a sum of at most 13.
        let pairs: Vec<(f64, f64)> = (1..=12).map(|n| (f64::from(n), 1.0)).collect();
        let ratio = RatioInterval::of_pairs(&pairs).unwrap();
        close(ratio.coverage, 1.0 - 2.0 * 87.0 / 4096.0);
        assert!(ratio.low > 3.0 && ratio.high < 11.0, "{ratio:?}");
        // The geometric mean of all lies lower, the arithmetic one higher.
        assert!(ratio.middle > 5.5 && ratio.middle < 6.5, "{ratio:?}");
    }

    #[test]
    fn two_series_of_five_use_the_third_smallest_ratio() {
        // Published tables of the rank-sum test: U = 2 for 5 and 5 at 5 %, two-sided; 4 of the 252
        // arrangements have U ≤ 2.
        let over = [10.0, 11.0, 12.0, 13.0, 14.0];
        let under = [1.0; 5];
        let ratio = RatioInterval::of_series(&over, &under).unwrap();
        close(ratio.coverage, 1.0 - 8.0 / 252.0);
        close(ratio.low, 10.0);
        close(ratio.high, 14.0);
        close(ratio.middle, 12.0);
        assert_eq!(RatioInterval::of_series(&over[..2], &under[..3]), None);
        close(
            RatioInterval::of_series(&over[..3], &under[..3])
                .unwrap()
                .coverage,
            0.9,
        );
    }

    #[test]
    fn the_level_is_that_of_the_fewest_values() {
        let series = |values: usize| {
            let (over, under) = (vec![10.0; values], vec![1.0; values]);
            RatioInterval::of_series(&over, &under).unwrap()
        };
        let level =
            |values: &[usize]| RatioInterval::level_percent(values.iter().map(|n| series(*n)));
        assert_eq!(level(&[]), None);
        assert_eq!(level(&[3]), Some(90.0));
        assert_eq!(level(&[5]), Some(96.0));
        assert_eq!(level(&[5, 3, 64]), Some(90.0));
    }

    #[test]
    fn rank_sums_are_the_distribution_over_all_arrangements() {
        // Arrangements of two values among four places, as bits.
        let mut counts = [0.0; 5];
        for bits in 0_u32..16 {
            if bits.count_ones() == 2 {
                let is_first = |place: &u32| bits >> place & 1 == 1;
                let pairs = (0..4)
                    .filter(is_first)
                    .map(|first| (first + 1..4).filter(|second| !is_first(second)).count());
                counts[pairs.sum::<usize>()] += 1.0 / 6.0;
            }
        }
        for (got, want) in rank_sums(2, 2).iter().zip(counts) {
            close(*got, want);
        }
        assert_eq!(rank_sums(3, 4).len(), 13);
        close(rank_sums(64, 64).iter().sum(), 1.0);
    }

    #[test]
    fn noise_shows_no_difference_and_zeros_no_interval() {
        let noise = [0.9, 1.1, 1.0, 1.05, 0.95];
        let ratio = RatioInterval::of_series(&noise, &noise).unwrap();
        assert!(!ratio.shows_difference(), "{ratio:?}");
        assert_eq!(RatioInterval::of_series(&[0.0; 5], &noise), None);
        assert_eq!(RatioInterval::of_pairs(&[]), None);
        assert_eq!(RatioInterval::of_pairs(&[(0.0, 1.0); 6]), None);
    }

    #[test]
    fn changes_from_zero_are_infinite_and_zero_on_both_sides_is_none() {
        let of = |pairs: &[(f64, f64)]| {
            let ratio = RatioInterval::of_pairs_with_zeros(pairs)?;
            Some((ratio.low, ratio.middle, ratio.high, ratio.is_bounded()))
        };
        let infinite = f64::INFINITY;
        assert_eq!(
            of(&[(40.0, 0.0); 8]),
            Some((infinite, infinite, infinite, false))
        );
        close(
            RatioInterval::p_of_pairs(&[(40.0, 0.0); 8]).unwrap(),
            2.0 / 256.0,
        );
        assert_eq!(of(&[(0.0, 3.0); 8]), Some((0.0, 0.0, 0.0, false)));
        assert_eq!(of(&[(0.0, 0.0); 8]), Some((1.0, 1.0, 1.0, true)));
        // One change of eight shows nothing, and leaves the interval open.
        let mut pairs = [(0.0, 0.0); 8];
        pairs[3].0 = 1.0;
        assert_eq!(of(&pairs), Some((1.0, 1.0, infinite, false)));
        pairs[4].1 = 1.0;
        assert_eq!(of(&pairs), None);
        assert_eq!(of(&[(-1.0, 0.0); 8]), None);
        let series = RatioInterval::of_series_with_zeros;
        let ratio = series(&[3.0; 5], &[0.0; 5]).unwrap();
        assert_eq!((ratio.low, ratio.high), (infinite, infinite));
        assert!(series(&[2.0; 5], &[0.0, 1.0, 1.0, 1.0, 1.0]).unwrap().low >= 2.0);
        assert_eq!(
            series(&[0.0, 5.0, 0.0, 5.0], &[0.0, 1.0, 0.0, 1.0]).map(|one| one.low),
            Some(0.0)
        );
    }
}

//! Figures with their spread: medians, and ratios of pairs.

use fathom_stats::{MedianInterval, RatioInterval};

/// A figure with its spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    /// Median, or the estimate of a ratio.
    pub(crate) middle: f64,
    pub(crate) smallest: f64,
    pub(crate) largest: f64,
    /// Interval of `middle`, of at least 95 % with six values or more.
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Spread {
    /// Computes the median of values, of which there must be at least one.
    pub(crate) fn of(values: &[f64]) -> Self {
        let median = MedianInterval::of(values).expect("a spread needs a value");
        Self {
            middle: median.middle,
            smallest: values.iter().copied().fold(f64::INFINITY, f64::min),
            largest: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            low: median.low,
            high: median.high,
        }
    }

    /// Estimates the ratio of the first numbers to the second, over at least one pair.
    ///
    /// The estimate of Hodges and Lehmann, with the interval of the signed-rank test, or of too few
    /// pairs and of zeros the median of the ratios.
    pub(crate) fn of_ratios(pairs: &[(f64, f64)]) -> Self {
        let ratios: Vec<f64> = pairs.iter().map(|(over, under)| over / under).collect();
        let spread = Self::of(&ratios);
        RatioInterval::of_pairs(pairs).map_or(spread, |ratio| Self {
            middle: ratio.middle,
            low: ratio.low,
            high: ratio.high,
            ..spread
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_lies_within_the_values_and_holds_the_median() {
        let spread = Spread::of(&[1.0, 1.1, 1.2, 5.0, 0.9]);
        assert_eq!(
            [
                spread.smallest,
                spread.low,
                spread.middle,
                spread.high,
                spread.largest
            ],
            [0.9, 0.9, 1.1, 5.0, 5.0]
        );
    }

    #[test]
    fn a_ratio_rests_on_all_pairs() {
        let pairs = [(2.0, 1.0), (3.0, 1.0), (5.0, 2.0), (9.0, 3.0), (1.2, 1.0)];
        let spread = Spread::of_ratios(&pairs);
        assert!((spread.middle - 6.0_f64.sqrt()).abs() < 1e-12, "{spread:?}");
        assert_eq!((spread.smallest, spread.largest), (1.2, 3.0));
    }

    #[test]
    fn a_pair_without_a_value_leaves_the_median() {
        let spread = Spread::of_ratios(&[(2.0, 8.0), (0.0, 4.0), (4.0, 8.0)]);
        assert_eq!(spread.middle, 0.25);
        assert_eq!((spread.low, spread.high), (0.0, 0.5));
    }
}

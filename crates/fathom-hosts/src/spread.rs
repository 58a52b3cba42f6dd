//! Ranks that are slower or faster than the others.
//!
//! A rank is off if it differs from the median of all by a tenth and by five deviations. The first
//! keeps alike ranks from being told apart by noise that does not matter; the second keeps ranks
//! that differ anyway from being marked by chance. Median and median absolute deviation, instead
//! of mean and standard deviation, because one slow rank moves the latter towards itself.

use fathom_stats::{Improves, median};

/// Distribution of one figure over the ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Smallest value.
    pub smallest: f64,
    /// Median.
    pub median: f64,
    /// Largest value.
    pub largest: f64,
    /// Median absolute deviation from the median, scaled to the standard deviation that it
    /// estimates if the values are normal.
    pub deviation: f64,
    improves: Improves,
    count: usize,
}

/// Mark of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Worse than the others.
    Slow,
    /// Better than the others.
    Fast,
}

impl Spread {
    /// Takes the values of all ranks; `None` without any. Values that are not finite are left out.
    #[must_use]
    pub fn of(values: &[f64], improves: Improves) -> Option<Self> {
        let finite = values.iter().copied().filter(|value| value.is_finite());
        let mut sorted: Vec<f64> = finite.collect();
        sorted.sort_by(f64::total_cmp);
        let (&smallest, &largest) = (sorted.first()?, sorted.last()?);
        let middle = median(&sorted);
        let mut distances: Vec<f64> = sorted.iter().map(|value| (value - middle).abs()).collect();
        distances.sort_by(f64::total_cmp);
        Some(Self {
            smallest,
            median: middle,
            largest,
            deviation: NORMAL_PER_MAD * median(&distances),
            improves,
            count: sorted.len(),
        })
    }

    /// Returns the mark of a rank with this value, if it is off.
    #[must_use]
    pub fn mark(&self, value: f64) -> Option<Mark> {
        let distance = (value - self.median).abs();
        // Written so that a NaN is not off.
        let is_off =
            distance >= OFF_SHARE * self.median && distance >= OFF_DEVIATIONS * self.deviation;
        if !is_off || self.median <= 0.0 || self.count < RANKS_MIN {
            return None;
        }
        let is_better = (value > self.median) == (self.improves == Improves::Upwards);
        Some(if is_better { Mark::Fast } else { Mark::Slow })
    }
}

/// Least share of the median by which a rank is off.
const OFF_SHARE: f64 = 0.1;
/// Least number of deviations by which a rank is off: of ranks that are alike, one in millions.
const OFF_DEVIATIONS: f64 = 5.0;
/// Fewest ranks that are compared: of three, two could as well be off.
const RANKS_MIN: usize = 4;
/// Standard deviation of a normal distribution over its median absolute deviation.
const NORMAL_PER_MAD: f64 = 1.482_602_218_505_602;

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_core::{Taus258, stream_seed};
    use fathom_stats::standard_normal;

    #[track_caller]
    fn check(values: &[f64], improves: Improves, want: &[Option<Mark>]) {
        let spread = Spread::of(values, improves).unwrap();
        let marks: Vec<_> = values.iter().map(|&value| spread.mark(value)).collect();
        assert_eq!(marks, want, "{spread:?}");
    }

    #[test]
    fn marks_follow_the_direction_in_which_the_figure_improves() {
        let values = [100.0, 101.0, 99.0, 80.0, 130.0];
        let (slow, fast) = (Some(Mark::Slow), Some(Mark::Fast));
        check(&values, Improves::Upwards, &[None, None, None, slow, fast]);
        check(
            &values,
            Improves::Downwards,
            &[None, None, None, fast, slow],
        );
    }

    #[test]
    fn a_tenth_and_five_deviations_are_both_needed() {
        let upwards = Improves::Upwards;
        // Equal but for one: no deviation, so a tenth decides.
        check(&[100.0, 100.0, 100.0, 91.0], upwards, &[None; 4]);
        let slow = Some(Mark::Slow);
        check(
            &[100.0, 100.0, 100.0, 90.0],
            upwards,
            &[None, None, None, slow],
        );
        // A third off, but they all differ.
        check(&[100.0, 150.0, 80.0, 120.0, 67.0], upwards, &[None; 5]);
        // Three ranks.
        check(&[100.0, 100.0, 10.0], upwards, &[None; 3]);
    }

    #[test]
    fn odd_values_mark_nothing() {
        let upwards = Improves::Upwards;
        check(&[0.0, 0.0, 0.0, 5.0], upwards, &[None; 4]);
        let slow = Some(Mark::Slow);
        let values = [f64::NAN, 9.0, 9.0, 9.0, 1.0];
        check(&values, upwards, &[None, None, None, None, slow]);
        assert_eq!(Spread::of(&[f64::NAN], upwards), None);
        let spread = Spread::of(&[3.0, 1.0, 2.0], upwards).unwrap();
        let range = [spread.smallest, spread.median, spread.largest];
        assert_eq!(range, [1.0, 2.0, 3.0]);
    }

    /// Returns values of `count` ranks that differ by the deviation `noise`, of mean 1.
    fn ranks(count: usize, noise: f64, seed: u64) -> Vec<f64> {
        let mut random = Taus258::new(stream_seed(20, seed));
        (0..count)
            .map(|_| 1.0 + noise * standard_normal(&mut random))
            .collect()
    }

    /// Returns the indexes of the marked ranks.
    fn marked(values: &[f64]) -> Vec<usize> {
        let spread = Spread::of(values, Improves::Upwards).unwrap();
        let all = values.iter().enumerate();
        all.filter(|(_, value)| spread.mark(**value).is_some())
            .map(|(index, _)| index)
            .collect()
    }

    #[test]
    fn a_rank_slow_by_a_fifth_among_sixteen_is_marked_in_99_of_100() {
        let hits = (0..1_000).filter(|&seed| {
            let mut values = ranks(16, 0.02, seed);
            values[5] *= 0.8;
            marked(&values) == [5]
        });
        let hits = hits.count();
        assert!(hits >= 990, "{hits} of 1000");
    }

    #[test]
    fn even_runs_have_false_marks_in_at_most_1_of_100() {
        // Of 16 ranks the deviation itself is uncertain by a fifth: at 5 % of noise, where a tenth
        // is two deviations, it alone keeps marks away, and fails in 14 of 1,000 runs.
        for (count, noise, limit) in [
            (16, 0.005, 0),
            (16, 0.02, 10),
            (16, 0.05, 20),
            (1_000, 0.02, 10),
            (1_000, 0.05, 10),
        ] {
            let is_marked = |seed: &u64| !marked(&ranks(count, noise, *seed)).is_empty();
            let runs = (0..1_000).filter(is_marked).count();
            assert!(runs <= limit, "{count} ranks, {noise}: {runs} of 1000");
        }
    }
}

//! Design of experiments with repeats: the change that a number of repeats finds, the width at
//! which they suffice, and the number that would settle an open question.
//!
//! Repeats are pairs: the logarithm of the ratio of a run to the baseline of the same repeat. All
//! widths are those of logarithms, in which twice as much and half as much are equally far from no
//! change; below 10 % they are relative changes.

use fathom_core::Taus258;

use crate::RatioInterval;
use crate::comparisons::SIGNIFICANT;
use crate::median::median;
use crate::normal::standard_normal;
use crate::signed_rank::{DIFFERENCES_MAX, pair_means, rank_sum_chances};

/// Returns the smallest effect that `repeats` repeats find 9 times out of 10, as a multiple of the
/// standard deviation of one run's logarithm from run to run. `None` if they can prove nothing
/// among `comparisons` comparisons: [`repeats_to_prove`](crate::repeats_to_prove) returns the
/// number that can.
///
/// Found means a p value below 0.05 after Holm's first, strictest factor: with several changes at
/// once the others are found a little more easily. The deviation is that of runs of one repeat,
/// free of the drift that a repeat cancels, and its distribution is taken to be normal. From 4,000
/// draws with a fixed seed, so within about 2 %; a hundredth of a second with 40 repeats.
#[must_use]
pub fn smallest_effect(repeats: u32, comparisons: usize) -> Option<f64> {
    let repeats = (repeats as usize).min(DIFFERENCES_MAX);
    let cut = last_rejected(repeats, comparisons)?;
    let mut random = Taus258::new(DRAWS_SEED);
    // A shift is found if it exceeds the distance from the centre to the end of the interval.
    let mut distances = Vec::with_capacity(2 * DRAWS);
    for _ in 0..DRAWS {
        let differences: Vec<f64> = (0..repeats)
            .map(|_| std::f64::consts::SQRT_2 * standard_normal(&mut random))
            .collect();
        let mut means = pair_means(&differences);
        let from_top = means.len() - 1 - cut;
        let (_, low, _) = means.select_nth_unstable_by(cut, f64::total_cmp);
        // Both ends count: the negated differences are as likely.
        distances.push(-*low);
        let (_, high, _) = means.select_nth_unstable_by(from_top, f64::total_cmp);
        distances.push(*high);
    }
    let at = distances.len() * 9 / 10;
    let (_, distance, _) = distances.select_nth_unstable_by(at, f64::total_cmp);
    Some(*distance)
}

impl RatioInterval {
    /// Returns half the width of the interval's logarithm.
    #[must_use]
    pub fn half_width(&self) -> f64 {
        libm::log(self.high / self.low) / 2.0
    }

    /// Returns whether the interval is narrow enough to stop: half its width is at most half the
    /// tolerance, so that an estimate of no change is the same for certain.
    ///
    /// Stopping considers this width, never p: a rule that stops at significance claims a change
    /// in a quarter of the experiments without any.
    #[must_use]
    pub fn is_narrow(&self, tolerance: f64) -> bool {
        self.half_width() <= libm::log1p(tolerance) / 2.0
    }

    /// Returns the number of repeats that would settle an unclear verdict after `repeats`, if the
    /// estimate stays and the width shrinks with their square root. `None` if no number does: the
    /// estimate lies on the edge of the tolerance.
    ///
    /// Within the tolerance, the interval has to fit; beyond it, the change has to be proved among
    /// all comparisons, which takes at least `least` repeats by the test in use. A guide, not a
    /// promise: another estimate needs another number.
    #[must_use]
    pub fn repeats_to_settle(
        &self,
        repeats: u32,
        tolerance: f64,
        comparisons: usize,
        least: u32,
    ) -> Option<u32> {
        let estimate = libm::log(self.middle).abs();
        let spare = libm::log1p(tolerance) - estimate;
        let growth = if spare > 0.0 {
            self.half_width() / spare
        } else {
            let family = normal_quantile(1.0 - SIGNIFICANT / 2.0 / times(comparisons.max(1)));
            let alone = normal_quantile(1.0 - SIGNIFICANT / 2.0);
            if spare.abs() < EDGE * estimate {
                return None;
            }
            self.half_width() * family / alone / estimate
        };
        let needed = libm::ceil(f64::from(repeats) * growth * growth);
        let more = repeats.saturating_add(1).max(least);
        (needed <= f64::from(REPEATS_MAX)).then(|| whole(needed).max(more))
    }
}

/// Returns which of the half widths of one metric over all cells are unstable: at least five times
/// as wide as the median one.
#[must_use]
pub fn unstable(half_widths: &[f64]) -> Vec<bool> {
    let mut sorted = half_widths.to_vec();
    sorted.sort_by(f64::total_cmp);
    let usual = if sorted.is_empty() {
        0.0
    } else {
        median(&sorted)
    };
    let is_wide = |width: &f64| usual > 0.0 && *width >= UNSTABLE * usual;
    half_widths.iter().map(is_wide).collect()
}

/// Returns the largest rank sum whose p value is significant among `comparisons` comparisons: the
/// interval of the same test ends at the mean of two differences with this index. `None` if not
/// even 0 is.
fn last_rejected(repeats: usize, comparisons: usize) -> Option<usize> {
    let allowed = SIGNIFICANT / times(comparisons.max(1));
    let mut p_value = 0.0;
    let chances = rank_sum_chances(repeats);
    let significant = chances.iter().take_while(|&chance| {
        p_value += 2.0 * chance;
        p_value <= allowed
    });
    significant.count().checked_sub(1)
}

/// Returns a quantile of the standard normal distribution, for p from 0.5 on. By bisection: a lab
/// asks for two per unclear comparison, and those of the t distribution took a fifth of its page.
fn normal_quantile(p: f64) -> f64 {
    let (mut low, mut high) = (0.0, QUANTILE_MAX);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        match libm::erfc(middle / std::f64::consts::SQRT_2) / 2.0 > 1.0 - p {
            true => low = middle,
            false => high = middle,
        }
    }
    low
}

#[expect(clippy::cast_precision_loss, reason = "a number of comparisons")]
const fn times(count: usize) -> f64 {
    count as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "0 to REPEATS_MAX"
)]
const fn whole(number: f64) -> u32 {
    number as u32
}

/// Experiments drawn to find the smallest effect; each counts twice.
const DRAWS: usize = 2_000;
/// Fixed: the same plan gets the same number on every host.
const DRAWS_SEED: u64 = 1;
/// Width of an unstable cell, in medians.
const UNSTABLE: f64 = 5.0;
/// Part of the estimate that lies between it and the edge of the tolerance, where more repeats
/// change nothing.
const EDGE: f64 = 0.01;
/// More repeats than any experiment runs; a larger number is not an answer.
const REPEATS_MAX: u32 = 100_000;
/// Largest quantile: doubles have no p beyond it but 1.
const QUANTILE_MAX: f64 = 9.0;

/// Halvings of a quantile's bracket: the rest is below 1e-14.
const HALVINGS: u32 = 50;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn near(got: f64, want: f64, part: f64) {
        assert!((got / want - 1.0).abs() < part, "{got}, not {want}");
    }

    /// Quantiles of 40,000 to 200,000 experiments drawn by NumPy 2.4.6, with `np.partition` of the
    /// means of all pairs; where all differences must be of one sign, exact:
    /// `sqrt(2) * norm.ppf(0.9 ** (1 / repeats))`, SciPy 1.17.1.
    #[test]
    fn quantiles_are_those_of_the_normal_distribution() {
        for (p, want) in [(0.5, 0.0), (0.975, 1.959_963_985), (0.999_5, 3.290_526_731)] {
            assert!((normal_quantile(p) - want).abs() < 1e-8, "{p}");
        }
        assert!(normal_quantile(1.0 - 1e-15) > 7.9);
    }

    #[test]
    fn effects_found_nine_times_of_ten() {
        for (repeats, comparisons, want) in [
            (6, 1, 2.984_725_646_563_121),
            (8, 1, 2.0457),
            (10, 1, 1.6767),
            (12, 1, 1.5278),
            (20, 1, 1.1061),
            (40, 1, 0.7616),
            (8, 4, 3.144_811_863_157_141_7),
            (12, 20, 2.3725),
            (20, 20, 1.5912),
            (40, 100, 1.1741),
        ] {
            let effect = smallest_effect(repeats, comparisons).unwrap();
            near(effect, want, 0.025);
        }
        assert_eq!(smallest_effect(5, 1), None);
        assert_eq!(smallest_effect(7, 4), None);
    }

    fn interval(low: f64, middle: f64, high: f64) -> RatioInterval {
        RatioInterval {
            middle,
            low,
            high,
            coverage: 0.95,
        }
    }

    #[test]
    fn an_interval_of_half_the_tolerance_is_narrow() {
        assert!(interval(0.991, 1.0, 1.009).is_narrow(0.02));
        assert!(!interval(0.989, 1.0, 1.011).is_narrow(0.02));
        // Its place does not matter.
        assert!(interval(1.191, 1.2, 1.209).is_narrow(0.02));
        near(interval(0.5, 1.0, 2.0).half_width(), 2.0_f64.ln(), 1e-12);
    }

    #[track_caller]
    fn settles(ratio: &RatioInterval, repeats: u32, comparisons: usize, want: u32) {
        let settled = ratio.repeats_to_settle(repeats, 0.02_f64.exp_m1(), comparisons, 6);
        // The last digit of a logarithm may cost a repeat.
        let is_near = settled.is_some_and(|repeats| repeats.abs_diff(want) <= 1);
        assert!(is_near, "{settled:?}, not {want}");
    }

    #[test]
    fn four_times_the_repeats_halve_the_width() {
        // Same, once a half width of 4 % fits into 2 %.
        settles(&interval((-0.04_f64).exp(), 1.0, 0.04_f64.exp()), 10, 1, 40);
        // A change of 4 %, once half widths of 5 % have shrunk to it.
        let beyond = interval((-0.01_f64).exp(), 0.04_f64.exp(), 0.09_f64.exp());
        settles(&beyond, 16, 1, 25);
        // Among 20 comparisons: quantiles 3.0233 and 1.9600, so 2.379 times as many.
        settles(&beyond, 16, 20, 60);
    }

    #[test]
    fn an_estimate_on_the_edge_is_never_settled() {
        let tolerance = 0.02;
        assert_eq!(
            interval(1.01, 1.02, 1.03).repeats_to_settle(20, tolerance, 1, 6),
            None
        );
        assert_eq!(
            interval(1.01, 1.0201, 1.03).repeats_to_settle(20, tolerance, 1, 6),
            None
        );
        // What is narrow already takes one repeat more, or as many as can prove anything.
        let narrow = interval(1.0, 1.0, 1.0);
        assert_eq!(narrow.repeats_to_settle(20, tolerance, 1, 6), Some(21));
        assert_eq!(narrow.repeats_to_settle(6, tolerance, 100, 12), Some(12));
    }

    #[test]
    fn unstable_is_five_times_as_wide_as_the_median() {
        let widths = [0.01, 0.012, 0.008, 0.05, 0.049];
        // The median is 0.012.
        assert_eq!(unstable(&widths), [false; 5]);
        let widths = [0.01, 0.012, 0.01, 0.05, 0.009];
        assert_eq!(unstable(&widths), [false, false, false, true, false]);
        assert_eq!(unstable(&[0.0, 0.0, 1.0]), [false; 3]);
        assert!(unstable(&[]).is_empty());
    }
}

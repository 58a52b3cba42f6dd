//! Wilcoxon's signed-rank test, exact, with ties and zeros, and the estimate that belongs to it.
//!
//! For paired differences. If the two sides of a pair were drawn by lot, each difference is as
//! likely to be positive as negative, whatever the noise; the test counts the assignments of signs
//! whose sum of ranks is as extreme as the one found. Nothing is approximated: the counts are
//! integers.

use crate::ranks::{doubled_ranks, spread, two_sided};

/// Returns the two-sided p value: the probability of a sum of ranks as extreme as that of these
/// differences, if their signs are random. It is 1 if all differences are zero.
///
/// Ranks are those of the absolute differences, zeros included, which then count on neither side
/// (Pratt); equal ones share their mean rank. Of more than [`DIFFERENCES_MAX`] values, this
/// many count, evenly spread over all.
#[must_use]
pub fn signed_rank(differences: &[f64]) -> f64 {
    let differences = spread(differences, DIFFERENCES_MAX);
    let sizes: Vec<f64> = differences.iter().map(|value| value.abs()).collect();
    let (mut ranks, mut positive) = (Vec::new(), 0);
    for (value, rank) in differences.iter().zip(doubled_ranks(&sizes)) {
        if *value != 0.0 {
            ranks.push(rank);
        }
        if *value > 0.0 {
            positive += rank;
        }
    }
    two_sided(&sign_counts(&ranks), positive)
}

/// Returns the means of all pairs of differences, each with itself included. Their median is the
/// estimate of Hodges and Lehmann; their order statistics are the ends of its interval.
pub(crate) fn pair_means(differences: &[f64]) -> Vec<f64> {
    let means = differences.iter().enumerate().flat_map(|(at, &one)| {
        let others = differences[at..].iter();
        others.map(move |&other| f64::midpoint(one, other))
    });
    means.collect()
}

/// Returns the probabilities of each sum of the positive ranks of `count` differences without ties.
pub(crate) fn rank_sum_chances(count: usize) -> Vec<f64> {
    let ranks: Vec<usize> = (1..=count).collect();
    let counts = sign_counts(&ranks);
    let all = power_of_two(count);
    counts.iter().map(|&ways| float(ways) / all).collect()
}

/// Returns the number of sign assignments by the sum of the ranks that are positive.
fn sign_counts(ranks: &[usize]) -> Vec<u128> {
    let mut counts = vec![0; ranks.iter().sum::<usize>() + 1];
    counts[0] = 1;
    let mut largest = 0;
    for rank in ranks {
        largest += rank;
        // From above, so that no rank is added twice.
        for sum in (*rank..=largest).rev() {
            counts[sum] += counts[sum - rank];
        }
    }
    counts
}

fn power_of_two(exponent: usize) -> f64 {
    float(1 << exponent)
}

#[expect(clippy::cast_precision_loss, reason = "rounded once, to the nearest")]
fn float(count: u128) -> f64 {
    count as f64
}

/// Largest number of differences: the 2¹⁰⁰ sign assignments are counted in 128 bits.
pub const DIFFERENCES_MAX: usize = 100;

//! Mann and Whitney's rank-sum test, exact, with ties.
//!
//! For two series that were not paired. The test counts the ways to split all values into series
//! of these lengths whose sum of ranks is as extreme as the one found. Drift between the series is
//! a difference like any other: only pairs measured in turn are free of it.

use crate::ranks::{doubled_ranks, spread, two_sided};

/// Returns the two-sided p value: the probability of a sum of ranks as extreme as that of `one`, if
/// the values of both series are of one distribution. 1 if a series is empty.
///
/// Equal values share their mean rank. Of a series of more than [`SERIES_MAX`] values, this many
/// count, evenly spread over all.
#[must_use]
pub fn rank_sum(one: &[f64], other: &[f64]) -> f64 {
    let (one, other) = (spread(one, SERIES_MAX), spread(other, SERIES_MAX));
    // The ways are the same from either side, and fewer sums are needed for the shorter one.
    let (short, long) = match one.len() <= other.len() {
        true => (one, other),
        false => (other, one),
    };
    let count = short.len();
    let ranks = doubled_ranks(&[short, long].concat());
    let found: usize = ranks[..count].iter().sum();
    two_sided(&split_counts(&ranks, count), found)
}

/// Returns the number of ways to choose `count` ranks, by their sum.
fn split_counts(ranks: &[usize], count: usize) -> Vec<u128> {
    let mut sorted = ranks.to_vec();
    sorted.sort_unstable();
    // No choice has a larger sum than the largest ranks.
    let largest: usize = sorted.iter().rev().take(count).sum();
    let mut ways = vec![vec![0_u128; largest + 1]; count + 1];
    ways[0][0] = 1;
    for (seen, &rank) in sorted.iter().enumerate() {
        // From above, so that no rank is chosen twice.
        for chosen in (1..=count.min(seen + 1)).rev() {
            let (fewer, more) = ways.split_at_mut(chosen);
            let with = &mut more[0][rank.min(largest + 1)..];
            for (with, without) in with.iter_mut().zip(&fewer[chosen - 1]) {
                *with += without;
            }
        }
    }
    ways.swap_remove(count)
}

/// Largest length of a series: the ways to split 128 values in halves, 2.4 × 10³⁷, are counted in
/// 128 bits.
pub const SERIES_MAX: usize = 64;

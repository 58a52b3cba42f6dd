//! Ranks with ties.

/// Returns twice the rank of each value among all, from the smallest: equal values share the mean
/// of their ranks, and twice that is an integer.
pub(crate) fn doubled_ranks(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0; values.len()];
    let mut first = 0;
    for equal in order.chunk_by(|&a, &b| values[a] == values[b]) {
        // The ranks first + 1 to first + n have the sum n × (2 × first + n + 1) ÷ 2.
        for &at in equal {
            ranks[at] = 2 * first + equal.len() + 1;
        }
        first += equal.len();
    }
    ranks
}

/// Returns the values, or `most` of them, evenly spread over all: their order is often that of
/// time, and the first ones alone may be of another state.
pub(crate) fn spread<T: Copy>(values: &[T], most: usize) -> Vec<T> {
    let count = values.len().min(most);
    let place = |at: usize| values[at * values.len() / count];
    (0..count).map(place).collect()
}

/// Returns the two-sided probability: twice the smaller one of both tails, at most 1. `counts[s]`
/// is the number of equally likely cases with sum `s`, and `sum` is the one that was found.
#[expect(clippy::cast_precision_loss, reason = "rounded once, to the nearest")]
pub(crate) fn two_sided(counts: &[u128], sum: usize) -> f64 {
    let below: u128 = counts[..=sum].iter().sum();
    let above: u128 = counts[sum..].iter().sum();
    let all: u128 = counts.iter().sum();
    (2.0 * (below.min(above) as f64 / all as f64)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_share_their_ranks() {
        assert_eq!(doubled_ranks(&[3.0, 1.0, 2.0]), [6, 2, 4]);
        assert_eq!(doubled_ranks(&[0.0, -0.0, 5.0, 5.0, 5.0]), [3, 3, 8, 8, 8]);
        assert!(doubled_ranks(&[]).is_empty());
    }

    #[test]
    fn of_many_values_some_count_from_all_parts() {
        assert_eq!(spread(&[1, 2, 3], 3), [1, 2, 3]);
        assert_eq!(spread(&[1, 2, 3, 4, 5, 6, 7], 3), [1, 3, 5]);
        assert!(spread(&[0.0; 0], 3).is_empty());
    }

    #[test]
    fn both_tails_count() {
        assert!((two_sided(&[1, 3, 3, 1], 0) - 0.25).abs() < 1e-15);
        assert!((two_sided(&[1, 3, 3, 1], 1) - 1.0).abs() < 1e-15);
        assert!((two_sided(&[1], 0) - 1.0).abs() < 1e-15);
    }
}

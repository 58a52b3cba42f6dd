//! Several comparisons at once: each has a chance to be wrong, and together they are wrong often.

/// Returns the p values adjusted after Holm, in their order: those of at most 0.05 are wrong in
/// one of 20 families of comparisons at most, however the comparisons depend on each other.
#[must_use]
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut least: f64 = 0.0;
    for (done, at) in order.into_iter().enumerate() {
        let factor = p_values.len() - done;
        // One of the larger p values is never more certain than a smaller one.
        least = least.max((times(factor) * p_values[at]).min(1.0));
        adjusted[at] = least;
    }
    adjusted
}

/// Returns the least number of repeats whose smallest p value, 2 ÷ 2ʳ of the signed-rank test,
/// could be significant among `comparisons` comparisons.
#[must_use]
pub fn repeats_to_prove(comparisons: usize) -> u32 {
    let comparisons = times(comparisons.max(1));
    let mut repeats = 1;
    let mut least = 1.0;
    while least * comparisons > SIGNIFICANT {
        repeats += 1;
        least /= 2.0;
    }
    repeats
}

#[expect(clippy::cast_precision_loss, reason = "a number of comparisons")]
const fn times(count: usize) -> f64 {
    count as f64
}

/// Largest p value that proves a difference: one false alarm in 20.
pub const SIGNIFICANT: f64 = 0.05;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holm_multiplies_by_the_comparisons_that_are_left() {
        // Four comparisons: 4 × 0.005, 3 × 0.01, 2 × 0.03, and 0.04, which is not below the last.
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (got, want) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((got - want).abs() < 1e-12, "{adjusted:?}");
        }
        assert_eq!(holm(&[0.5, 0.9]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }

    #[test]
    fn more_comparisons_take_more_repeats() {
        let needed = [0, 1, 4, 20, 100].map(repeats_to_prove);
        assert_eq!(needed, [6, 6, 8, 10, 12]);
        for comparisons in 1..200 {
            let repeats = repeats_to_prove(comparisons);
            let differences: Vec<f64> = (1..=repeats).map(f64::from).collect();
            let least = |count: usize| crate::signed_rank(&differences[..count]);
            let at = repeats as usize;
            assert!(
                least(at) * times(comparisons) <= SIGNIFICANT,
                "{comparisons}"
            );
            assert!(
                least(at - 1) * times(comparisons) > SIGNIFICANT,
                "{comparisons}"
            );
        }
    }
}

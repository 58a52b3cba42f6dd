//! Medians, ratios of sums, and their confidence intervals.

/// A figure with its spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    /// Median, or ratio of the sums.
    pub(crate) middle: f64,
    pub(crate) smallest: f64,
    pub(crate) largest: f64,
    /// Bootstrap interval of `middle`, 95 %.
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Spread {
    /// Computes the median of values, of which there must be at least one.
    pub(crate) fn of(values: &[f64]) -> Self {
        let mut sample = Vec::with_capacity(values.len());
        Self::estimate(values, |drawn| {
            sample.clear();
            sample.extend(drawn.iter().map(|&index| values[index]));
            sample.sort_by(f64::total_cmp);
            median(&sample)
        })
    }

    /// Computes the sum of the first numbers divided by the sum of the second, over at least one
    /// pair: for quantities that a single run measures too coarsely.
    pub(crate) fn of_sums(pairs: &[(f64, f64)]) -> Self {
        let ratios: Vec<f64> = pairs.iter().map(|(over, under)| over / under).collect();
        Self::estimate(&ratios, |drawn| {
            let over: f64 = drawn.iter().map(|&index| pairs[index].0).sum();
            let under: f64 = drawn.iter().map(|&index| pairs[index].1).sum();
            over / under
        })
    }

    /// Computes a statistic, given a function of the indices of the sampled values.
    fn estimate(values: &[f64], mut statistic: impl FnMut(&[usize]) -> f64) -> Self {
        assert!(!values.is_empty(), "a spread needs a value");
        let all: Vec<usize> = (0..values.len()).collect();
        let middle = statistic(&all);
        let resampled = resampled(values.len(), statistic);
        let at = |share: usize| resampled[(resampled.len() - 1) * share / 1000];
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        Self {
            middle,
            smallest: sorted[0],
            largest: sorted[sorted.len() - 1],
            low: at(25),
            high: at(975),
        }
    }
}

/// Returns the median of sorted values.
fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    }
}

/// Returns the sorted values of a statistic over samples drawn with replacement, the same on every
/// machine.
fn resampled(count: usize, mut statistic: impl FnMut(&[usize]) -> f64) -> Vec<f64> {
    let mut state = SEED;
    let mut drawn = vec![0; count];
    let mut results = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        for place in &mut drawn {
            state = next_random(state);
            *place = pick(state, count);
        }
        results.push(statistic(&drawn));
    }
    results.sort_by(f64::total_cmp);
    results
}

/// Returns an index below `count`, from the upper half of the state.
fn pick(state: u64, count: usize) -> usize {
    (((state >> 32) * count as u64) >> 32) as usize
}

/// Marsaglia's xorshift64: good enough to resample and to fill a file.
pub(crate) fn next_random(mut state: u64) -> u64 {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    state
}

/// Arbitrary, but not zero, of which xorshift never gets away.
const SEED: u64 = 0x2545_f491_4f6c_dd1d;
/// Number of samples: each end of the interval then rests on 250 medians.
const RESAMPLES: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_between_the_middle_two() {
        assert_eq!(Spread::of(&[3.0, 1.0, 2.0]).middle, 2.0);
        assert_eq!(Spread::of(&[4.0, 1.0, 2.0, 3.0]).middle, 2.5);
    }

    #[test]
    fn the_interval_lies_within_the_values_and_holds_the_median() {
        let spread = Spread::of(&[1.0, 1.1, 1.2, 5.0, 0.9]);
        assert_eq!((spread.smallest, spread.largest), (0.9, 5.0));
        assert!(spread.low >= 0.9 && spread.low <= spread.middle);
        assert!(spread.high <= 5.0 && spread.high >= spread.middle);
        assert!(
            spread.low < spread.high,
            "five different values leave a doubt"
        );
    }

    #[test]
    fn equal_values_leave_no_doubt() {
        let spread = Spread::of(&[2.0; 5]);
        assert_eq!((spread.low, spread.middle, spread.high), (2.0, 2.0, 2.0));
    }

    #[test]
    fn sums_outweigh_a_run_that_measured_nothing() {
        let spread = Spread::of_sums(&[(2.0, 8.0), (4.0, 0.0), (0.0, 4.0)]);
        assert_eq!(spread.middle, 0.5);
        assert_eq!(spread.smallest, 0.0);
        assert!(spread.low <= 0.5 && spread.high >= 0.5);
        assert_eq!(Spread::of_sums(&[(1.0, 1.0), (3.0, 1.0)]).middle, 2.0);
    }

    #[test]
    fn every_value_is_drawn() {
        let mut seen = [0; 5];
        let mut state = SEED;
        for _ in 0..1000 {
            state = next_random(state);
            seen[pick(state, 5)] += 1;
        }
        assert!(seen.iter().all(|&count| count > 150), "{seen:?}");
    }
}

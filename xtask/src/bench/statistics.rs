//! Medians and how far to trust them.

/// The median with its spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) smallest: f64,
    pub(crate) largest: f64,
    /// Bootstrap interval of the median, 95 %.
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Spread {
    /// Of at least one value.
    pub(crate) fn of(values: &[f64]) -> Self {
        assert!(!values.is_empty(), "a spread needs a value");
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let medians = resampled_medians(values);
        let at = |share: usize| medians[(medians.len() - 1) * share / 1000];
        Self {
            median: median(&sorted),
            smallest: sorted[0],
            largest: sorted[sorted.len() - 1],
            low: at(25),
            high: at(975),
        }
    }
}

/// The middle of sorted values.
fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    }
}

/// Medians of samples drawn from the values with replacement, sorted; the same on every machine.
fn resampled_medians(values: &[f64]) -> Vec<f64> {
    let mut state = SEED;
    let mut sample = vec![0.0; values.len()];
    let mut medians = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        for place in &mut sample {
            state = next_random(state);
            *place = values[pick(state, values.len())];
        }
        sample.sort_by(f64::total_cmp);
        medians.push(median(&sample));
    }
    medians.sort_by(f64::total_cmp);
    medians
}

/// An index below `count`, from the upper half of the state.
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

/// Not zero; else any.
const SEED: u64 = 0x2545_f491_4f6c_dd1d;
/// The interval's ends then rest on 250 medians each.
const RESAMPLES: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_between_the_middle_two() {
        assert_eq!(Spread::of(&[3.0, 1.0, 2.0]).median, 2.0);
        assert_eq!(Spread::of(&[4.0, 1.0, 2.0, 3.0]).median, 2.5);
    }

    #[test]
    fn the_interval_lies_within_the_values_and_holds_the_median() {
        let spread = Spread::of(&[1.0, 1.1, 1.2, 5.0, 0.9]);
        assert_eq!((spread.smallest, spread.largest), (0.9, 5.0));
        assert!(spread.low >= 0.9 && spread.low <= spread.median);
        assert!(spread.high <= 5.0 && spread.high >= spread.median);
        assert!(
            spread.low < spread.high,
            "five different values leave a doubt"
        );
    }

    #[test]
    fn equal_values_leave_no_doubt() {
        let spread = Spread::of(&[2.0; 5]);
        assert_eq!((spread.low, spread.median, spread.high), (2.0, 2.0, 2.0));
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

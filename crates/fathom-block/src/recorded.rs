//! Recorded latencies, to draw from.

use fathom_core::Xoshiro256;

/// Recorded latencies with their counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Latency, ns, and cumulative count of ops that took at most that.
    steps: Vec<(u64, u64)>,
}

impl Recorded {
    /// Creates the distribution from latencies in ns with their counts; `None` without ops.
    pub fn new(counts: impl IntoIterator<Item = (u64, u64)>) -> Option<Self> {
        let mut steps: Vec<(u64, u64)> = counts.into_iter().filter(|step| step.1 > 0).collect();
        steps.sort_unstable();
        let mut sum = 0_u64;
        for (_, count) in &mut steps {
            sum = sum.saturating_add(*count);
            *count = sum;
        }
        (!steps.is_empty()).then_some(Self { steps })
    }

    /// Draws a latency in ns, at least 1.
    pub fn draw(&self, random: &mut Xoshiro256) -> u64 {
        let all = self.steps.last().map_or(1, |(_, sum)| *sum);
        let number = random.below(all);
        let step = self.steps.partition_point(|(_, sum)| *sum <= number);
        self.steps.get(step).map_or(1, |(ns, _)| (*ns).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_drawn_with_their_recorded_frequency() {
        let recorded = Recorded::new([(500, 10), (100, 85), (9000, 5), (7, 0)]).expect("some");
        let mut random = Xoshiro256::new(1);
        let mut seen = [0_u32; 3];
        for _ in 0..100_000 {
            let drawn = recorded.draw(&mut random);
            let place = [100, 500, 9000].iter().position(|ns| *ns == drawn);
            seen[place.expect("one of those recorded")] += 1;
        }
        for (seen, want) in seen.iter().zip([85_000_u32, 10_000, 5_000]) {
            assert!(seen.abs_diff(want) < 600, "{seen} for {want}");
        }
        assert_eq!(Recorded::new([(7, 0)]), None);
    }
}

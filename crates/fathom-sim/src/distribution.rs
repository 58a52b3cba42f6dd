//! Device that draws the latency of each op from those recorded on a real device.
//!
//! # Limits
//! Draws are independent of each other, of the load and of the offset: the model is valid only for
//! the depth and the pattern of the recording. Bandwidth is unlimited.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fathom_core::{
    BlockDevice, Command, CommandData, Direction, Finished, Geometry, OpKind, PerDirection, Tick,
    Xoshiro256,
};

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

    fn draw(&self, random: &mut Xoshiro256) -> u64 {
        let all = self.steps.last().map_or(1, |(_, sum)| *sum);
        let number = random.below(all);
        let step = self.steps.partition_point(|(_, sum)| *sum <= number);
        self.steps.get(step).map_or(1, |(ns, _)| (*ns).max(1))
    }
}

/// Device that draws its latencies.
#[derive(Debug)]
pub struct Drawn {
    recorded: PerDirection<Option<Recorded>>,
    random: Xoshiro256,
    in_flight: BinaryHeap<Reverse<(Tick, u64, u32, i32)>>,
    number: u64,
}

impl Drawn {
    /// Creates a device with these latencies. A direction without any uses those of reads, or else
    /// of writes; syncs use those of writes.
    #[must_use]
    pub fn new(recorded: PerDirection<Option<Recorded>>, seed: u64) -> Self {
        Self {
            recorded,
            random: Xoshiro256::new(seed),
            in_flight: BinaryHeap::new(),
            number: 0,
        }
    }
}

impl BlockDevice for Drawn {
    fn geometry(&self) -> Geometry {
        Geometry::UNBOUNDED
    }

    fn start(&mut self, command: &Command, _no_data: &mut CommandData, now: Tick) {
        let direction = match command.kind {
            OpKind::Data(direction) => direction,
            OpKind::Sync(_) => Direction::Write,
        };
        let recorded = &self.recorded;
        let latencies = recorded[direction]
            .as_ref()
            .or(recorded.read.as_ref())
            .or(recorded.write.as_ref());
        let ns = latencies.map_or(1, |latencies| latencies.draw(&mut self.random));
        self.number += 1;
        let at = now + fathom_core::Nanos::new(ns);
        let entry = (at, self.number, command.tag, command.whole());
        self.in_flight.push(Reverse(entry));
    }

    fn next(&self) -> Option<Tick> {
        self.in_flight.peek().map(|Reverse((at, ..))| *at)
    }

    fn completed(&mut self, now: Tick) -> Option<Finished> {
        let &Reverse((at, _, tag, result)) = self.in_flight.peek()?;
        (at <= now).then(|| {
            self.in_flight.pop();
            Finished::new(tag, at, result)
        })
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

//! Due times of ops: one schedule per direction with a rate.
//!
//! Due times come from the schedule alone, never from when an op could be issued: after a stall the
//! missed ops are late, and their response times show it.

use fathom_core::{Direction, Nanos, PerDirection, Tick};

use crate::config::{Pace, Rate, RateProcess};
use crate::exponential::Exponential;
use crate::pattern::OpTarget;

/// Schedules of a job.
#[derive(Debug)]
pub(crate) struct Schedules {
    /// Some direction has a schedule.
    any: bool,
    by_direction: PerDirection<Option<Schedule>>,
}

impl Schedules {
    /// Creates the schedules of a job from those of its directions.
    pub(crate) fn new(by_direction: PerDirection<Option<Schedule>>) -> Self {
        let any = by_direction.iter().any(|(_, schedule)| schedule.is_some());
        Self { any, by_direction }
    }

    /// Returns whether any direction has a schedule.
    pub(crate) const fn any(&self) -> bool {
        self.any
    }

    /// Takes the due time of `target`; `Tick::ZERO` if its direction has no schedule.
    #[inline]
    pub(crate) fn take(&mut self, target: &OpTarget) -> Tick {
        match &mut self.by_direction[target.direction] {
            None => Tick::ZERO,
            Some(schedule) => schedule.take(target.length),
        }
    }

    /// Takes the due time of `target`; `None`, taking nothing, if it is not due at `now`. Without
    /// a schedule it is due at once.
    pub(crate) fn take_if_due(&mut self, target: &OpTarget, now: Tick) -> Option<Tick> {
        match &mut self.by_direction[target.direction] {
            None => Some(now),
            Some(schedule) if schedule.next() > now => None,
            Some(schedule) => Some(schedule.take(target.length)),
        }
    }

    /// Takes the due times of the next ops in `direction`, of `length` bytes each.
    pub(crate) fn take_many(&mut self, direction: Direction, length: u32, dues: &mut [Tick]) {
        match &mut self.by_direction[direction] {
            None => dues.fill(Tick::ZERO),
            Some(schedule) => schedule.fill(length, dues),
        }
    }

    /// Returns the due time of a direction's next op.
    pub(crate) fn next_due(&self, direction: Direction) -> Tick {
        let schedule = self.by_direction[direction].as_ref();
        schedule.map_or(Tick::ZERO, Schedule::next)
    }

    /// Delays all future due times.
    pub(crate) fn delay(&mut self, by: Nanos) {
        for direction in Direction::ALL {
            if let Some(schedule) = &mut self.by_direction[direction] {
                schedule.next = schedule.next.saturating_add(fixed(by.get()));
            }
        }
    }

    /// Moves the origin of unused schedules.
    pub(crate) fn begin(&mut self, origin: Tick) {
        for direction in Direction::ALL {
            if let Some(schedule) = &mut self.by_direction[direction] {
                schedule.next = fixed(origin.get());
            }
        }
    }
}

/// Schedule of one direction.
#[derive(Debug)]
pub(crate) struct Schedule {
    next: Fixed,
    /// Bytes or ops.
    per_second: u64,
    /// Paces bytes rather than ops.
    by_bytes: bool,
    poisson: Option<Exponential>,
    /// Step for `step_units`, cached because most ops have the same size.
    step: Fixed,
    step_units: u64,
}

/// Nanoseconds in fixed point, with 64 integer and 64 fractional bits.
///
/// The step from one due time to the next is rounded up to 2⁻⁶⁴ ns. So the n-th due time is the
/// exact one, cut to whole nanoseconds, while n · rate < 2⁶⁴, and 1 ns late at most after that.
type Fixed = u128;

impl Schedule {
    /// Creates a schedule whose first op is due at `origin`.
    pub(crate) fn new(rate: Rate, origin: Tick, seed: u64) -> Self {
        let poisson = match rate.process {
            RateProcess::Linear => None,
            RateProcess::Poisson => Some(Exponential::new(seed)),
        };
        let (per_second, by_bytes) = match rate.pace {
            Pace::Bytes(bytes) => (bytes, true),
            Pace::Ops(ops) => (ops, false),
        };
        let mut schedule = Self {
            next: fixed(origin.get()),
            per_second,
            by_bytes,
            poisson,
            step: 0,
            step_units: 1,
        };
        schedule.step = schedule.step_for(1);
        schedule
    }

    /// Returns the due time of the next op.
    #[inline]
    fn next(&self) -> Tick {
        Tick::new(integer_part(self.next))
    }

    /// Takes the next due time for an op of `bytes` and moves on to the one after it.
    #[inline]
    fn take(&mut self, bytes: u32) -> Tick {
        let due = self.next();
        self.set_step(bytes);
        let gap = match &mut self.poisson {
            None => self.step,
            Some(poisson) => poisson.scale(self.step),
        };
        self.next = self.next.saturating_add(gap);
        due
    }

    /// Takes the next due times for ops of `bytes` each.
    fn fill(&mut self, bytes: u32, dues: &mut [Tick]) {
        if self.poisson.is_some() {
            return dues.fill_with(|| self.take(bytes));
        }
        self.set_step(bytes);
        // Copies, which live in registers.
        let (mut next, step) = (self.next, self.step);
        for due in dues {
            *due = Tick::new(integer_part(next));
            next = next.saturating_add(step);
        }
        self.next = next;
    }

    #[inline]
    fn set_step(&mut self, bytes: u32) {
        if self.by_bytes && u64::from(bytes) != self.step_units {
            self.step_units = u64::from(bytes);
            self.step = self.step_for(self.step_units);
        }
    }

    fn step_for(&self, units: u64) -> Fixed {
        // Cannot overflow: units ≤ 2³² and a second has 10⁹ ns < 2³⁰.
        let numerator = units * NANOS_PER_SECOND;
        let rest = fixed(numerator % self.per_second);
        fixed(numerator / self.per_second) + rest.div_ceil(self.per_second.into())
    }
}

const fn fixed(ns: u64) -> Fixed {
    (ns as Fixed) << 64
}

/// Returns the integer part.
#[inline]
const fn integer_part(time: Fixed) -> u64 {
    (time >> 64) as u64
}

const NANOS_PER_SECOND: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pace: Pace, bytes: u32, ops: u64, want_ns: u64) {
        let rate = Rate {
            pace,
            process: RateProcess::Linear,
        };
        let mut schedule = Schedule::new(rate, Tick::ZERO, 1);
        let mut ahead = Schedule::new(rate, Tick::ZERO, 1);
        let mut dues = [Tick::ZERO; 7];
        for op in 0..ops {
            let due = schedule.take(bytes);
            let place = usize::try_from(op % 7).unwrap();
            if place == 0 {
                ahead.fill(bytes, &mut dues);
            }
            assert_eq!(dues[place], due);
        }
        assert_eq!(schedule.next(), Tick::new(want_ns));
    }

    #[test]
    fn a_pace_does_not_drift() {
        check(Pace::Ops(1000), 4096, 1000, 1_000_000_000);
        check(Pace::Ops(3), 4096, 3_000_000, 1_000_000_000_000_000);
        check(Pace::Ops(3_000_000_000), 4096, 3_000_000, 1_000_000);
        check(Pace::Bytes(1 << 20), 4096, 256, 1_000_000_000);
        check(Pace::Bytes(7_000_001), 4093, 7_000_001, 4_093_000_000_000);
    }

    #[test]
    fn a_poisson_process_keeps_the_mean() {
        let rate = Rate {
            pace: Pace::Ops(1000),
            process: RateProcess::Poisson,
        };
        let mut schedule = Schedule::new(rate, Tick::ZERO, 42);
        for _ in 0..100_000 {
            schedule.take(4096);
        }
        let seconds = schedule.next().get() / NANOS_PER_SECOND;
        assert!((98..=102).contains(&seconds), "{seconds}");
    }

    /// Kolmogorov and Smirnov: the largest distance between the shares of gaps up to a length and
    /// the exponential law is no more than chance makes it in 99 of 100 samples.
    #[test]
    #[expect(clippy::cast_precision_loss, reason = "a sample of a few thousand")]
    fn the_gaps_of_a_poisson_process_are_exponential() {
        for (pace, bytes) in [(Pace::Ops(1000), 4096), (Pace::Bytes(1 << 20), 65536)] {
            let process = RateProcess::Poisson;
            let mut schedule = Schedule::new(Rate { pace, process }, Tick::ZERO, 0x89);
            let mean = match pace {
                Pace::Ops(rate) => 1e9 / rate as f64,
                Pace::Bytes(rate) => 1e9 * f64::from(bytes) / rate as f64,
            };
            let mut gaps: Vec<u64> = (0..20_000)
                .map(|_| {
                    let due = schedule.take(bytes);
                    (schedule.next() - due).get()
                })
                .collect();
            gaps.sort_unstable();
            let count = gaps.len() as f64;
            let distance = gaps.iter().enumerate().map(|(index, &gap)| {
                let law = 1.0 - libm::exp(-(gap as f64) / mean);
                let (below, with) = (index as f64 / count, (index + 1) as f64 / count);
                (law - below).abs().max((law - with).abs())
            });
            let largest = distance.fold(0.0, f64::max);
            assert!(largest * libm::sqrt(count) < 1.63, "{pace:?}: {largest}");
        }
    }
}

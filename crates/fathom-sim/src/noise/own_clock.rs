//! Own clock of a noisy device, and the conversion between its time and that of the simulation.

use fathom_core::{Taus258, Tick, stream_seed};
use fathom_stats::standard_normal;

use super::{Neighbour, NoiseConfig, TimeLine, Wander};

/// Clock whose speed changes from section to section.
///
/// The sections follow from the configuration, the run's number and the absolute time alone. Only
/// one is kept, that of the latest time [passed](Self::pass): conversions look ahead from it.
#[derive(Debug)]
pub(super) struct OwnClock {
    noise: NoiseConfig,
    /// Begin of the run on the experiment's time line, ns.
    start: u64,
    /// Logarithm of the run's own slowness.
    run_level: f64,
    section: Section,
}

/// Section of even speed.
#[derive(Clone, Copy, Debug)]
struct Section {
    /// Begin, in the time of the simulation and on the own clock, ns.
    from: u64,
    own_from: u64,
    /// Begin of the next section; `u64::MAX` of the last.
    until: u64,
    /// Nanoseconds of the own clock in 2³² of the simulation.
    rate: u64,
    /// Deviation of the wander, and the number of its step.
    wander: (u64, f64),
}

impl OwnClock {
    pub(super) fn new(mut noise: NoiseConfig, place: TimeLine) -> Self {
        if place.experiment > 0 {
            noise.seed = stream_seed(noise.seed, place.experiment);
        }
        let draw = draw(stream_seed(noise.seed, RUNS), place.run);
        let mut clock = Self {
            run_level: noise.between_runs * draw,
            start: place.start.get(),
            section: Section {
                from: 0,
                own_from: 0,
                until: 0,
                rate: EVEN,
                wander: (0, 0.0),
            },
            noise,
        };
        let wander = clock.noise.wander.map(|wander| clock.first_level(wander));
        clock.section = clock.section_at(0, 0, wander.unwrap_or_default());
        clock
    }

    /// Converts a time of the simulation, none before the latest passed.
    pub(super) fn to_own(&self, now: Tick) -> Tick {
        let now = now.get();
        let section = self.section_until(|section| now < section.until);
        Tick::new(section.own_at(now))
    }

    /// Converts a time of the own clock to the earliest matching one of the simulation.
    pub(super) fn to_world(&self, own: Tick) -> Tick {
        let own = own.get();
        let section = self.section_until(|section| own <= section.own_at(section.until));
        Tick::new(section.world_at(own))
    }

    /// Marks the time up to `now` as passed.
    pub(super) fn pass(&mut self, now: Tick) {
        let now = now.get();
        if now >= self.section.until {
            self.section = self.section_until(|section| now < section.until);
        }
    }

    /// Returns the first section with a property, which the last one has.
    #[inline]
    fn section_until(&self, is_it: impl Fn(&Section) -> bool) -> Section {
        let mut section = self.section;
        while !is_it(&section) && section.until < u64::MAX {
            section = self.after(&section);
        }
        section
    }

    fn after(&self, section: &Section) -> Section {
        let from = section.until;
        let (mut step, mut level) = section.wander;
        if let Some(wander) = self.noise.wander {
            let now = self.absolute(from) / wander.every.get();
            while step < now {
                step += 1;
                level = self.next_level(wander, step, level);
            }
        }
        self.section_at(from, section.own_at(from), (step, level))
    }

    /// Creates the section that begins at `from`.
    fn section_at(&self, from: u64, own_from: u64, wander: (u64, f64)) -> Section {
        let now = self.absolute(from);
        let mut log = self.run_level + wander.1;
        let mut until = u64::MAX;
        if let Some(wander) = self.noise.wander {
            until = until.min(next_multiple(now, wander.every.get()));
        }
        if self.noise.drift_per_hour.abs() > 0.0 {
            // Once a second, by 1/3600 of the hour's drift.
            log += libm::log1p(self.noise.drift_per_hour) * float(now / SECOND) / 3600.0;
            until = until.min(next_multiple(now, SECOND));
        }
        let mut slowness = libm::exp(log.clamp(-LOG_MAX, LOG_MAX));
        if let Some(neighbour) = self.noise.neighbour {
            let (times, change) = self.neighbour_at(neighbour, now);
            slowness *= times;
            until = until.min(change);
        }
        Section {
            from,
            own_from,
            until: match until {
                u64::MAX => until,
                until => until - self.start,
            },
            rate: rate_of(slowness),
            wander,
        }
    }

    /// Returns the factor of a neighbour at an absolute time, and the time at which it may change.
    fn neighbour_at(&self, neighbour: Neighbour, now: u64) -> (f64, u64) {
        let (every, length) = (neighbour.every.get(), neighbour.length.get());
        let period = now / every;
        let mut random = Taus258::new(stream_seed(stream_seed(self.noise.seed, NEIGHBOUR), period));
        let comes = (period * every).saturating_add(random.below(every - length + 1));
        let goes = comes.saturating_add(length);
        if now < comes {
            (1.0, comes)
        } else if now < goes {
            (neighbour.times, goes)
        } else {
            (1.0, next_multiple(now, every))
        }
    }

    /// Returns the step of the wander in which the run begins, and its level: that of a process
    /// which began so long before that its begin no longer matters.
    fn first_level(&self, wander: Wander) -> (u64, f64) {
        let step = self.start / wander.every.get();
        let steps = match wander.correlation > 0.0 {
            true => libm::ceil(libm::log(FORGOTTEN) / libm::log(wander.correlation)),
            false => 0.0,
        };
        // Steps before the experiment count, too, in wrapping numbers.
        let first = step.wrapping_sub(whole(steps));
        let mut level = 0.0;
        let mut at = first;
        loop {
            level = self.next_level(wander, at, level);
            if at == step {
                return (step, level);
            }
            at = at.wrapping_add(1);
        }
    }

    fn next_level(&self, wander: Wander, step: u64, level: f64) -> f64 {
        let kept = wander.correlation;
        let new = wander.deviation * libm::sqrt(1.0 - kept * kept);
        kept * level + new * draw(stream_seed(self.noise.seed, WANDER), step)
    }

    const fn absolute(&self, now: u64) -> u64 {
        self.start.saturating_add(now)
    }
}

impl Section {
    /// Returns the own time at a time of the simulation in this section.
    #[inline]
    fn own_at(&self, now: u64) -> u64 {
        let passed = u128::from(now.saturating_sub(self.from)) * u128::from(self.rate);
        self.own_from.saturating_add(narrow(passed >> 32))
    }

    /// Returns the earliest time of the simulation with this own time, or a later one.
    #[inline]
    fn world_at(&self, own: u64) -> u64 {
        let passed = u128::from(own.saturating_sub(self.own_from)) << 32;
        self.from
            .saturating_add(narrow(passed.div_ceil(u128::from(self.rate))))
    }
}

/// Draws a standard normal number: the same of a number in a stream.
fn draw(stream: u64, number: u64) -> f64 {
    standard_normal(&mut Taus258::new(stream_seed(stream, number)))
}

/// Returns the first multiple of `every` after `now`, or `u64::MAX`.
fn next_multiple(now: u64, every: u64) -> u64 {
    (now / every + 1).saturating_mul(every)
}

#[inline]
fn narrow(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "seconds")]
const fn float(number: u64) -> f64 {
    number as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "at most 14,000 steps"
)]
const fn whole(number: f64) -> u64 {
    number as u64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "2¹² to 2⁵²: slowness is between a thousandth and a million"
)]
fn rate_of(slowness: f64) -> u64 {
    libm::round(EVEN as f64 / slowness) as u64
}

/// Rate of a clock that runs as the simulation's.
const EVEN: u64 = 1 << 32;
const SECOND: u64 = 1_000_000_000;
/// Logarithm of a thousand: further than that no level goes.
const LOG_MAX: f64 = 6.907_755_278_982_137;
/// Weight of a step of the wander that is left out.
const FORGOTTEN: f64 = 1e-6;
/// Streams of the seed.
const RUNS: u64 = 0;
const WANDER: u64 = 1;
const NEIGHBOUR: u64 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_core::{Nanos, Xoshiro256};

    fn every(noise: &str) -> NoiseConfig {
        let wander = Wander {
            deviation: 0.3,
            every: Nanos::from_millis(10),
            correlation: 0.9,
        };
        let neighbour = Neighbour {
            every: Nanos::from_millis(70),
            length: Nanos::from_millis(20),
            times: 3.0,
        };
        NoiseConfig {
            between_runs: if noise.contains('r') { 0.1 } else { 0.0 },
            drift_per_hour: if noise.contains('d') { 0.5 } else { 0.0 },
            wander: noise.contains('w').then_some(wander),
            neighbour: noise.contains('n').then_some(neighbour),
            seed: 7,
        }
    }

    fn clock(noise: &str, start_ms: u64, run: u64) -> OwnClock {
        let start = Nanos::from_millis(start_ms);
        let place = TimeLine {
            start,
            run,
            experiment: 0,
        };
        OwnClock::new(every(noise), place)
    }

    /// Returns how slow the clock is for a while from `from_ms` on.
    fn slowness(clock: &OwnClock, from_ms: u64, ms: u64) -> f64 {
        let [from, until] = [from_ms, from_ms + ms].map(|ms| Tick::new(ms * 1_000_000));
        float(ms * 1_000_000) / float((clock.to_own(until) - clock.to_own(from)).get())
    }

    #[test]
    fn the_earliest_time_of_an_own_time_is_found() {
        let mut random = Xoshiro256::new(1);
        for noise in ["", "r", "d", "w", "n", "rdwn"] {
            let mut clock = clock(noise, 12_345, 3);
            for pass in 0..20 {
                for _ in 0..200 {
                    let own = Tick::new(clock.section.own_from + random.below(200_000_000));
                    let world = clock.to_world(own);
                    assert!(clock.to_own(world) >= own, "{noise} {own:?} {world:?}");
                    if world.get() > clock.section.from {
                        let before = Tick::new(world.get() - 1);
                        assert!(clock.to_own(before) < own, "{noise} {own:?} {world:?}");
                    }
                }
                clock.pass(Tick::new(pass * 13_000_000));
            }
        }
    }

    #[test]
    fn a_passed_time_changes_no_later_one() {
        let (whole, mut passing) = (clock("rdwn", 5_000, 1), clock("rdwn", 5_000, 1));
        for ms in 0..2_000 {
            let now = Tick::new(ms * 999_983);
            assert_eq!(whole.to_own(now), passing.to_own(now), "{ms}");
            passing.pass(now);
        }
    }

    #[test]
    fn wander_and_neighbour_go_on_from_run_to_run() {
        for noise in ["w", "n", "d", "wn"] {
            let (early, late) = (clock(noise, 0, 0), clock(noise, 3_000, 1));
            for ms in (0..1_000).step_by(10) {
                let [one, other] = [slowness(&early, 3_000 + ms, 10), slowness(&late, ms, 10)];
                assert!(
                    (one / other - 1.0).abs() < 1e-4,
                    "{noise} {ms}: {one} {other}"
                );
            }
        }
    }

    #[test]
    fn each_part_is_as_strong_as_it_is_written() {
        let levels: Vec<f64> = (0..1_000)
            .map(|run| slowness(&clock("r", 0, run), 0, 100).ln())
            .collect();
        let variance = levels.iter().map(|log| log * log).sum::<f64>() / 1_000.0;
        // Standard error: 4.5 % of the variance.
        assert!((variance / 0.01 - 1.0).abs() < 0.15, "{variance}");

        let hour = 3_600_000;
        let drift = slowness(&clock("d", 2 * hour, 0), 0, 500);
        assert!((drift / 1.5 / 1.5 - 1.0).abs() < 1e-6, "{drift}");

        let mut wander = clock("w", 0, 0);
        let logs = (0..20_000).map(|step| {
            // Otherwise each conversion would begin at the first section.
            wander.pass(Tick::new(step * 10_000_000));
            slowness(&wander, step * 10, 10).ln()
        });
        let logs: Vec<f64> = logs.collect();
        let covariance = |lag: usize| {
            let pairs = logs.iter().zip(&logs[lag..]);
            pairs.map(|(one, other)| one * other).sum::<f64>() / 20_000.0
        };
        // 20,000 steps are about 1,000 independent ones.
        assert!(
            (covariance(0) / 0.09 - 1.0).abs() < 0.2,
            "{}",
            covariance(0)
        );
        assert!((covariance(1) / covariance(0) - 0.9).abs() < 0.02);

        // 20 of 70 ms at a third of the speed.
        let neighbour = slowness(&clock("n", 0, 0), 0, 70_000);
        let want = 70.0 / (50.0 + 20.0 / 3.0);
        assert!((neighbour / want - 1.0).abs() < 1e-6, "{neighbour}");
    }

    #[test]
    fn experiments_draw_a_noise_of_their_own() {
        let of = |experiment| {
            let place = TimeLine {
                experiment,
                ..TimeLine::default()
            };
            OwnClock::new(every("rdwn"), place).to_own(Tick::new(500_000_000))
        };
        assert_eq!(of(0), clock("rdwn", 0, 0).to_own(Tick::new(500_000_000)));
        assert_eq!(of(4), of(4));
        assert_ne!(of(4), of(5));
    }

    #[test]
    fn clocks_are_the_same_on_every_host() {
        let clock = clock("rdwn", 3_600_000, 5);
        let own = [1, 10, 100, 1_000].map(|ms| clock.to_own(Tick::new(ms * 1_000_000)).get());
        assert_eq!(own, [390_720, 3_907_201, 37_220_220, 623_034_813]);
    }
}

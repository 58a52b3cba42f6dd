//! The method of comparing repeated runs, tested on runs that are plain numbers with known noise:
//! how often it claims a change that is not there, and how often it finds one that is.
//!
//! Each experiment is one cell with a baseline and a variant, run back to back in an order drawn
//! anew in each repeat, and three metrics that share most of their noise.

use fathom_core::Taus258;
use fathom_stats::{
    Improves, RatioInterval, SIGNIFICANT, Verdict, holm, signed_rank, smallest_effect,
    standard_normal,
};

/// Noise of the logarithms of runs, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Noise {
    /// Independent, normal.
    Independent,
    /// A level that rises by 10 % over 80 runs, besides.
    Drift,
    /// A level that keeps 0.9 of its deviation from run to run.
    Wander,
    /// Visits of several runs, about one run in ten, that make them 20 % slower.
    Neighbour,
    /// Mostly near the best, with a long tail.
    Skewed,
}

const NOISES: [Noise; 5] = [
    Noise::Independent,
    Noise::Drift,
    Noise::Wander,
    Noise::Neighbour,
    Noise::Skewed,
];

/// Machine that gives one run after the other.
struct Machine {
    noise: Noise,
    random: Taus258,
    runs: u32,
    level: f64,
    busy: bool,
}

impl Machine {
    fn new(noise: Noise, seed: u64) -> Self {
        Self {
            noise,
            random: Taus258::new(seed),
            runs: 0,
            level: 0.0,
            busy: false,
        }
    }

    /// Returns the logarithms of the metrics of the next run, without any effect.
    fn run(&mut self) -> [f64; METRICS] {
        self.runs += 1;
        let random = &mut self.random;
        let mut normal = |deviation: f64| deviation * standard_normal(random);
        let log = match self.noise {
            Noise::Independent => normal(BETWEEN_RUNS),
            Noise::Drift => normal(BETWEEN_RUNS) + f64::from(self.runs) * 0.1 / 80.0,
            Noise::Wander => {
                let new = (1.0 - 0.9_f64 * 0.9).sqrt();
                self.level = 0.9 * self.level + normal(BETWEEN_RUNS * new);
                self.level
            }
            Noise::Neighbour => {
                let leaves = if self.busy { 0.3 } else { 0.03 };
                let quiet = normal(BETWEEN_RUNS / 2.0);
                self.busy ^= self.random.unit() < leaves;
                quiet + if self.busy { -0.2 } else { 0.0 }
            }
            Noise::Skewed => BETWEEN_RUNS * (1.0 - self.random.unit()).ln(),
        };
        let random = &mut self.random;
        std::array::from_fn(|_| log + BETWEEN_RUNS / 4.0 * standard_normal(random))
    }

    /// Runs a repeat; returns the ratios of the variant to the baseline.
    fn repeat(&mut self, effect: f64) -> [(f64, f64); METRICS] {
        let is_variant_first = self.random.unit() < 0.5;
        let (first, second) = (self.run(), self.run());
        let (variant, baseline) = match is_variant_first {
            true => (first, second),
            false => (second, first),
        };
        std::array::from_fn(|metric| ((variant[metric] + effect).exp(), baseline[metric].exp()))
    }
}

/// Result of an experiment.
struct Outcome {
    verdicts: Vec<Verdict>,
    first: RatioInterval,
}

/// Runs an experiment of 12 to 40 repeats that stops when all metrics are narrow.
fn experiment(machine: &mut Machine, effect: f64) -> Outcome {
    let mut pairs = vec![Vec::new(); METRICS];
    for repeats in 1..=REPEATS_MAX {
        for (pairs, pair) in pairs.iter_mut().zip(machine.repeat(effect)) {
            pairs.push(pair);
        }
        let may_stop = repeats >= REPEATS_MIN && (repeats - REPEATS_MIN).is_multiple_of(2);
        let is_narrow = |pairs: &Vec<_>| {
            RatioInterval::of_pairs(pairs).is_some_and(|ratio| ratio.is_narrow(TOLERANCE))
        };
        if may_stop && pairs.iter().all(is_narrow) {
            break;
        }
    }
    let ratios: Vec<RatioInterval> = pairs
        .iter()
        .map(|pairs| RatioInterval::of_pairs(pairs).expect("12 pairs or more"))
        .collect();
    let p_values: Vec<f64> = pairs.iter().map(|pairs| p_value(pairs)).collect();
    let verdicts = ratios.iter().zip(holm(&p_values));
    Outcome {
        verdicts: verdicts
            .map(|(ratio, p)| Verdict::of(ratio, p, TOLERANCE, Improves::Upwards))
            .collect(),
        first: ratios[0],
    }
}

fn p_value(pairs: &[(f64, f64)]) -> f64 {
    let logs: Vec<f64> = pairs
        .iter()
        .map(|(one, other)| (one / other).ln())
        .collect();
    signed_rank(&logs)
}

fn claims(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Worse | Verdict::Better)
}

#[test]
fn nothing_is_claimed_where_nothing_changed() {
    for noise in NOISES {
        let claimed = (0..200).filter(|&seed| {
            let outcome = experiment(&mut Machine::new(noise, seed), 0.0);
            outcome.verdicts.into_iter().any(claims)
        });
        let claimed = claimed.count();
        assert!(claimed <= 10, "{noise:?}: {claimed} of 200");
    }
}

#[test]
fn p_values_are_those_of_chance_whatever_the_noise() {
    for noise in NOISES {
        let below = (0..4_000).filter(|&seed| {
            let mut machine = Machine::new(noise, 1_000 + seed);
            let pairs: Vec<(f64, f64)> = (0..12).map(|_| machine.repeat(0.0)[0]).collect();
            p_value(&pairs) <= SIGNIFICANT
        });
        // 12 differences have p ≤ 0.05 in 4.25 %; standard error 0.32 %.
        let percent = share(below.count(), 4_000) * 100.0;
        assert!((2.5..=6.0).contains(&percent), "{noise:?}: {percent} %");
    }
}

#[test]
fn one_after_the_other_raises_false_alarms() {
    // The design that the lab replaces: all runs of one, then all of the other.
    for noise in [Noise::Drift, Noise::Wander, Noise::Neighbour] {
        let below = (0..1_000).filter(|&seed| {
            let mut machine = Machine::new(noise, seed);
            let mut runs = || (0..12).map(|_| machine.run()[0]).collect::<Vec<f64>>();
            let (one, other) = (runs(), runs());
            fathom_stats::rank_sum(&one, &other) <= SIGNIFICANT
        });
        let percent = share(below.count(), 1_000) * 100.0;
        assert!(percent > 10.0, "{noise:?}: {percent} %");
    }
}

#[test]
fn a_change_of_three_percent_is_found_and_held() {
    let effect = 0.97_f64.ln();
    let outcomes: Vec<Outcome> = (0..1_000)
        .map(|seed| experiment(&mut Machine::new(Noise::Drift, 7_000 + seed), effect))
        .collect();
    let found = outcomes[..100]
        .iter()
        .filter(|outcome| outcome.verdicts[0] == Verdict::Worse);
    let found = found.count();
    assert!(found >= 90, "{found} of 100");
    let held = outcomes
        .iter()
        .filter(|outcome| (outcome.first.low..=outcome.first.high).contains(&0.97));
    let held = held.count();
    assert!(held >= 920, "{held} of 1000");
}

#[test]
fn effects_are_found_as_often_as_planned() {
    // The deviation of a run's first metric.
    let deviation = BETWEEN_RUNS * (1.0 + 1.0 / 16.0_f64).sqrt();
    for repeats in [8, 12, 20] {
        let effect = smallest_effect(repeats, 1).expect("enough repeats") * deviation;
        let found = (0..2_000).filter(|&seed| {
            let mut machine = Machine::new(Noise::Independent, seed);
            let pairs: Vec<_> = (0..repeats).map(|_| machine.repeat(effect)[0]).collect();
            p_value(&pairs) <= SIGNIFICANT
        });
        let found = share(found.count(), 2_000);
        // Standard error 0.007, and 2 % of the effect are as much.
        assert!((0.87..0.93).contains(&found), "{repeats}: {found}");
    }
}

#[expect(clippy::cast_precision_loss, reason = "thousands")]
fn share(count: usize, of: u32) -> f64 {
    count as f64 / f64::from(of)
}

const METRICS: usize = 3;
/// Standard deviation of a run's logarithm.
const BETWEEN_RUNS: f64 = 0.02;
const TOLERANCE: f64 = 0.02;
const REPEATS_MIN: usize = 12;
const REPEATS_MAX: usize = 40;

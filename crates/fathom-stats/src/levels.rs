//! Levels of variation, after Kalibera and Jones ("Rigorous benchmarking in reasonable time",
//! 2013): within runs and between them, and which of longer runs and more repeats buys more.
//!
//! The value of a run deviates for two reasons. What varies *within* a run averages out as it gets
//! longer; what varies *between* runs (placement of memory, state of the device, time of day) does
//! not, and only more runs help. Each run costs the time that it measures and the time around it,
//! so neither many short runs nor few long ones are best.

/// Variances of a metric's relative value (of its logarithm) at both levels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Levels {
    /// Variance of a run's value that its length would average out, at its present length.
    pub within: f64,
    /// Variance between runs that no length averages out.
    pub between: f64,
}

/// Runs whose values have one mean.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LevelGroup {
    /// Logarithms of their values.
    pub logs: Vec<f64>,
    /// Standard errors of the values within each run, relative to the value.
    pub errors: Vec<f64>,
}

/// Time of one run, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunCost {
    /// Time in which it measures.
    pub measured: f64,
    /// Time around it: start, ramp, warm-up, pause, laying files out.
    pub overhead: f64,
}

/// Run length that buys the narrowest interval for the time of an experiment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BestLength {
    /// Best measured time of a run over the present one.
    pub factor: f64,
    /// Time of the experiment with it over the present one, for an interval of the same width.
    pub time: f64,
}

/// Advice on where to spend time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelAdvice {
    /// Fewer, longer runs give the same interval in clearly less time.
    LongerRuns,
    /// More, shorter runs do.
    MoreRepeats,
    /// Neither saves a tenth of the time.
    Balanced,
}

impl Levels {
    /// Separates the levels of runs of equal length, in groups that have means of their own: `logs`
    /// of a group are the logarithms of its runs' values, and `errors` their standard errors within
    /// each run, relative to the value. Groups are pooled before the levels are separated: what is
    /// below 0 by chance in one of them makes up for what is too large in another.
    ///
    /// `None` if no group has two runs, or if one has lists of unequal length.
    #[must_use]
    pub fn of(groups: &[LevelGroup]) -> Option<Self> {
        let (mut squares, mut freedom, mut errors, mut runs) = (0.0, 0, 0.0, 0);
        for group in groups.iter().filter(|group| group.logs.len() >= 2) {
            if group.logs.len() != group.errors.len() {
                return None;
            }
            let mean = group.logs.iter().sum::<f64>() / count(group.logs.len());
            squares += sum_of_squares(group.logs.iter().map(|log| log - mean));
            freedom += group.logs.len() - 1;
            errors += sum_of_squares(group.errors.iter().copied());
            runs += group.logs.len();
        }
        if freedom == 0 {
            return None;
        }
        let within = errors / count(runs);
        // What the runs vary more than their own errors explain; by chance it may be less.
        let between = (squares / count(freedom) - within).max(0.0);
        Some(Self { within, between })
    }

    /// Returns the best length of a run. It is between a hundredth and a hundred times the present
    /// one: beyond, the variances are not known to stay. `fewest` is the part of the present
    /// repeats below which the number may not fall, from 0 to 1: longer runs take fewer, and with
    /// too few nothing can be proved.
    #[must_use]
    pub fn best_length(&self, cost: RunCost, fewest: f64) -> BestLength {
        let wanted = self.within * cost.overhead / (self.between * cost.measured);
        let factor = match wanted.is_nan() {
            // Nothing varies, or nothing costs: no reason to change.
            true => 1.0,
            false => libm::sqrt(wanted).clamp(1.0 / FACTOR_MAX, FACTOR_MAX),
        };
        // The time has one minimum, so the bound is the best beyond it.
        let factor = factor.min(self.longest(fewest));
        // Runs needed times the time of a run.
        let time = |factor: f64| {
            (self.between + self.within / factor) * (cost.overhead + cost.measured * factor)
        };
        let (now, then) = (time(1.0), time(factor));
        BestLength {
            factor,
            time: if now > 0.0 { then / now } else { 1.0 },
        }
    }

    /// Returns the length at which this part of the repeats gives the same interval, over the
    /// present one; infinite if no length needs so few.
    fn longest(&self, fewest: f64) -> f64 {
        // Repeats are as the variance of one: (b + w ÷ factor) ÷ (b + w) = fewest.
        let left = fewest * (self.between + self.within) - self.between;
        match left > 0.0 {
            true => (self.within / left).max(1.0),
            false => f64::INFINITY,
        }
    }

    /// Returns what buys more: longer runs or more repeats. `fewest` is that of
    /// [`best_length`](Self::best_length).
    #[must_use]
    pub fn advice(&self, cost: RunCost, fewest: f64) -> LevelAdvice {
        let best = self.best_length(cost, fewest);
        if best.time > WORTH_IT {
            LevelAdvice::Balanced
        } else if best.factor > 1.0 {
            LevelAdvice::LongerRuns
        } else {
            LevelAdvice::MoreRepeats
        }
    }
}

fn sum_of_squares(values: impl Iterator<Item = f64>) -> f64 {
    values.map(|value| value * value).sum()
}

#[expect(clippy::cast_precision_loss, reason = "a number of runs")]
const fn count(runs: usize) -> f64 {
    runs as f64
}

/// Largest change of a run's length that is advised.
const FACTOR_MAX: f64 = 100.0;
/// Part of the present time below which a change is advised.
const WORTH_IT: f64 = 0.9;

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_AND_TWO: RunCost = RunCost {
        measured: 1.0,
        overhead: 2.0,
    };

    #[track_caller]
    fn close(got: f64, want: f64) {
        assert!((got - want).abs() < 1e-12, "{got}, not {want}");
    }

    fn group(logs: &[f64], errors: &[f64]) -> LevelGroup {
        LevelGroup {
            logs: logs.to_vec(),
            errors: errors.to_vec(),
        }
    }

    #[test]
    fn what_runs_vary_more_than_within_is_between_them() {
        // Variance 0.0004 of the logarithms, 0.0001 of it within.
        let logs = [-0.02, 0.0, 0.02];
        let of = |errors: &[f64]| Levels::of(&[group(&logs, errors)]);
        let levels = of(&[0.01; 3]).unwrap();
        close(levels.within, 0.0001);
        close(levels.between, 0.0003);
        // Less between runs than within them: nothing between them.
        close(of(&[0.03; 3]).unwrap().between, 0.0);
        assert_eq!(of(&[0.01; 2]), None);
        assert_eq!(Levels::of(&[group(&[0.0], &[0.0])]), None);
        assert_eq!(Levels::of(&[]), None);
    }

    #[test]
    fn groups_are_pooled_around_their_own_means() {
        // Variances of 0.0002 with one degree of freedom, and of 0.0008 with two.
        let near = group(&[-0.01, 0.01], &[0.01; 2]);
        let far = group(&[0.97, 1.0, 1.03], &[0.02; 3]);
        let levels = Levels::of(&[near.clone(), far, group(&[5.0], &[])]).unwrap();
        close(levels.within, (2.0 * 0.0001 + 3.0 * 0.0004) / 5.0);
        close(levels.between, (0.0002 + 0.0018) / 3.0 - 0.00028);
        // The excess of one group makes up for the lack of the other.
        let still = group(&[0.0, 0.0], &[0.01; 2]);
        let levels = Levels::of(&[near, still]).unwrap();
        close(levels.between, 0.0);
    }

    #[test]
    fn the_best_length_minimises_the_time() {
        let levels = Levels {
            within: 8.0,
            between: 1.0,
        };
        // √(8 ÷ 1 × 2 ÷ 1) = 4: (1 + 2) × (2 + 4) beside (1 + 8) × (2 + 1).
        let best = levels.best_length(SECOND_AND_TWO, 0.0);
        close(best.factor, 4.0);
        close(best.time, 18.0 / 27.0);
        assert_eq!(levels.advice(SECOND_AND_TWO, 0.0), LevelAdvice::LongerRuns);
        // Half of the repeats at least: 1 + 8 ÷ factor = 9 ÷ 2.
        let half = levels.best_length(SECOND_AND_TWO, 0.5);
        close(half.factor, 8.0 / 3.5);
        close(half.time, 4.5 * (2.0 + 8.0 / 3.5) / 27.0);
        close(levels.best_length(SECOND_AND_TWO, 1.0).factor, 1.0);
        let settled = Levels {
            within: 2.0,
            between: 1.0,
        };
        let cheap = RunCost {
            measured: 8.0,
            overhead: 1.0,
        };
        // √(2 × 1 ÷ 8) = 0.5: (1 + 4) × (1 + 4) beside (1 + 2) × (1 + 8).
        close(settled.best_length(cheap, 0.0).factor, 0.5);
        close(settled.best_length(cheap, 0.0).time, 25.0 / 27.0);
        assert_eq!(settled.advice(cheap, 0.0), LevelAdvice::Balanced);
        let wild = Levels {
            within: 0.1,
            between: 1.0,
        };
        assert_eq!(wild.advice(cheap, 0.0), LevelAdvice::MoreRepeats);
    }

    #[test]
    fn levels_without_variance_stay_within_bounds() {
        let steady = Levels {
            within: 1.0,
            between: 0.0,
        };
        close(steady.best_length(SECOND_AND_TWO, 0.0).factor, 100.0);
        let still = Levels {
            within: 0.0,
            between: 0.0,
        };
        close(still.best_length(SECOND_AND_TWO, 0.0).factor, 1.0);
        close(still.best_length(SECOND_AND_TWO, 0.0).time, 1.0);
        assert_eq!(still.advice(SECOND_AND_TWO, 0.0), LevelAdvice::Balanced);
    }
}

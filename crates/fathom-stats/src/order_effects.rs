//! Tests for effects of the order of runs: of the place within a repeat, and of the run before.
//!
//! A first run that finds cold caches, or a run after one that filled a write buffer, differs for a
//! reason that has nothing to do with its variant. The order is drawn, so such effects widen the
//! intervals without biasing the verdicts; they show that a pause, a warm-up or preconditioning is
//! missing.
//!
//! The test redraws the order: without an effect, the deviations of a repeat's runs that variant
//! and repeat leave unexplained are as likely in any other order.

use std::collections::BTreeMap;

use fathom_core::Taus258;

/// One run of a judged metric in the order of an experiment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OrderedRun {
    /// Number of its repeat of its cell: one number per cell and repeat.
    pub repeat: usize,
    /// Number of its cell and variant, of all: one number per both.
    pub treatment: usize,
    /// Place within the repeat, from 0 on.
    pub place: usize,
    /// Variant of the run directly before, in whatever cell; `None` of the first run.
    pub after: Option<usize>,
    /// Value, above 0: one without a logarithm makes every test end without a result.
    pub value: f64,
}

/// Effect of the order, over all cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OrderEffect {
    /// p value of the test by redrawing.
    pub p: f64,
    /// Place, or variant of the run before, that deviates most.
    pub group: usize,
    /// Its mean deviation as a ratio: 1.02 is 2 % more than the mean of all.
    pub ratio: f64,
}

/// Tests for an effect of the place within a repeat. `None` with fewer than two places, or so few
/// runs that nothing could be found.
#[must_use]
pub fn effect_of_place(runs: &[OrderedRun]) -> Option<OrderEffect> {
    effect(runs, |run| Some(run.place))
}

/// Tests for an effect of the variant of the run before. `None` as of [`effect_of_place`].
#[must_use]
pub fn effect_of_predecessor(runs: &[OrderedRun]) -> Option<OrderEffect> {
    effect(runs, |run| run.after)
}

fn effect(runs: &[OrderedRun], group_of: fn(&OrderedRun) -> Option<usize>) -> Option<OrderEffect> {
    let layout = Layout::of(runs, group_of)?;
    let mut deviations: Vec<f64> = runs.iter().map(|run| libm::log(run.value)).collect();
    if !deviations.iter().all(|log| log.is_finite()) {
        return None;
    }
    layout.centre(&mut deviations);
    let (found, group, mean) = layout.strength(&deviations);
    let mut random = Taus258::new(DRAWS_SEED);
    let mut as_strong = 0_u32;
    for _ in 0..DRAWS {
        let mut redrawn = deviations.clone();
        layout.shuffle(&mut redrawn, &mut random);
        layout.centre(&mut redrawn);
        // Rounding must not tell the found order apart when it is drawn again.
        as_strong += u32::from(layout.strength(&redrawn).0 >= found * (1.0 - ROUNDING));
    }
    Some(OrderEffect {
        p: f64::from(as_strong + 1) / f64::from(DRAWS + 1),
        group,
        ratio: libm::exp(mean),
    })
}

/// Indices of the runs that belong together.
struct Layout {
    repeats: Vec<Vec<usize>>,
    treatments: Vec<Vec<usize>>,
    groups: Vec<(usize, Vec<usize>)>,
}

impl Layout {
    fn of(runs: &[OrderedRun], group_of: fn(&OrderedRun) -> Option<usize>) -> Option<Self> {
        let (mut repeats, mut treatments) = (BTreeMap::new(), BTreeMap::new());
        let mut groups = BTreeMap::new();
        for (at, run) in runs.iter().enumerate() {
            let add = |map: &mut BTreeMap<usize, Vec<usize>>, key| {
                map.entry(key).or_default().push(at);
            };
            add(&mut repeats, run.repeat);
            add(&mut treatments, run.treatment);
            if let Some(group) = group_of(run) {
                add(&mut groups, group);
            }
        }
        let is_enough = groups.len() > 1 && repeats.len() >= REPEATS_MIN;
        is_enough.then(|| Self {
            repeats: repeats.into_values().collect(),
            treatments: treatments.into_values().collect(),
            groups: groups.into_iter().collect(),
        })
    }

    /// Subtracts the means of repeats and treatments.
    fn centre(&self, values: &mut [f64]) {
        // Once is exact if each repeat has all variants; a run that failed leaves a remainder,
        // which shrinks with every turn.
        for _ in 0..TURNS {
            for together in self.repeats.iter().chain(&self.treatments) {
                let mean = mean(together, values);
                together.iter().for_each(|&at| values[at] -= mean);
            }
        }
    }

    /// Exchanges the values within each repeat.
    fn shuffle(&self, values: &mut [f64], random: &mut Taus258) {
        for together in &self.repeats {
            for last in (1..together.len()).rev() {
                let other = index(random.below(last as u64 + 1));
                values.swap(together[last], together[other]);
            }
        }
    }

    /// Returns the sum of squares that the groups explain, and the group with the largest mean
    /// deviation, with that mean.
    fn strength(&self, values: &[f64]) -> (f64, usize, f64) {
        let (mut sum, mut largest) = (0.0, (0, 0.0_f64));
        for (group, members) in &self.groups {
            let mean = mean(members, values);
            sum += mean * mean * float(members.len());
            if mean.abs() > largest.1.abs() {
                largest = (*group, mean);
            }
        }
        (sum, largest.0, largest.1)
    }
}

fn mean(members: &[usize], values: &[f64]) -> f64 {
    members.iter().map(|&at| values[at]).sum::<f64>() / float(members.len())
}

#[expect(clippy::cast_precision_loss, reason = "a number of runs")]
const fn float(count: usize) -> f64 {
    count as f64
}

#[expect(clippy::cast_possible_truncation, reason = "an index of a repeat")]
const fn index(number: u64) -> usize {
    number as usize
}

/// Orders drawn: p values are multiples of 1 ÷ 1000.
const DRAWS: u32 = 999;
/// Fixed: the same results get the same p value on every host.
const DRAWS_SEED: u64 = 2;
/// Fewest repeats, of all cells together, in which an effect could be found.
const REPEATS_MIN: usize = 6;
/// Turns in which the means of incomplete repeats are subtracted.
const TURNS: u32 = 3;
/// Relative error of a sum of squares.
const ROUNDING: f64 = 1e-9;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::standard_normal;

    /// Runs in drawn order; `of_place` and `of_predecessor` are added to the logarithms.
    fn runs(
        seed: u64,
        (repeats, variants): (usize, usize),
        of_place: f64,
        of_predecessor: f64,
    ) -> Vec<OrderedRun> {
        let mut random = Taus258::new(seed);
        let (mut runs, mut after) = (Vec::new(), None);
        for repeat in 0..repeats {
            let mut order: Vec<usize> = (0..variants).collect();
            for last in (1..variants).rev() {
                order.swap(last, index(random.below(last as u64 + 1)));
            }
            // Variants and repeats differ: neither is an effect of the order.
            let level = 10.0 + float(repeat) * 0.05;
            for (place, variant) in order.into_iter().enumerate() {
                let noise = 0.02 * standard_normal(&mut random);
                let first = if place == 0 { of_place } else { 0.0 };
                let carried = if after == Some(0) {
                    of_predecessor
                } else {
                    0.0
                };
                runs.push(OrderedRun {
                    repeat,
                    treatment: variant,
                    place,
                    after,
                    value: (level + float(variant) * 0.3 + noise + first + carried).exp(),
                });
                after = Some(variant);
            }
        }
        runs
    }

    #[test]
    fn drawn_orders_raise_no_alarm() {
        let mut alarms = [0; 2];
        for seed in 0..200 {
            let runs = runs(seed, (12, 2 + index(seed % 2)), 0.0, 0.0);
            for (alarms, effect) in alarms
                .iter_mut()
                .zip([effect_of_place(&runs), effect_of_predecessor(&runs)])
            {
                *alarms += u32::from(effect.unwrap().p <= 0.05);
            }
        }
        // 10 expected, standard deviation 3.1.
        assert!(alarms.iter().all(|alarms| *alarms <= 20), "{alarms:?}");
    }

    #[test]
    fn a_slow_first_run_is_found() {
        let runs = runs(1, (20, 2), -0.04, 0.0);
        let place = effect_of_place(&runs).unwrap();
        assert!(place.p <= 0.01, "{place:?}");
        // Relative to the mean of both places: half of 4 %.
        assert!((place.ratio.ln().abs() - 0.02).abs() < 0.008, "{place:?}");
    }

    #[test]
    fn what_a_variant_leaves_behind_is_found() {
        let runs = runs(1, (20, 3), 0.0, -0.05);
        let before = effect_of_predecessor(&runs).unwrap();
        assert!(before.p <= 0.01 && before.group == 0, "{before:?}");
        assert!(before.ratio < 0.99, "{before:?}");
    }

    #[test]
    fn too_little_gives_no_answer() {
        assert_eq!(effect_of_place(&runs(1, (5, 2), 0.0, 0.0)), None);
        assert_eq!(effect_of_place(&runs(1, (20, 1), 0.0, 0.0)), None);
        assert_eq!(effect_of_place(&[]), None);
        // Runs that failed are missing.
        let mut runs = runs(1, (20, 3), -0.06, 0.0);
        runs.remove(7);
        runs.remove(30);
        assert!(effect_of_place(&runs).unwrap().p <= 0.01);
    }
}

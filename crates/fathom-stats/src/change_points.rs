//! Change points of a series: places from which on its values are others.
//!
//! ```text
//!      S(k) = Σ over i ≤ k of (rank of value i − mean rank)
//!
//! values  ▁▁▂▁▁▁▆▇▆▆▆       |S| is the largest at the last value before the change. As large by
//!   |S|   ▁▃▄▆▇█▆▅▃▂         chance? Permutations of the same values tell.
//! ```
//!
//! This is the test of A. N. Pettitt ("A non-parametric approach to the change-point problem",
//! Applied Statistics 28, 1979), with permutations in place of its approximation. A series with a
//! change is divided there, and each side is tested again. Ranks, not values: one outlier is one
//! rank, however far out it is.
//!
//! Successive values are taken as independent. A series that wanders (a disk that fills, a room
//! that warms) has change points wherever it does.

use fathom_core::Xoshiro256;

use crate::ranks::doubled_ranks;

/// Place in a series where the values change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePoint {
    /// Index of the first value after the change.
    pub at: usize,
    /// Share of permutations with a change as marked, or its limit for long series.
    pub p: f64,
}

/// Returns the change points of a series, in its order. The same series has the same ones.
///
/// The time is proportional to the length for a series without a change, some 20 permutations; each
/// level of division takes 999 permutations of the parts that have one, unless their change is
/// beyond doubt.
#[must_use]
pub fn change_points(values: &[f64]) -> Vec<ChangePoint> {
    let mut found = divided(values);
    found.sort_by_key(|point| point.at);
    refine(values, &mut found);
    found
}

/// Returns the change points where a series is divided, and its parts in turn.
fn divided(values: &[f64]) -> Vec<ChangePoint> {
    let mut found = Vec::new();
    let mut parts = vec![(0, values.len())];
    while let Some((from, to)) = parts.pop() {
        if let Some(ChangePoint { at, p }) = Walk::of(&values[from..to]).change() {
            let at = from + at;
            found.push(ChangePoint { at, p });
            parts.extend([(from, at), (at, to)]);
        }
    }
    found
}

/// Places each change point between its neighbours again: in a part with several changes, a
/// division may be far from each of them.
fn refine(values: &[f64], points: &mut [ChangePoint]) {
    for index in 0..points.len() {
        let from = index.checked_sub(1).map_or(0, |before| points[before].at);
        let to = points.get(index + 1).map_or(values.len(), |next| next.at);
        points[index].at = from + Walk::of(&values[from..to]).place();
    }
}

/// Ranks of a part, about their mean.
struct Walk {
    /// Twice the distance of each rank from the mean one: integers, with ties, too.
    steps: Vec<i32>,
}

impl Walk {
    fn of(values: &[f64]) -> Self {
        let middle = values.len() + 1;
        let ranks = doubled_ranks(values).into_iter();
        // Cannot overflow: a series has fewer than 2³⁰ values.
        let step = |rank: usize| rank.cast_signed() - middle.cast_signed();
        Self {
            steps: ranks
                .map(|rank| i32::try_from(step(rank)).unwrap_or(0))
                .collect(),
        }
    }

    /// Returns the change of this part, if it has one.
    fn change(mut self) -> Option<ChangePoint> {
        let observed = self.extreme();
        if observed == 0 {
            return None;
        }
        let at = self.place();
        if let Some(p) = self.limit(observed).filter(|p| *p < BEYOND_DOUBT) {
            return Some(ChangePoint { at, p });
        }
        // Its own generator: a part's result does not depend on the others.
        let mut random = Xoshiro256::new(SEED);
        let mut as_far = 0;
        for _ in 0..PERMUTATIONS {
            as_far += u32::from(self.reaches(observed, &mut random));
            if as_far > AS_FAR_MAX {
                return None;
            }
        }
        let p = f64::from(as_far + 1) / f64::from(PERMUTATIONS + 1);
        Some(ChangePoint { at, p })
    }

    /// Returns the largest distance of the walk from 0.
    fn extreme(&self) -> u64 {
        let distances = self.distances();
        distances.map(|(_, distance)| distance).max().unwrap_or(0)
    }

    /// Returns the index that divides the ranks best: whose rank sums of both sides differ by the
    /// largest multiple of their deviation, √(k (n − k)). The largest distance alone is drawn to
    /// the middle.
    #[expect(clippy::cast_precision_loss, reason = "rounded once, to the nearest")]
    fn place(&self) -> usize {
        let count = self.steps.len();
        let scaled = |at: usize, distance: u64| {
            let distance = distance as f64;
            distance * distance / (at * (count - at)) as f64
        };
        let (mut largest, mut place) = (0.0, 0);
        for (at, distance) in self.distances().take(count.saturating_sub(1)) {
            if scaled(at, distance) > largest {
                (largest, place) = (scaled(at, distance), at);
            }
        }
        place
    }

    /// Returns the distance of the walk from 0 after each step, with the number of steps.
    fn distances(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let walked = self.steps.iter().scan(0_i64, |sum, step| {
            *sum += i64::from(*step);
            Some(sum.unsigned_abs())
        });
        (1..).zip(walked)
    }

    /// Shuffles the steps and returns whether their walk gets as far as `distance`. The shuffle
    /// ends there: what it has not drawn stays as well mixed as it was.
    fn reaches(&mut self, distance: u64, random: &mut Xoshiro256) -> bool {
        let mut sum = 0_i64;
        for at in 0..self.steps.len() {
            let left = (self.steps.len() - at) as u64;
            let drawn = at + usize::try_from(random.below(left)).unwrap_or(0);
            self.steps.swap(at, drawn);
            sum += i64::from(self.steps[at]);
            if sum.unsigned_abs() >= distance {
                return true;
            }
        }
        false
    }

    /// Returns the probability of such a distance in a long series, whose walk becomes a Brownian
    /// bridge: Kolmogorov's 2 Σ (−1)^(j+1) exp(−2 j² x²), of which the first term is the bound.
    /// `None` for a short series.
    #[expect(clippy::cast_precision_loss, reason = "rounded once, to the nearest")]
    fn limit(&self, distance: u64) -> Option<f64> {
        if self.steps.len() < LONG {
            return None;
        }
        let squares = self.steps.iter().map(|step| {
            let step = f64::from(*step);
            step * step
        });
        let x_squared = (distance as f64) * (distance as f64) / squares.sum::<f64>();
        Some(2.0 * libm::exp(-2.0 * x_squared))
    }
}

/// Permutations of a test. With 999, p is a multiple of 0.001.
const PERMUTATIONS: u32 = 999;

/// Permutations that may get as far as the series: p ≤ 0.01.
const AS_FAR_MAX: u32 = 9;

/// Length from which on the limit is trusted with changes beyond doubt.
const LONG: usize = 200;

/// Probability below which no permutation would get as far.
const BEYOND_DOUBT: f64 = 1e-9;

/// Seed of the permutations.
const SEED: u64 = 0x6368_616e_6765_7331;

#[cfg(test)]
mod tests;

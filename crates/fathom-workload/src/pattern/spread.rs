//! Skewed distributions of blocks: Zipf, Pareto, normal.
//!
//! A distribution gives ranks, 0 the most popular (for `Normal`: the middle). Ranks are scattered
//! over the blocks by a fixed bijection, so that popular blocks are not neighbours, unless the
//! user sets the position of the most popular block: then rank r is r blocks after it, wrapping.
//!
//! The only floats of the hot path are here and in `power`: the same blocks on every host.

use fathom_core::Taus258;

use crate::config::Distribution;

use super::power::Power;
use super::{RandomStream, seed_of};

/// Generator of blocks of one file.
#[derive(Debug)]
pub(super) struct Spread {
    shape: Shape,
    random: Taus258,
}

impl Spread {
    pub(super) fn new(shape: Shape, seed: u64) -> Self {
        Self {
            shape,
            random: Taus258::new(seed_of(seed, RandomStream::Offset)),
        }
    }

    /// Draws the next block.
    #[inline(never)]
    pub(super) fn next(&mut self) -> u64 {
        let blocks = self.shape.blocks;
        let rank = match self.shape.law {
            Law::Zipf(zipf) => zipf.rank(self.random.unit(), blocks),
            Law::Pareto { power } => {
                let share = power.of(self.random.unit());
                floor(to_float(blocks) * share).min(blocks - 1)
            }
            Law::Normal { deviation } => normal(&mut self.random, deviation, blocks),
        };
        self.shape.place(rank)
    }
}

/// Distribution over a number of blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    law: Law,
    /// ≥ 1.
    blocks: u64,
    /// Block of rank 0.
    base: u64,
    /// Rank r lies r·`factor` blocks after rank 0, round the end; no divisor in common with
    /// `blocks`, so that no two ranks meet.
    factor: u64,
    /// ⌊(2⁶⁴ − 1) / `blocks`⌋, to divide by.
    inverse: u64,
}

impl Shape {
    fn new(distribution: Distribution, blocks: u64, seed: u64) -> Option<Self> {
        let blocks = blocks.max(1);
        // fio's documentation: the base is random for Zipf and Pareto, the middle for normal.
        let anywhere = seed_of(seed, RandomStream::Base) % blocks;
        let (law, center, base) = match distribution {
            Distribution::Uniform => return None,
            Distribution::Zipf { theta, center } => {
                (Law::Zipf(Zipf::new(theta, blocks)), center, anywhere)
            }
            Distribution::Pareto { h, center } => (
                Law::Pareto {
                    power: Power::new(libm::log(h) / libm::log(1.0 - h)),
                },
                center,
                anywhere,
            ),
            Distribution::Normal { deviation, center } => {
                let deviation = deviation / 100.0 * to_float(blocks);
                (Law::Normal { deviation }, center, blocks / 2)
            }
        };
        Some(match center {
            Some(center) => {
                let base = floor(center * to_float(blocks)) % blocks;
                Self {
                    law,
                    blocks,
                    base,
                    factor: 1,
                    inverse: u64::MAX / blocks,
                }
            }
            None => Self {
                law,
                blocks,
                base,
                factor: factor_of(blocks),
                inverse: u64::MAX / blocks,
            },
        })
    }

    /// Returns the block of a rank.
    #[inline]
    fn place(&self, rank: u64) -> u64 {
        if self.blocks > 1 << 32 {
            return self.place_among_many(rank);
        }
        // Cannot overflow: both are below 2³², as is the base.
        let sum = rank * self.factor + self.base;
        // The quotient or 1 less: sum · inverse / 2⁶⁴ is short of sum / blocks by less than 1.
        let quotient = (u128::from(sum) * u128::from(self.inverse)) >> 64;
        let rest = sum - u64::try_from(quotient).unwrap_or(0) * self.blocks;
        if rest < self.blocks {
            rest
        } else {
            rest - self.blocks
        }
    }

    #[cold]
    fn place_among_many(&self, rank: u64) -> u64 {
        let sum = u128::from(rank) * u128::from(self.factor) + u128::from(self.base);
        // Cannot fail: a remainder is below its divisor.
        u64::try_from(sum % u128::from(self.blocks)).unwrap_or(0)
    }
}

/// Shapes by number of blocks: a job's files are mostly of one size, and a Zipf takes thousands
/// of powers to prepare.
#[derive(Debug)]
pub(super) struct Shapes {
    distribution: Distribution,
    seed: u64,
    known: Option<Shape>,
}

impl Shapes {
    pub(super) const fn new(distribution: Distribution, seed: u64) -> Self {
        Self {
            distribution,
            seed,
            known: None,
        }
    }

    /// `None` for the uniform distribution.
    pub(super) fn of(&mut self, blocks: u64) -> Option<Shape> {
        if self.known.is_none_or(|shape| shape.blocks != blocks) {
            self.known = Shape::new(self.distribution, blocks, self.seed);
        }
        self.known
    }
}

#[derive(Clone, Copy, Debug)]
enum Law {
    Zipf(Zipf),
    /// The share of the blocks below x·n is x^(1/power).
    Pareto {
        power: Power,
    },
    /// Standard deviation in blocks.
    Normal {
        deviation: f64,
    },
}

/// Rank r (from 0) with a probability in proportion to (r + 1)^−theta, by the approximation of
/// Gray et al., "Quickly generating billion-record synthetic databases", 1994: exact for the first
/// two ranks, from a continuous law for the others.
#[derive(Clone, Copy, Debug)]
struct Zipf {
    /// The sum over all ranks.
    zeta: f64,
    /// Below this, `unit · zeta` means rank 1.
    second: f64,
    alpha: Power,
    eta: f64,
}

impl Zipf {
    fn new(theta: f64, blocks: u64) -> Self {
        let zeta = zeta(blocks, theta);
        let half = libm::pow(0.5, theta);
        let shrink = libm::pow(2.0 / to_float(blocks), 1.0 - theta);
        let alpha = Power::new(1.0 / (1.0 - theta));
        if !zeta.is_finite() {
            // Far below 0: the first two ranks have no share, and the continuous law is all.
            return Self {
                zeta: f64::INFINITY,
                second: 0.0,
                alpha,
                eta: 1.0,
            };
        }
        Self {
            zeta,
            second: 1.0 + half,
            alpha,
            // With two blocks or one, the first two ranks are all there is.
            eta: if blocks > 2 {
                (1.0 - shrink) / (1.0 - (1.0 + half) / zeta)
            } else {
                0.0
            },
        }
    }

    fn rank(&self, unit: f64, blocks: u64) -> u64 {
        let mass = unit * self.zeta;
        if mass < 1.0 {
            return 0;
        }
        if mass < self.second {
            return 1.min(blocks - 1);
        }
        let share = self.alpha.of(self.eta * unit - self.eta + 1.0);
        floor(to_float(blocks) * share).min(blocks - 1)
    }
}

/// Returns the sum of i^−theta for i in 1..=n: the first terms one by one, the rest by the formula
/// of Euler and Maclaurin, whose error is then below one part in 10¹².
fn zeta(n: u64, theta: f64) -> f64 {
    let power = |x: f64| libm::pow(x, -theta);
    let few = n.min(ZETA_TERMS);
    let head: f64 = (1..=few).map(|i| power(to_float(i))).sum();
    if few == n {
        return head;
    }
    let (from, to) = (to_float(few), to_float(n));
    let integral = (to * power(to) - from * power(from)) / (1.0 - theta);
    let ends = (power(to) - power(from)) / 2.0;
    let slopes = -theta * (power(to) / to - power(from) / from) / 12.0;
    head + integral + ends + slopes
}

/// A rank around 0, round the end: below the middle they count back from `blocks`. What would lie
/// half the blocks away or further is drawn again.
fn normal(random: &mut Taus258, deviation: f64, blocks: u64) -> u64 {
    let half = to_float(blocks) / 2.0;
    loop {
        // Box and Muller; 1 − unit is never 0, so its logarithm is finite.
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - random.unit()));
        let distance = radius * libm::cos(2.0 * std::f64::consts::PI * random.unit()) * deviation;
        let blocks_away = floor(libm::floor(distance.abs() + 0.5));
        if distance.abs() >= half {
            continue;
        }
        return if distance < 0.0 && blocks_away > 0 {
            blocks - blocks_away
        } else {
            blocks_away
        };
    }
}

/// Returns the factor that scatters ranks: near the golden section of the blocks, so that
/// neighbouring ranks lie far apart, and prime to them.
fn factor_of(blocks: u64) -> u64 {
    let golden = (u128::from(blocks) * 0x9e37_79b9_7f4a_7c15) >> 64;
    let golden = u64::try_from(golden).unwrap_or(0).max(1);
    (golden..)
        .find(|&factor| divisor(factor, blocks) == 1)
        .unwrap_or(1)
}

/// Returns the greatest common divisor.
const fn divisor(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[expect(
    clippy::cast_precision_loss,
    reason = "popularity needs no more than 53 bits"
)]
const fn to_float(n: u64) -> f64 {
    n as f64
}

/// Rounds down, saturating to a u64.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates"
)]
const fn floor(x: f64) -> u64 {
    x as u64
}

/// Terms of a zeta that are summed one by one; after these, the first term that the Euler–Maclaurin
/// formula leaves out is below 10⁻¹⁰ for any theta up to 10.
const ZETA_TERMS: u64 = 1000;

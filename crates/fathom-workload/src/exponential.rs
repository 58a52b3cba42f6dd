//! Exponential gaps for Poisson arrivals.

use fathom_core::SplitMix64;

/// Draws exponentially distributed factors with mean 1.
#[derive(Debug)]
pub(crate) struct Exponential(SplitMix64);

impl Exponential {
    /// Creates a generator with its own stream for `seed`.
    pub(crate) const fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// Returns `mean` times an exponentially distributed factor: −ln(1 − u), u uniform in [0, 1).
    pub(crate) fn scale(&mut self, mean: u128) -> u128 {
        let uniform = (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64);
        #[expect(clippy::cast_possible_truncation, reason = "the cast saturates")]
        let scaled = (-libm::log(1.0 - uniform) * mean as f64) as u128;
        scaled
    }
}

//! Modelled series of a metric, for what looks for changes in them.

use fathom_core::Taus258;

/// Returns a normal value of mean 0 and deviation 1, from twelve uniform ones.
pub(crate) fn normal(random: &mut Taus258) -> f64 {
    (0..12).map(|_| random.unit()).sum::<f64>() - 6.0
}

/// Returns values about 100 with a deviation of 2 %, and from `at` on about `after`.
pub(crate) fn step(seed: u64, count: usize, at: usize, after: f64) -> Vec<f64> {
    let mut random = Taus258::new(seed);
    let level = |index| if index < at { 100.0 } else { after };
    (0..count)
        .map(|index| level(index) * (1.0 + 0.02 * normal(&mut random)))
        .collect()
}

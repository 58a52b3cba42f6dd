//! Latencies of all repeats together, from which percentiles over all ops are taken.

use std::collections::BTreeMap;

use fathom_stats::Latency;

/// Latencies by cell, variant and metric.
#[derive(Clone, Debug, Default)]
pub(crate) struct Merged {
    /// Number of the last repeats whose latencies are kept; `None`: all repeats are one sum, which
    /// takes the memory of one.
    window: Option<u32>,
    latencies: BTreeMap<Key, BTreeMap<u32, Latency>>,
}

/// Cell, variant and metric.
type Key = (usize, usize, usize);

impl Merged {
    /// Creates a sum of all repeats or, with a window, of its last ones.
    pub(crate) const fn new(window: Option<u32>) -> Self {
        Self {
            window,
            latencies: BTreeMap::new(),
        }
    }

    /// Adds the latencies of a run.
    pub(crate) fn add(&mut self, key: Key, repeat: u32, latency: &Latency) {
        let repeats = self.latencies.entry(key).or_default();
        let kept = self.window.map_or(0, |_| repeat);
        repeats.entry(kept).or_default().merge(latency);
        if let Some(window) = self.window {
            *repeats = repeats.split_off(&(repeat + 1).saturating_sub(window));
        }
    }

    /// Returns a percentile of all ops together.
    pub(crate) fn percentile(&self, key: Key, percent: f64) -> Option<f64> {
        let mut repeats = self.latencies.get(&key)?.values();
        let mut sum = repeats.next()?.clone();
        repeats.for_each(|latency| sum.merge(latency));
        sum.interpolated(percent)
    }
}

//! One kind of latency: its summary and, where asked for, its histogram.

use serde::{Deserialize, Serialize};

use crate::{Histogram, Summary};

/// One kind of latency.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Count, bounds, mean.
    pub summary: Summary,
    /// Distribution, where it is kept.
    pub histogram: Option<Histogram>,
}

impl Latency {
    /// Nothing recorded yet; a histogram is 32 KiB, so keep one only where it will be shown.
    #[must_use]
    pub fn new(keep_histogram: bool) -> Self {
        Self {
            summary: Summary::new(),
            histogram: keep_histogram.then(Histogram::new),
        }
    }

    /// Takes one value in, ns.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.summary.record(ns);
        if let Some(histogram) = &mut self.histogram {
            histogram.record(ns);
        }
    }

    /// Takes one value in `times` times, ns.
    #[inline]
    pub fn record_n(&mut self, ns: u64, times: u64) {
        self.summary.record_n(ns, times);
        if let Some(histogram) = &mut self.histogram {
            histogram.record_n(ns, times);
        }
    }

    /// Takes each value in, ns.
    #[inline]
    pub fn record_all(&mut self, ns: &[u64]) {
        self.summary.record_all(ns);
        if let Some(histogram) = &mut self.histogram {
            histogram.record_all(ns);
        }
    }

    /// Takes each value in, ns: the same as [`record_all`](Self::record_all), in a fraction of the
    /// time.
    pub fn record_short(&mut self, ns: &[u32]) {
        self.summary.record_short(ns);
        if let Some(histogram) = &mut self.histogram {
            histogram.record_short(ns);
        }
    }

    /// Takes in all that `other` took in. Where only one side keeps a histogram the result has
    /// one that lacks the other's values.
    pub fn merge(&mut self, other: &Self) {
        self.summary.merge(&other.summary);
        match (&mut self.histogram, &other.histogram) {
            (Some(own), Some(add)) => own.merge(add),
            (None, Some(add)) => self.histogram = Some(add.clone()),
            (_, None) => {}
        }
    }

    /// Forgets everything; keeps the memory.
    pub fn clear(&mut self) {
        self.summary = Summary::new();
        if let Some(histogram) = &mut self.histogram {
            histogram.clear();
        }
    }
}

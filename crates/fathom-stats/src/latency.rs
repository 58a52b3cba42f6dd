//! One kind of latency: its summary and, if requested, its histogram.

use serde::{Deserialize, Serialize};

use crate::{Histogram, Summary};

/// Statistics of one kind of latency (slat, clat, lat…).
///
/// The summary is always kept: it is exact and takes less than 100 bytes. The histogram is
/// optional: it takes 32 KiB per direction and kind, which compete with the job's buffers for the
/// caches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Count, bounds, mean and deviation.
    pub summary: Summary,
    /// Distribution, if kept.
    pub histogram: Option<Histogram>,
}

impl Latency {
    /// Creates empty statistics. Request a histogram (32 KiB) only if it will be shown.
    #[must_use]
    pub fn new(keep_histogram: bool) -> Self {
        Self {
            summary: Summary::new(),
            histogram: keep_histogram.then(Histogram::new),
        }
    }

    /// Records one value, ns.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.summary.record(ns);
        if let Some(histogram) = &mut self.histogram {
            histogram.record(ns);
        }
    }

    /// Records one value `times` times, ns.
    #[inline]
    pub fn record_n(&mut self, ns: u64, times: u64) {
        self.summary.record_n(ns, times);
        if let Some(histogram) = &mut self.histogram {
            histogram.record_n(ns, times);
        }
    }

    /// Records each value, ns.
    #[inline]
    pub fn record_all(&mut self, ns: &[u64]) {
        self.summary.record_all(ns);
        if let Some(histogram) = &mut self.histogram {
            histogram.record_all(ns);
        }
    }

    /// Records each value, ns, as [`record_all`](Self::record_all) does, in a fraction of the time.
    pub fn record_u32(&mut self, ns: &[u32]) {
        self.summary.record_u32(ns);
        if let Some(histogram) = &mut self.histogram {
            histogram.record_u32(ns);
        }
    }

    /// Adds the values of `other`. If only one side has a histogram, the result has one that lacks
    /// the other side's values.
    pub fn merge(&mut self, other: &Self) {
        self.summary.merge(&other.summary);
        match (&mut self.histogram, &other.histogram) {
            (Some(own), Some(add)) => own.merge(add),
            (None, Some(add)) => self.histogram = Some(add.clone()),
            (_, None) => {}
        }
    }

    /// Removes all values; keeps the memory.
    pub fn clear(&mut self) {
        self.summary = Summary::new();
        if let Some(histogram) = &mut self.histogram {
            histogram.clear();
        }
    }
}

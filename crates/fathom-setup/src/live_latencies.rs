//! Latencies of a run in progress: those of a time are what was added since an earlier one.

use std::ops::Range;

use fathom_core::{Direction, PerDirection};
use fathom_stats::Histogram;
use fathom_workload::WindowLatency;

use crate::Snapshot;

/// Latencies that some jobs have recorded since they began to measure: resp under a schedule, else
/// clat, else lat. Values are within 1/16.
#[derive(Clone, Debug, Default)]
pub struct LatenciesSoFar {
    /// These jobs, by their places in the snapshot: one, a group, or all.
    pub jobs: Range<usize>,
    /// Kind of the latencies of a direction; `None` if there are none, or of several kinds.
    pub kinds: PerDirection<Option<WindowLatency>>,
    /// Latencies by direction; `None` if there are none.
    pub histograms: PerDirection<Option<Histogram>>,
}

/// Latencies of an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LivePercentiles {
    /// Median, within 1/16.
    pub p50_ns: u64,
    /// 99th percentile, within 1/16.
    pub p99_ns: u64,
}

/// Computes percentiles of the intervals between snapshots.
#[derive(Clone, Debug, Default)]
pub struct LatencyMeter {
    last: PerDirection<Histogram>,
}

impl LatencyMeter {
    /// Returns the percentiles of all jobs since the previous call, or since the start; `None` if
    /// there were no ops.
    pub fn sample(&mut self, snapshot: &Snapshot) -> PerDirection<Option<LivePercentiles>> {
        PerDirection::from_fn(|direction| {
            let now = all_latencies(&snapshot.latencies, direction);
            let new = latencies_since(&now, &self.last[direction]);
            self.last[direction] = now;
            (new.count() > 0).then(|| LivePercentiles {
                p50_ns: new.percentile(50.0),
                p99_ns: new.percentile(99.0),
            })
        })
    }
}

/// Returns the latencies of a direction of all jobs.
#[must_use]
pub fn all_latencies<'a>(
    each: impl IntoIterator<Item = &'a LatenciesSoFar>,
    direction: Direction,
) -> Histogram {
    let mut all = Histogram::new();
    for one in each {
        if let Some(histogram) = &one.histograms[direction] {
            all.merge(histogram);
        }
    }
    all
}

/// Returns the latencies that came after `before`. Fewer than then have been discarded meanwhile,
/// at the end of a ramp time: all are new.
#[must_use]
pub fn latencies_since(now: &Histogram, before: &Histogram) -> Histogram {
    let mut new = now.clone();
    if now.count() >= before.count() {
        new.subtract(before);
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(each: &[&[u64]]) -> Snapshot {
        let latencies = each.iter().enumerate().map(|(job, values)| {
            let mut one = LatenciesSoFar {
                jobs: job..job + 1,
                ..LatenciesSoFar::default()
            };
            let mut histogram = Histogram::new();
            histogram.record_all(values);
            one.histograms.read = Some(histogram);
            one
        });
        Snapshot {
            latencies: latencies.collect(),
            ..Snapshot::default()
        }
    }

    #[test]
    fn an_interval_has_what_came_since_the_last() {
        let mut meter = LatencyMeter::default();
        let mut p50 = |each: &[&[u64]]| meter.sample(&snapshot(each)).read.map(|read| read.p50_ns);
        assert_eq!(p50(&[&[], &[]]), None);
        assert_eq!(p50(&[&[10, 10], &[10]]), Some(10));
        assert_eq!(p50(&[&[10, 10, 90], &[10, 90]]), Some(90));
        assert_eq!(p50(&[&[10, 10, 90], &[10, 90]]), None);
        // The measurement restarted.
        assert_eq!(p50(&[&[20], &[20]]), Some(20));
    }
}

//! Percentiles of the interval between two status lines (`--eta-percentiles`).
//!
//! ```text
//!  job ──┐ new ops per bucket, with each update of progress
//!  job ──┼──► counts of the run ──► status line: what was added since the last one
//!  job ──┘
//! ```
//!
//! Percentiles of several jobs or intervals cannot be combined, but counts can. A job adds what its
//! histogram has more than at its last update, in buckets eight times as wide, within 1/16 of their
//! values. So an op costs nothing: the histogram is kept in any case.
//!
//! # What this costs
//! A pass over the histogram of each direction, some microseconds, ten times a second and per job.

use std::sync::atomic::{AtomicU64, Ordering};

use fathom_core::{Direction, PerDirection};
use fathom_setup::LivePercentiles;
use fathom_stats::Histogram;
use fathom_workload::Worker;

/// Ops per bucket of all jobs, from the start of the run.
#[derive(Debug)]
pub(crate) struct LiveLatencies(PerDirection<Box<[AtomicU64]>>);

/// Ops per bucket of one owner: those that a job has added, or that a status line has shown.
#[derive(Debug)]
pub(crate) struct SeenCounts(PerDirection<Box<[u64]>>);

impl LiveLatencies {
    /// Creates counts of no ops.
    pub(crate) fn new() -> Self {
        let zeros = || (0..BUCKETS).map(|_| AtomicU64::new(0)).collect();
        Self(PerDirection::from_fn(|_| zeros()))
    }

    /// Adds the ops that a job has recorded since the last call with `seen`.
    pub(crate) fn add(&self, worker: &mut Worker, seen: &mut SeenCounts) {
        for direction in Direction::ALL {
            let Some(histogram) = worker.latencies(direction) else {
                continue;
            };
            let mut counts = [0; BUCKETS];
            for (index, count) in histogram.buckets() {
                counts[index / MERGED] += count;
            }
            let both = counts.iter().zip(&mut seen.0[direction]);
            for ((count, seen), total) in both.zip(&self.0[direction]) {
                // Fewer than before if measuring has begun meanwhile: then all are new.
                let more = count.checked_sub(*seen).unwrap_or(*count);
                *seen = *count;
                if more > 0 {
                    // Relaxed: the counts guard no other memory, and a line may miss the latest.
                    total.fetch_add(more, Ordering::Relaxed);
                }
            }
        }
    }

    /// Returns the percentiles of the ops added since the last call with `seen`.
    pub(crate) fn take(&self, seen: &mut SeenCounts) -> PerDirection<Option<LivePercentiles>> {
        PerDirection::from_fn(|direction| {
            let mut interval = Histogram::new();
            let both = self.0[direction].iter().zip(&mut seen.0[direction]);
            for (bucket, (total, seen)) in both.enumerate() {
                let count = total.load(Ordering::Relaxed);
                let value = Histogram::midpoint(bucket * MERGED + MERGED / 2);
                interval.record_n(value, count - *seen);
                *seen = count;
            }
            (interval.count() > 0).then(|| LivePercentiles {
                p50_ns: interval.percentile(50.0),
                p99_ns: interval.percentile(99.0),
            })
        })
    }
}

impl SeenCounts {
    /// Creates counts of no ops.
    pub(crate) fn new() -> Self {
        Self(PerDirection::from_fn(|_| vec![0; BUCKETS].into()))
    }
}

/// Adjacent buckets of a histogram that are one here.
const MERGED: usize = 8;
const BUCKETS: usize = Histogram::BUCKETS / MERGED;

#[cfg(test)]
mod tests {
    use fathom_core::{Capabilities, Tick};
    use fathom_workload::{Mix, Worker, fixture};

    use super::*;

    #[test]
    fn a_line_shows_what_came_since_the_last() {
        let live = LiveLatencies::new();
        let mut seen = SeenCounts::new();
        let none = live.take(&mut seen);
        assert_eq!(none, PerDirection::default());
        let add = |ns: u64, ops: u64| {
            let bucket = Histogram::index_of(ns) / MERGED;
            live.0.read[bucket].fetch_add(ops, Ordering::Relaxed);
        };
        let near = |got: u64, want: u64| got.abs_diff(want) <= want / 16;
        for fast_ns in [80_000, 20_000] {
            add(fast_ns, 97);
            add(3_000_000, 3);
            let read = live.take(&mut seen).read.expect("ops were added");
            assert!(near(read.p50_ns, fast_ns), "{read:?}");
            assert!(near(read.p99_ns, 3_000_000), "{read:?}");
        }
        assert_eq!(live.take(&mut seen).read, None);
    }

    #[test]
    fn a_job_that_has_not_begun_adds_nothing() {
        let job = fixture::job(fixture::pattern(Mix::Read, false, 4096, 1 << 20));
        let engine = Capabilities {
            name: "none",
            synchronous: true,
            moves_data: false,
            queued_sync: false,
            queued_trim: false,
        };
        let mut worker = Worker::new(job, engine, Tick::ZERO).expect("a job");
        let (live, mut seen) = (LiveLatencies::new(), SeenCounts::new());
        live.add(&mut worker, &mut seen);
        assert_eq!(live.take(&mut SeenCounts::new()), PerDirection::default());
    }
}

//! Latencies of running jobs, for views of a run in progress (`--eta-percentiles`, `--live`).
//!
//! ```text
//!  job ──► counts of the job, or of its group: new ops, with each update of progress
//!                 └──► snapshot: what there is
//! ```
//!
//! Percentiles of several jobs or intervals cannot be combined, but counts can. A job adds what its
//! histogram has more than at its last update, in buckets eight times as wide, within 1/16 of their
//! values. So an op costs nothing: the histogram is kept in any case.
//!
//! # What this costs
//! A pass over the histogram of each direction, some microseconds, ten times a second and per job;
//! 11 KiB for each of at most [`CELLS_MAX`] counts.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use fathom_core::{Direction, PerDirection};
use fathom_setup::LatenciesSoFar;
use fathom_stats::Histogram;
use fathom_workload::{WindowLatency, Worker};

/// Latencies of all jobs: counts of each job, of each group, or of all, as memory allows.
#[derive(Debug)]
pub(crate) struct LiveLatencies {
    counts: Vec<(Range<usize>, SharedCounts)>,
}

/// Ops per bucket that some jobs have recorded since they began to measure.
#[derive(Debug)]
pub(crate) struct SharedCounts {
    ops: PerDirection<Box<[AtomicU64]>>,
    /// Kind of each direction's latencies: a place in [`KINDS`] from 1; 0: none yet.
    kinds: PerDirection<AtomicU8>,
}

/// Ops per bucket that a job has added.
#[derive(Debug)]
pub(crate) struct SeenCounts(PerDirection<Box<[u64]>>);

impl LiveLatencies {
    /// Creates counts of no ops for jobs of these groups, which ascend.
    pub(crate) fn new(groups: &[u32]) -> Self {
        let jobs: Vec<usize> = (0..groups.len()).collect();
        let each: Vec<&[usize]> = jobs.chunks(1).collect();
        let by_group = jobs.chunk_by(|one, next| groups[*one] == groups[*next]);
        let mut ranges = each;
        if ranges.len() > CELLS_MAX {
            ranges = by_group.collect();
        }
        if ranges.len() > CELLS_MAX {
            ranges = vec![&jobs];
        }
        let ranges = ranges.into_iter().filter_map(|jobs| {
            let (first, last) = (*jobs.first()?, *jobs.last()?);
            Some((first..last + 1, SharedCounts::new()))
        });
        Self {
            counts: ranges.collect(),
        }
    }

    /// Returns the counts to which a job adds.
    pub(crate) fn of_job(&self, job: usize) -> Option<&SharedCounts> {
        let mut counts = self.counts.iter();
        let found = counts.find(|(jobs, _)| jobs.contains(&job));
        found.map(|(_, counts)| counts)
    }

    /// Returns the latencies recorded so far.
    pub(crate) fn so_far(&self) -> Vec<LatenciesSoFar> {
        let each = self.counts.iter().map(|(jobs, counts)| LatenciesSoFar {
            jobs: jobs.clone(),
            kinds: PerDirection::from_fn(|direction| counts.kind(direction)),
            histograms: PerDirection::from_fn(|direction| counts.histogram(direction)),
        });
        each.collect()
    }
}

impl SharedCounts {
    fn new() -> Self {
        let zeros = || (0..BUCKETS).map(|_| AtomicU64::new(0)).collect();
        Self {
            ops: PerDirection::from_fn(|_| zeros()),
            kinds: PerDirection::default(),
        }
    }

    /// Adds the ops that a job has recorded since the last call with `seen`, and removes those that
    /// it has discarded since, because measuring began.
    pub(crate) fn add(&self, worker: &mut Worker, seen: &mut SeenCounts) {
        for direction in Direction::ALL {
            let Some((kind, histogram)) = worker.latencies(direction) else {
                continue;
            };
            self.note_kind(direction, kind);
            let mut counts = [0_u64; BUCKETS];
            for (index, count) in histogram.buckets() {
                counts[index / MERGED] += count;
            }
            let both = counts.iter().zip(&mut seen.0[direction]);
            for ((count, seen), total) in both.zip(&self.ops[direction]) {
                // Modulo 2⁶⁴, the difference is right even if it is negative.
                let more = count.wrapping_sub(*seen);
                *seen = *count;
                if more != 0 {
                    // Relaxed: the counts guard no other memory, and a view may miss the latest.
                    total.fetch_add(more, Ordering::Relaxed);
                }
            }
        }
    }

    /// Notes the kind of latencies of a job; several kinds leave none.
    fn note_kind(&self, direction: Direction, kind: WindowLatency) {
        let own = (1..).zip(KINDS).find(|(_, known)| *known == kind);
        let own = own.map_or(MIXED, |(code, _)| code);
        let cell = &self.kinds[direction];
        // Relaxed: as below; jobs that store at once store the same, or the next call corrects it.
        let noted = cell.load(Ordering::Relaxed);
        if noted != own && noted != MIXED {
            cell.store(if noted == 0 { own } else { MIXED }, Ordering::Relaxed);
        }
    }

    fn kind(&self, direction: Direction) -> Option<WindowLatency> {
        let code = self.kinds[direction].load(Ordering::Relaxed);
        KINDS.get(usize::from(code).checked_sub(1)?).copied()
    }

    /// Returns the counts of a direction; `None` if all are zero.
    fn histogram(&self, direction: Direction) -> Option<Histogram> {
        let mut histogram = None;
        for (bucket, total) in self.ops[direction].iter().enumerate() {
            // Relaxed: as in `add`.
            let count = total.load(Ordering::Relaxed);
            if count > 0 {
                let value = Histogram::midpoint(bucket * MERGED + MERGED / 2);
                let histogram = histogram.get_or_insert_with(Histogram::new);
                histogram.record_n(value, count);
            }
        }
        histogram
    }
}

impl SeenCounts {
    /// Creates counts of no ops.
    pub(crate) fn new() -> Self {
        Self(PerDirection::from_fn(|_| vec![0; BUCKETS].into()))
    }
}

const KINDS: [WindowLatency; 3] = [WindowLatency::Resp, WindowLatency::Clat, WindowLatency::Lat];
/// Code of several kinds.
const MIXED: u8 = u8::MAX;
/// Adjacent buckets of a histogram that are one here.
const MERGED: usize = 8;
const BUCKETS: usize = Histogram::BUCKETS / MERGED;
/// Jobs, or groups, with counts of their own: more than a view has lines, and 1 MiB in all.
const CELLS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use fathom_core::{Capabilities, Queueing, Tick};
    use fathom_workload::{Mix, Worker, fixture};

    use super::*;

    #[test]
    fn counts_are_of_jobs_then_of_groups_then_of_all() {
        let check = |groups: &[u32], want: usize, of_last: Range<usize>| {
            let live = LiveLatencies::new(groups);
            assert_eq!(live.counts.len(), want);
            let last = live.of_job(groups.len() - 1).expect("a job's counts");
            last.ops.read[0].fetch_add(3, Ordering::Relaxed);
            let so_far = live.so_far();
            let counted = |one: &LatenciesSoFar| {
                let read = one.histograms.read.as_ref();
                read.map_or(0, Histogram::count)
            };
            assert_eq!(so_far.iter().map(counted).sum::<u64>(), 3);
            let last = so_far.last().expect("counts");
            assert_eq!((last.jobs.clone(), counted(last)), (of_last, 3));
        };
        check(&[0, 0, 1], 3, 2..3);
        let two: Vec<u32> = (0..100).map(|job| job / 60).collect();
        check(&two, 2, 60..100);
        let many: Vec<u32> = (0..100).collect();
        check(&many, 1, 0..100);
    }

    #[test]
    fn values_are_within_a_sixteenth() {
        let counts = SharedCounts::new();
        for ns in [80_000_u64, 3_000_000] {
            counts.ops.read[Histogram::index_of(ns) / MERGED].fetch_add(1, Ordering::Relaxed);
        }
        let read = counts.histogram(Direction::Read).expect("reads");
        for (percent, want) in [(50.0, 80_000_u64), (100.0, 3_000_000)] {
            let got = read.percentile(percent);
            assert!(got.abs_diff(want) <= want / 16, "{got}");
        }
    }

    #[test]
    fn latencies_of_several_kinds_have_none() {
        let counts = SharedCounts::new();
        assert_eq!(counts.kind(Direction::Read), None);
        for _ in 0..2 {
            counts.note_kind(Direction::Read, WindowLatency::Clat);
            assert_eq!(counts.kind(Direction::Read), Some(WindowLatency::Clat));
        }
        counts.note_kind(Direction::Read, WindowLatency::Resp);
        counts.note_kind(Direction::Read, WindowLatency::Resp);
        assert_eq!(counts.kind(Direction::Read), None);
    }

    #[test]
    fn a_job_that_has_not_begun_adds_nothing() {
        let job = fixture::job(fixture::pattern(Mix::Read, false, 4096, 1 << 20));
        let engine = Capabilities {
            name: "none",
            synchronous: true,
            moves_data: false,
            syncs: Queueing::Alone,
            trims: Queueing::Alone,
        };
        let mut worker = Worker::new(job, engine, Tick::ZERO).expect("a job");
        let (counts, mut seen) = (SharedCounts::new(), SeenCounts::new());
        counts.add(&mut worker, &mut seen);
        assert!(counts.histogram(Direction::Read).is_none());
        // What the job has discarded goes.
        counts.ops.read[5].fetch_add(7, Ordering::Relaxed);
        seen.0.read[5] = 7;
        counts.add(&mut worker, &mut seen);
        assert!(counts.histogram(Direction::Read).is_none());
    }
}

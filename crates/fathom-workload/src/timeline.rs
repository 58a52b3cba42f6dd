//! Timelines: the ops of a group of jobs by windows of time.
//!
//! ```text
//!            window            window            window
//! job 1  ├─────────────────┼─────────────────┼──────────
//! job 2         ├──────────┼─────────────────┼──────────   begins later
//!                          ▼                 ▼
//! group     ops, bytes and latencies since its last window, from each job
//! ```
//!
//! When a window ends, a job adds the difference between its histogram and a copy of it from the
//! end of the window before. The end of a window is a timer of the loop, looked at with the others.
//!
//! One timeline is shared by a group, behind a mutex that no running job waits for: one that finds
//! it taken goes on, and tries again in its next turns. Its window then takes a few ops more, which
//! the next one lacks; the sums stay exact. Two alternatives were rejected. A timeline per job
//! takes 7 MiB each, a GiB for 150 jobs. Counters that jobs add to atomically need no mutex, but
//! neighbouring windows merge while others add to them, so that ops would be lost or a lock be
//! needed after all; and memory of atomics cannot be had zeroed without touching all of it.
//!
//! The exception is a job that searches for a depth (`latency_target`): each time it has found one
//! it discards what it has measured, and what a timeline has taken cannot be taken back. So it
//! has windows of its own, which it forgets then, and adds to those of its group at the end.
//!
//! # What this costs
//! Nothing per op. Per job and window a pass over the buckets between its smallest and largest
//! latency, some µs; no allocation. Of memory, 7 MiB per group and direction, of which only the
//! buckets in use are touched, and 32 KiB per job and direction; 7 MiB more per direction of a job
//! with windows of its own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use fathom_core::{Direction, Nanos, PerDirection, Tick};
use fathom_stats::{Addition, Histogram, Latency, Timeline, Window, Windows};

use crate::config::WorkerConfig;
use crate::results::DirectionResults;

/// Timeline of the jobs of a group, one for each direction of their ops.
#[derive(Debug)]
pub struct GroupTimeline {
    /// Time at which the first job began to measure; `u64::MAX` before. Windows count from here.
    origin: AtomicU64,
    latencies: PerDirection<Option<WindowLatency>>,
    timelines: Mutex<PerDirection<Option<Timeline>>>,
}

/// Latency whose distribution a timeline keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowLatency {
    /// complete − due.
    Resp,
    /// complete − issue.
    Clat,
    /// complete − start.
    Lat,
}

impl WindowLatency {
    /// Returns the name, as in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Resp => "resp",
            Self::Clat => "clat",
            Self::Lat => "lat",
        }
    }

    /// Returns the latency of a job's results.
    const fn of(self, results: &mut DirectionResults) -> Option<&mut Latency> {
        match self {
            Self::Resp => results.resp.as_mut(),
            Self::Clat => Some(&mut results.clat),
            Self::Lat => Some(&mut results.lat),
        }
    }

    fn is_kept(self, job: &WorkerConfig, direction: Direction) -> bool {
        let measure = &job.measure;
        match self {
            Self::Resp => job.timed_directions()[direction],
            Self::Clat => measure.clat && measure.clat_histogram,
            Self::Lat => measure.lat && measure.lat_histogram,
        }
    }
}

impl GroupTimeline {
    /// Creates the timeline of jobs. Its latency is the one that says most of those that all of
    /// them keep: resp where all ops have due times, which a stall shows in full; else clat, else
    /// lat. Keeping several would multiply the memory, and the time at the end of a window.
    #[must_use]
    pub fn new(jobs: &[&WorkerConfig]) -> Self {
        let users = |direction: Direction| {
            let jobs = jobs.iter().copied();
            jobs.filter(move |job| job.recorded_directions()[direction])
        };
        let latencies = PerDirection::from_fn(|direction| {
            let kinds = [WindowLatency::Resp, WindowLatency::Clat, WindowLatency::Lat];
            let kept =
                |kind: &WindowLatency| users(direction).all(|job| kind.is_kept(job, direction));
            kinds.into_iter().find(kept)
        });
        let timelines = PerDirection::from_fn(|direction| {
            let is_used = users(direction).next().is_some();
            is_used.then(|| Timeline::new(latencies[direction].is_some()))
        });
        Self {
            origin: AtomicU64::new(u64::MAX),
            latencies,
            timelines: Mutex::new(timelines),
        }
    }

    /// Returns the time from which windows count; `None` if no job has begun to measure.
    #[must_use]
    pub fn began(&self) -> Option<Tick> {
        // Relaxed: the jobs have ended, or the reader takes what there is.
        let origin = self.origin.load(Ordering::Relaxed);
        (origin != u64::MAX).then_some(Tick::new(origin))
    }

    /// Returns the latency that the windows of a direction keep.
    #[must_use]
    pub fn latency(&self, direction: Direction) -> Option<WindowLatency> {
        self.latencies[direction]
    }

    /// Returns the windows of a direction until now; `None` if no job has such ops. Running jobs
    /// may have ops that are in none of them yet.
    #[must_use]
    pub fn windows(&self, direction: Direction) -> Option<Windows> {
        self.lock()[direction].as_ref().map(Timeline::windows)
    }

    /// Begins the timeline at `now`, unless a job has, and returns when it began.
    fn begin(&self, now: Tick) -> Tick {
        // Relaxed: the time alone is shared; a job that loses the race takes the winner's.
        let (relaxed, origin) = (Ordering::Relaxed, now.get());
        let earlier = self
            .origin
            .compare_exchange(u64::MAX, origin, relaxed, relaxed);
        Tick::new(earlier.err().unwrap_or(origin))
    }

    fn lock(&self) -> MutexGuard<'_, PerDirection<Option<Timeline>>> {
        self.timelines
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn try_lock(&self) -> Option<MutexGuard<'_, PerDirection<Option<Timeline>>>> {
        match self.timelines.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// Share of a job in the timeline of its group.
#[derive(Debug)]
pub(crate) struct TimelineShare {
    group: Arc<GroupTimeline>,
    /// Windows of a job that may discard them; the group gets those that are left at the end.
    own: Option<Box<PerDirection<Option<Timeline>>>>,
    /// Beginning of the group's timeline.
    origin: Tick,
    /// Time in the current window, ns since then.
    window_ns: u64,
    /// End of the current window.
    next: Tick,
    /// State of each direction when it was last added.
    told: PerDirection<Told>,
    /// The job measures.
    measures: bool,
}

/// State of a direction of the job when it was last added.
#[derive(Debug, Default)]
struct Told {
    ios: u64,
    bytes: u64,
    /// Bounds of the latencies, which the job's summary has forgotten.
    bounds: Option<(u64, u64)>,
    histogram: Option<Histogram>,
}

impl Told {
    fn clear(&mut self) {
        (self.ios, self.bytes, self.bounds) = (0, 0, None);
        self.histogram.iter_mut().for_each(Histogram::clear);
    }
}

impl TimelineShare {
    /// Creates the share of a job in the timeline of its group, if it has one.
    pub(crate) fn new(config: &WorkerConfig) -> Option<Box<Self>> {
        let group = Arc::clone(config.timeline.as_ref()?);
        let used = config.recorded_directions();
        let told = PerDirection::from_fn(|direction| {
            let keeps = used[direction] && group.latency(direction).is_some();
            Told {
                histogram: keeps.then(Histogram::new),
                ..Told::default()
            }
        });
        let target = config.limits.target;
        let own = target.filter(|target| !target.run).map(|_| {
            let own = |direction: Direction| {
                used[direction].then(|| Timeline::new(group.latency(direction).is_some()))
            };
            Box::new(PerDirection::from_fn(own))
        });
        Some(Box::new(Self {
            group,
            own,
            origin: Tick::ZERO,
            window_ns: 0,
            next: Tick::MAX,
            told,
            measures: false,
        }))
    }

    /// Begins the first window; the job's results start at zero. Later calls forget the windows so
    /// far: the job has discarded what it has measured.
    pub(crate) fn begin(&mut self, now: Tick) {
        self.origin = self.group.begin(now);
        self.move_to(now);
        if self.measures {
            self.forget();
        }
        self.measures = true;
    }

    #[cold]
    fn forget(&mut self) {
        for direction in Direction::ALL {
            self.told[direction].clear();
            let own = self.own.as_mut().and_then(|own| own[direction].as_mut());
            if let Some(own) = own {
                *own = Timeline::new(self.group.latency(direction).is_some());
            }
        }
    }

    /// Returns the end of the current window.
    pub(crate) const fn next(&self) -> Tick {
        self.next
    }

    /// Adds the results since the last window to the window that has ended.
    pub(crate) fn window_ended(&mut self, results: &mut PerDirection<DirectionResults>, now: Tick) {
        let times = (self.window_ns, (now - self.origin).get());
        if let Some(own) = &mut self.own {
            tell(&self.group, own, &mut self.told, results, times);
        } else if let Some(mut timelines) = self.group.try_lock() {
            tell(&self.group, &mut timelines, &mut self.told, results, times);
        } else {
            self.next = now + RETRY;
            return;
        }
        self.move_to(now);
    }

    /// Adds what the group does not have yet. The job has ended, so waiting costs it nothing.
    pub(crate) fn finish(&mut self, results: &mut PerDirection<DirectionResults>, now: Tick) {
        if !self.measures {
            // Of a job that ends in its ramp time, the ops count, and no latencies.
            if results.iter().all(|(_, results)| results.ios == 0) {
                return;
            }
            self.begin(now);
        }
        let times = (self.window_ns, (now - self.origin).get());
        let mut timelines = self.group.lock();
        if let Some(mut own) = self.own.take() {
            tell(&self.group, &mut own, &mut self.told, results, times);
            for direction in Direction::ALL {
                if let (Some(all), Some(own)) = (&mut timelines[direction], &own[direction]) {
                    add_windows(all, &own.windows());
                }
            }
        } else {
            tell(&self.group, &mut timelines, &mut self.told, results, times);
        }
        drop(timelines);
        self.next = Tick::MAX;
    }

    /// Puts the bounds of earlier windows back into copied results.
    pub(crate) fn widen(&self, results: &mut PerDirection<DirectionResults>) {
        for direction in Direction::ALL {
            let kind = self.group.latency(direction);
            let latency = kind.and_then(|kind| kind.of(&mut results[direction]));
            if let (Some(latency), Some(bounds)) = (latency, self.told[direction].bounds) {
                latency.summary.widen(bounds);
            }
        }
    }

    fn move_to(&mut self, now: Tick) {
        self.window_ns = (now - self.origin).get();
        let (_, end) = Timeline::window_at(self.window_ns);
        self.next = self.origin + Nanos::new(end);
    }
}

/// Adds the results of each direction since the last call to the window in which `at_ns` lies.
fn tell(
    group: &GroupTimeline,
    timelines: &mut PerDirection<Option<Timeline>>,
    told: &mut PerDirection<Told>,
    results: &mut PerDirection<DirectionResults>,
    (at_ns, end_ns): (u64, u64),
) {
    for direction in Direction::ALL {
        let (told, results) = (&mut told[direction], &mut results[direction]);
        let Some(timeline) = &mut timelines[direction] else {
            continue;
        };
        let (ios, bytes) = (results.ios, results.bytes);
        let kind = group.latency(direction);
        let latency = kind.and_then(|kind| kind.of(results));
        let (mut bounds, mut histograms) = (None, None);
        if let Some(Latency {
            summary,
            histogram: Some(now),
        }) = latency
        {
            bounds = summary.take_bounds();
            histograms = told.histogram.as_mut().map(|before| (&*now, before));
        }
        let added = Addition {
            ios: ios - told.ios,
            bytes: bytes - told.bytes,
            bounds,
            histograms,
        };
        timeline.add(at_ns, end_ns, added);
        (told.ios, told.bytes) = (ios, bytes);
        told.bounds = match (told.bounds, bounds) {
            (Some(all), Some(new)) => Some((all.0.min(new.0), all.1.max(new.1))),
            (all, new) => all.or(new),
        };
    }
}

/// Adds the windows of a timeline to another one that began at the same time.
fn add_windows(timeline: &mut Timeline, added: &Windows) {
    let add = |timeline: &mut Timeline, at_ns, window: &Window| {
        let mut latencies = Histogram::new();
        for &(bucket, count) in &window.bins {
            latencies.record_n(Histogram::midpoint(bucket), count);
        }
        let is_kept = !window.bins.is_empty();
        let addition = Addition {
            ios: window.ios,
            bytes: window.bytes,
            bounds: is_kept.then_some((window.min_ns, window.max_ns)),
            histograms: Some((&latencies, &mut Histogram::new())),
        };
        timeline.add(at_ns, added.end_ns, addition);
    };
    // The end counts even if there was no op.
    add(timeline, 0, &Window::default());
    for (number, window) in (0..).zip(&added.windows) {
        add(timeline, added.width_ns.saturating_mul(number), window);
    }
}

/// Time after which a job tries again to add a window: longer than another takes to add its own.
const RETRY: Nanos = Nanos::from_micros(50);

#[cfg(test)]
mod tests {
    use fathom_stats::SampleStats;

    use super::*;
    use crate::config::Mix;
    use crate::depth_search::LatencyTarget;
    use crate::fixture;

    /// Returns the results of a job without ops.
    fn results() -> PerDirection<DirectionResults> {
        PerDirection::from_fn(|_| DirectionResults {
            ios: 0,
            bytes: 0,
            short_ios: 0,
            runtime: Nanos::ZERO,
            slat: Latency::new(false),
            clat: Latency::new(true),
            lat: Latency::new(false),
            lag: None,
            resp: None,
            bandwidth: SampleStats::default(),
            iops: SampleStats::default(),
        })
    }

    fn read(results: &mut PerDirection<DirectionResults>, ns: u64) {
        results.read.ios += 1;
        results.read.bytes += 512;
        results.read.clat.record(ns);
    }

    fn timeline() -> (Arc<GroupTimeline>, WorkerConfig) {
        let mut config = fixture::job(fixture::pattern(Mix::Read, true, 512, 4096));
        let group = Arc::new(GroupTimeline::new(&[&config]));
        config.timeline = Some(Arc::clone(&group));
        (group, config)
    }

    const fn ms(ms: u64) -> Tick {
        Tick::new(ms * 1_000_000)
    }

    #[test]
    fn a_window_that_finds_the_timeline_taken_is_added_later() {
        let (group, config) = timeline();
        let mut share = TimelineShare::new(&config).expect("a timeline");
        let mut results = results();
        share.begin(ms(1000));
        assert_eq!(share.next(), ms(1100));
        read(&mut results, 70);
        let taken = group.lock();
        share.window_ended(&mut results, ms(1100));
        assert_eq!(share.next(), ms(1100) + RETRY);
        drop(taken);
        read(&mut results, 50);
        share.window_ended(&mut results, ms(1100) + RETRY);
        assert_eq!(share.next(), ms(1200));
        read(&mut results, 90);
        share.finish(&mut results, ms(1150));
        let windows = group.windows(Direction::Read).expect("reads");
        let each: Vec<_> = (windows.windows.iter())
            .map(|window| (window.ios, window.bytes, window.min_ns, window.max_ns))
            .collect();
        assert_eq!(each, [(2, 1024, 50, 70), (1, 512, 90, 90)]);
        assert_eq!(Some(windows.histogram()), results.read.clat.histogram);
        share.widen(&mut results);
        let clat = &results.read.clat.summary;
        assert_eq!((clat.min(), clat.max()), (50, 90));
        assert_eq!(group.windows(Direction::Write), None);
    }

    /// Returns the ops of each window of the group, and the bounds of all.
    fn windows(group: &GroupTimeline) -> (Vec<u64>, (u64, u64)) {
        let windows = group.windows(Direction::Read).expect("reads");
        let total = windows.total();
        assert_eq!(windows.histogram().count(), total.ios);
        let ios = windows.windows.iter().map(|window| window.ios).collect();
        (ios, (total.min_ns, total.max_ns))
    }

    /// Returns a job that searches for a depth, and its group.
    fn searching(run: bool) -> (Arc<GroupTimeline>, WorkerConfig) {
        let (group, mut config) = timeline();
        config.limits.target = Some(LatencyTarget {
            latency: Nanos::new(100),
            window: Nanos::from_millis(50),
            share: 99_000_000,
            run,
        });
        (group, config)
    }

    #[test]
    fn a_measurement_that_is_discarded_leaves_no_windows() {
        let (group, config) = searching(false);
        let mut share = TimelineShare::new(&config).expect("a timeline");
        for (at, ns) in [(1000, 30), (1250, 900), (1600, 70)] {
            let mut results = results();
            share.begin(ms(at));
            read(&mut results, ns);
            read(&mut results, ns);
            let ended = share.next();
            share.window_ended(&mut results, ended);
            read(&mut results, ns + 1);
            if at == 1600 {
                share.finish(&mut results, ended);
                share.widen(&mut results);
                let clat = &results.read.clat.summary;
                assert_eq!((clat.min(), clat.max()), (70, 71));
            }
        }
        assert_eq!(windows(&group), (vec![0, 0, 0, 0, 0, 0, 2, 1], (70, 71)));
    }

    #[test]
    fn a_search_that_goes_on_to_the_end_has_its_windows() {
        for run in [false, true] {
            let (group, config) = searching(run);
            let mut share = TimelineShare::new(&config).expect("a timeline");
            let mut results = results();
            share.begin(ms(1000));
            for ns in [30, 50, 40] {
                read(&mut results, ns);
                let ended = share.next();
                share.window_ended(&mut results, ended);
            }
            assert_eq!(
                group
                    .windows(Direction::Read)
                    .is_some_and(|w| w.windows.len() == 3),
                run
            );
            share.finish(&mut results, ms(1300));
            assert_eq!(windows(&group), (vec![1, 1, 1], (30, 50)));
            assert_eq!(
                group.windows(Direction::Read).expect("reads").end_ns,
                300_000_000
            );
        }
    }

    #[test]
    fn a_job_that_begins_just_before_the_first_one_is_in_its_first_window() {
        let (group, config) = timeline();
        let mut shares = [0; 2].map(|_| TimelineShare::new(&config).expect("a timeline"));
        shares[0].begin(ms(1000));
        shares[1].begin(ms(999));
        assert_eq!(shares[1].next(), ms(1100));
        let mut results = results();
        read(&mut results, 70);
        shares[1].finish(&mut results, ms(999));
        assert_eq!(group.began(), Some(ms(1000)));
        let windows = group.windows(Direction::Read).expect("reads");
        assert_eq!((windows.windows.len(), windows.total().ios), (1, 1));
    }
}

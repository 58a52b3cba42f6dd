//! Recorder of a job's results; it does not allocate while the job runs.

use fathom_core::{Completion, Direction, Errno, Nanos, PerDirection, Tick};
use fathom_stats::{Histogram, Latency, SampleStats};

use crate::config::Measure;
use crate::log::JobLog;
use crate::pending::{Added, KeptLatencies, Pending};
use crate::results::{DirectionResults, JobError, Results, ToleratedErrors};
use crate::sampler::Sampler;
use crate::slots::SlotState;
use crate::stalls::StallWatch;
use crate::timeline::{TimelineShare, WindowLatency};
use crate::uniform_ops::{UniformOp, UniformTally};
use crate::verify::Mismatches;

/// Recorder of a worker: histograms, samples, depth counts, errors, and the log.
///
/// The worker reports every submission, completion and sync to it, and the start of measuring; ops
/// before that count for the ramp only. [`results`](Self::results) may be called between turns.
///
/// An op costs one store per latency: latencies are pending in columns and recorded 128 at a time,
/// because the summaries and histograms are vectorised over a column. Recording each op at once is
/// kept for ops that do not fit a column (over four seconds, or from before measuring began).
#[derive(Debug)]
pub(crate) struct Recorder {
    measure: Measure,
    kept: KeptLatencies,
    directions: PerDirection<DirectionResults>,
    /// Latencies not yet added to `directions`.
    pending: PerDirection<Pending>,
    sync: Latency,
    syncs: u64,
    /// Ops issued at depth `n` less those issued at `n` − 1: running sums are ops at each depth.
    depth_changes: Vec<i64>,
    submit_sizes: [u64; 7],
    complete_sizes: [u64; 7],
    /// Zones that the job has reset, by writing full ones again and by trims.
    pub(crate) zone_resets: u64,
    error: Option<JobError>,
    tolerated: Option<ToleratedErrors>,
    started: Tick,
    ended: Tick,
    /// Ops in flight since before measuring began; failed ones are not subtracted.
    old: u32,
    /// Counts of the ramp time.
    ramp: PerDirection<(u64, u64)>,
    bandwidth: Sampler,
    iops: Sampler,
    pub(crate) stalls: StallWatch,
    /// Share in the timeline of the job's group, if it has one.
    pub(crate) timeline: Option<Box<TimelineShare>>,
    /// Log of the job's ops, if any.
    pub(crate) log: Option<Box<JobLog>>,
}

impl Recorder {
    /// Creates a recorder for a worker of `depth` slots. `used` are the directions the job may take
    /// (they get histograms), `rated` those with a rate; `asynchronous` engines have a slat.
    pub(crate) fn new(
        measure: Measure,
        depth: u32,
        used: PerDirection<bool>,
        rated: PerDirection<bool>,
        asynchronous: bool,
    ) -> Self {
        let directions = PerDirection::from_fn(|direction| {
            let used = used[direction];
            let rated = rated[direction] && used;
            DirectionResults {
                ios: 0,
                bytes: 0,
                short_ios: 0,
                runtime: Nanos::ZERO,
                slat: Latency::new(used && measure.slat_histogram && asynchronous),
                clat: Latency::new(used && measure.clat_histogram),
                lat: Latency::new(used && measure.lat_histogram),
                lag: rated.then(|| Latency::new(true)),
                resp: rated.then(|| Latency::new(true)),
                bandwidth: SampleStats::default(),
                iops: SampleStats::default(),
            }
        });
        let mut recorder = Self {
            measure,
            kept: KeptLatencies {
                slat: measure.slat && asynchronous,
                clat: measure.clat,
                lat: measure.lat,
            },
            pending: PerDirection::from_fn(|direction| {
                Pending::new(directions[direction].resp.is_some())
            }),
            directions,
            sync: Latency::new(true),
            syncs: 0,
            depth_changes: vec![0; depth as usize + 2],
            submit_sizes: [0; 7],
            complete_sizes: [0; 7],
            zone_resets: 0,
            error: None,
            tolerated: None,
            started: Tick::ZERO,
            ended: Tick::ZERO,
            old: 0,
            ramp: PerDirection::default(),
            bandwidth: Sampler::new(measure.bandwidth_sample, 1024),
            iops: Sampler::new(measure.iops_sample, 1),
            stalls: StallWatch::new(measure.clat || measure.lat),
            timeline: None,
            log: None,
        };
        recorder.watch_for_late_ops();
        recorder
    }

    /// Has the columns refuse late ops.
    fn watch_for_late_ops(&mut self) {
        for direction in Direction::ALL {
            let longest = self.stalls.limit_ns(direction);
            self.pending[direction].set_longest(longest);
        }
    }

    /// Returns whether slat is recorded.
    #[inline]
    pub(crate) const fn keeps_slat(&self) -> bool {
        self.kept.slat
    }

    /// Starts measuring with `under_way` ops in flight or to be continued; earlier ops only count
    /// as ramp.
    pub(crate) fn begin(&mut self, now: Tick, under_way: u32) {
        self.old = under_way;
        let ramped = under_way > 0;
        for direction in Direction::ALL {
            let (ios, bytes) = self.pending[direction].waiting();
            self.pending[direction].begin(now, ramped);
            let results = &mut self.directions[direction];
            let ramp = &mut self.ramp[direction];
            ramp.0 += ios;
            ramp.1 += bytes;
            ramp.0 += std::mem::take(&mut results.ios);
            ramp.1 += std::mem::take(&mut results.bytes);
            results.short_ios = 0;
            results.runtime = Nanos::ZERO;
        }
        self.discard_results();
        self.syncs = 0;
        self.depth_changes.fill(0);
        self.started = now;
        self.bandwidth.begin(now);
        self.iops.begin(now);
        self.stalls.begin(now);
        self.watch_for_late_ops();
        self.timeline.iter_mut().for_each(|share| share.begin(now));
        self.log.iter_mut().for_each(|log| log.begin(now));
    }

    /// Discards all but the number of ops, for a job that ends in its ramp time.
    pub(crate) fn discard_results(&mut self) {
        for direction in Direction::ALL {
            self.flush_pending(direction);
            let results = &mut self.directions[direction];
            results.slat.clear();
            results.clat.clear();
            results.lat.clear();
            results.lag.iter_mut().for_each(Latency::clear);
            results.resp.iter_mut().for_each(Latency::clear);
            results.bandwidth = SampleStats::default();
            results.iops = SampleStats::default();
        }
        self.sync.clear();
        self.submit_sizes = [0; 7];
        self.complete_sizes = [0; 7];
        self.zone_resets = 0;
    }

    /// Records a submission of `count` ops, the last `count` of `in_flight`: all have the depth of
    /// the last, as in fio.
    #[inline]
    pub(crate) fn issued(&mut self, in_flight: u32, count: u32) {
        self.depth_changes[in_flight as usize] += i64::from(count);
        self.depth_changes[in_flight as usize + 1] -= i64::from(count);
        self.submit_sizes[size_bucket(count)] += 1;
    }

    /// Takes back an op that was issued and did not happen, at depth 1: only engines with one slot
    /// end ops so ([`Completion::ENDED`](fathom_core::Completion::ENDED)).
    #[cold]
    pub(crate) fn took_back(&mut self) {
        self.depth_changes[1] -= 1;
        self.depth_changes[2] += 1;
    }

    /// Takes back a sync at the end of a pass or job, which is not counted: it was issued at depth
    /// 1.
    #[cold]
    pub(crate) fn leave_out_sync(&mut self, state: &SlotState) {
        if state.issue >= self.started {
            self.took_back();
        }
    }

    /// Records `count` rounds of reaping one op and submitting another, the last of `in_flight`.
    pub(crate) fn replenished(&mut self, in_flight: u32, count: u64) {
        self.depth_changes[in_flight as usize] += count.cast_signed();
        self.depth_changes[in_flight as usize + 1] -= count.cast_signed();
        self.submit_sizes[size_bucket(1)] += count;
        self.complete_sizes[size_bucket(1)] += count;
    }

    /// Records the size of a reap.
    #[inline]
    pub(crate) fn reaped(&mut self, count: u32) {
        self.complete_sizes[size_bucket(count)] += 1;
    }

    /// Records an op that moved all its bytes.
    #[inline(always)]
    pub(crate) fn completed(&mut self, direction: Direction, state: &SlotState, now: Tick) {
        let started = self.started;
        if let Some(log) = &mut self.log
            && !is_of_ramp(state, started, now)
        {
            log.completed(direction, state, now);
        }
        match self.pending[direction].add(state, now) {
            Added::Waits => {}
            Added::Full => self.flush_pending(direction),
            Added::Not => self.completed_oddly(direction, state, now),
        }
    }

    /// Returns whether ops from before measuring are in flight, whose slat does not count.
    #[inline]
    pub(crate) const fn has_ramp_ops(&self) -> bool {
        self.old > 0
    }

    /// Returns whether an op reaped now completed within the ramp time.
    #[inline]
    pub(crate) fn is_of_ramp(&self, state: &SlotState, now: Tick) -> bool {
        is_of_ramp(state, self.started, now)
    }

    /// Returns whether ops of a direction have due times.
    pub(crate) fn is_rated(&self, direction: Direction) -> bool {
        self.pending[direction].is_rated()
    }

    /// Returns a tally for the next ops of a uniform job, `LOOKAHEAD_OPS` at most.
    #[inline]
    pub(crate) fn uniform_tally<'a, const RATED: bool, const LOGGED: bool>(
        &'a mut self,
        common: &'a UniformOp,
    ) -> UniformTally<'a, RATED, LOGGED> {
        let direction = common.direction;
        if !self.pending[direction].has_room() {
            self.flush_pending(direction);
        }
        UniformTally {
            common,
            room: self.pending[direction].room(),
            log: self.log.as_deref_mut(),
        }
    }

    /// Adds pending latencies of a direction to its results.
    #[inline(never)]
    fn flush_pending(&mut self, direction: Direction) {
        let pending = &mut self.pending[direction];
        pending.add_to(self.kept, &mut self.directions[direction]);
        pending.clear();
    }

    fn flush_all_pending(&mut self) {
        for direction in Direction::ALL {
            self.flush_pending(direction);
        }
    }

    /// Records an op that cannot be kept pending.
    #[cold]
    fn completed_oddly(&mut self, direction: Direction, state: &SlotState, now: Tick) {
        if state.issue < self.started && self.old > 0 {
            self.came_from_before();
            if self.is_of_ramp(state, now) {
                let ramp = &mut self.ramp[direction];
                *ramp = (ramp.0 + 1, ramp.1 + u64::from(state.total_length()));
                return;
            }
        }
        let results = &mut self.directions[direction];
        results.ios += 1;
        results.bytes += u64::from(state.total_length());
        if self.kept.slat && state.issue >= self.started {
            results.slat.record((state.issue - state.start).get());
        }
        if self.kept.clat {
            results.clat.record((now - state.issue).get());
        }
        if self.kept.lat {
            results.lat.record((now - state.start).get());
        }
        if let Some(resp) = &mut results.resp {
            resp.record((now - state.due).get());
        }
        if let Some(lag) = &mut results.lag {
            lag.record((state.start - state.due).get());
        }
        self.notice_late_op(direction, state, now);
    }

    /// Adds an op to the stalls if it was late.
    fn notice_late_op(&mut self, direction: Direction, state: &SlotState, now: Tick) {
        let ios = self.measured(direction).0;
        if self.stalls.wants_look(direction, ios) {
            self.flush_pending(direction);
            self.learn_usual(direction);
        }
        self.stalls.add(direction, state, now);
    }

    /// Takes the usual latency of a direction from its results so far.
    fn learn_usual(&mut self, direction: Direction) {
        self.stalls.learn(direction, &self.directions[direction]);
        let longest = self.stalls.limit_ns(direction);
        self.pending[direction].set_longest(longest);
    }

    /// Returns kind and histogram of the latencies recorded so far that say most: resp under a
    /// schedule, else clat, else lat; `None` if none is kept.
    pub(crate) fn latencies(
        &mut self,
        direction: Direction,
    ) -> Option<(WindowLatency, &Histogram)> {
        self.flush_pending(direction);
        let results = &self.directions[direction];
        let kinds = [
            (WindowLatency::Resp, results.resp.as_ref()),
            (WindowLatency::Clat, Some(&results.clat)),
            (WindowLatency::Lat, Some(&results.lat)),
        ];
        let mut kinds = kinds.into_iter();
        kinds.find_map(|(kind, latency)| Some((kind, latency?.histogram.as_ref()?)))
    }

    /// Records an op that was in flight when measuring began.
    fn came_from_before(&mut self) {
        self.old -= 1;
        if self.old == 0 {
            for direction in Direction::ALL {
                self.pending[direction].forget_ramp();
            }
        }
    }

    /// Records a sync.
    #[cold]
    pub(crate) fn synced(&mut self, state: &SlotState, now: Tick) {
        self.sync.record((now - state.start).get());
        self.syncs += 1;
    }

    /// Counts a short transfer.
    #[cold]
    pub(crate) fn short(&mut self, direction: Direction) {
        self.directions[direction].short_ios += 1;
    }

    /// Records the error that ends the job; only the first one counts.
    #[cold]
    pub(crate) fn failed(&mut self, error: JobError) {
        self.error.get_or_insert(error);
    }

    /// Counts a tolerated error.
    #[cold]
    pub(crate) fn tolerated(&mut self, error: JobError) {
        match &mut self.tolerated {
            Some(tolerated) => tolerated.total += 1,
            none => {
                *none = Some(ToleratedErrors {
                    total: 1,
                    first: error,
                })
            }
        }
    }

    /// Returns whether an error has ended the job.
    pub(crate) const fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    /// Adds the I/O period from `from` to `to` to the runtime of the directions in `which`.
    pub(crate) fn ran(&mut self, which: PerDirection<bool>, from: Tick, to: Tick) {
        for direction in Direction::ALL {
            if which[direction] {
                self.directions[direction].runtime += to - from.max(self.started);
            }
        }
        self.ended = self.ended.max(to);
    }

    /// Returns the time of the next sample.
    pub(crate) fn next_sample(&self) -> Tick {
        let window = self
            .timeline
            .as_ref()
            .map_or(Tick::MAX, |share| share.next());
        let next = window.min(self.stalls.next_look());
        if self.measure.bandwidth {
            next.min(self.bandwidth.ends()).min(self.iops.ends())
        } else {
            next
        }
    }

    /// Takes the samples that are due.
    #[cold]
    pub(crate) fn sample(&mut self, now: Tick) {
        self.flush_all_pending();
        if now >= self.stalls.next_look() {
            for direction in Direction::ALL {
                self.learn_usual(direction);
            }
            self.stalls.looked(now);
        }
        if self.measure.bandwidth {
            self.sample_rates(now);
        }
        if let Some(share) = self.timeline.as_mut().filter(|share| now >= share.next()) {
            share.window_ended(&mut self.directions, now);
        }
    }

    /// Records bandwidth and IOPS for windows that have ended.
    fn sample_rates(&mut self, now: Tick) {
        let counted = |figure: fn(&DirectionResults) -> u64| {
            PerDirection::from_fn(|direction| figure(&self.directions[direction]))
        };
        let bandwidth = self.bandwidth.sample(counted(|results| results.bytes), now);
        let iops = self.iops.sample(counted(|results| results.ios), now);
        for direction in Direction::ALL {
            let results = &mut self.directions[direction];
            if let Some(rate) = bandwidth[direction] {
                results.bandwidth.record(rate);
            }
            if let Some(rate) = iops[direction] {
                results.iops.record(rate);
            }
        }
    }

    /// Returns ops and bytes of a direction since the start, ramp included.
    pub(crate) fn progress(&self, direction: Direction) -> (u64, u64) {
        let (measured, ramp) = (self.measured(direction), self.ramp[direction]);
        (measured.0 + ramp.0, measured.1 + ramp.1)
    }

    /// Returns ops and bytes of a direction since measuring began.
    pub(crate) fn measured(&self, direction: Direction) -> (u64, u64) {
        let results = &self.directions[direction];
        let (ios, bytes) = self.pending[direction].waiting();
        (results.ios + ios, results.bytes + bytes)
    }

    /// Returns the sum of latencies since measuring began, ns.
    pub(crate) fn latency_sum_ns(&self) -> f64 {
        let directions = Direction::ALL.map(|direction| &self.directions[direction].lat.summary);
        let sums = directions.map(|summary| summary.mean() * summary.count() as f64);
        sums.iter().sum()
    }

    /// Returns the final results.
    pub(crate) fn into_results(mut self) -> Results {
        let ended = self.ended.max(self.started);
        if let Some(log) = self.log.take() {
            log.finish(ended);
        }
        self.flush_all_pending();
        if self.measure.bandwidth {
            self.sample_rates(ended);
        }
        if let Some(share) = &mut self.timeline {
            share.finish(&mut self.directions, ended);
        }
        self.results()
    }

    /// Returns the results so far; the current I/O period is not yet part of any runtime.
    pub(crate) fn results(&self) -> Results {
        let mut directions = self.directions.clone();
        for direction in Direction::ALL {
            self.pending[direction].add_to(self.kept, &mut directions[direction]);
        }
        if let Some(share) = &self.timeline {
            share.widen(&mut directions);
        }
        let stalls = self.stalls.stalls(self.started, &directions);
        let mut level = 0i64;
        let depth_at_issue = self.depth_changes[..self.depth_changes.len() - 1]
            .iter()
            .map(|change| {
                level += change;
                level.unsigned_abs()
            })
            .collect();
        Results {
            directions,
            priorities: PerDirection::default(),
            sync: self.sync.clone(),
            syncs: self.syncs,
            depth_at_issue,
            submit_sizes: self.submit_sizes,
            complete_sizes: self.complete_sizes,
            zone_resets: self.zone_resets,
            error: self.error.clone(),
            tolerated: self.tolerated.clone(),
            depth_found: None,
            mismatches: Mismatches::default(),
            block_lives: None,
            stalls,
            started: self.started,
            ended: self.ended.max(self.started),
        }
    }
}

const fn is_of_ramp(state: &SlotState, started: Tick, now: Tick) -> bool {
    now.get() <= started.get() && state.issue.get() < started.get()
}

/// Returns fio's bucket of a batch size: 0, 1–4, 5–8, 9–16, 17–32, 33–64, more.
#[inline]
const fn size_bucket(count: u32) -> usize {
    match count {
        0 => 0,
        1..=4 => 1,
        5..=8 => 2,
        9..=16 => 3,
        17..=32 => 4,
        33..=64 => 5,
        _ => 6,
    }
}

/// Builds the error of a failed op.
#[cold]
pub(crate) fn job_error(
    state: &SlotState,
    completion: Completion,
    detail: Option<String>,
) -> JobError {
    JobError {
        errno: Errno::try_from(-completion.result).unwrap_or(Errno::EIO),
        activity: state.op.kind.into(),
        file: state.op.file,
        offset: state.op.offset,
        length: state.op.length,
        detail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_depth_map_counts_a_batch_at_the_depth_of_its_last_op() {
        let measure = crate::fixture::measure();
        let none = PerDirection::all(false);
        let mut recorder = Recorder::new(measure, 4, PerDirection::all(true), none, true);
        recorder.issued(2, 2);
        recorder.issued(4, 2);
        recorder.issued(4, 1);
        let results = recorder.into_results();
        assert_eq!(results.depth_at_issue, [0, 0, 2, 0, 3]);
        assert_eq!(results.submit_sizes, [0, 3, 0, 0, 0, 0, 0]);
    }
}

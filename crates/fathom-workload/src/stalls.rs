//! Stalls of a job: the worst times in which its ops took far longer than is usual for it.
//!
//! ```text
//!  op 1     ├──────────────────────────┤          one stall: the ops overlap
//!  op 2       ├────────────────────────┤
//!  op 3               ├────────────────┤          it is as long as its slowest op
//!  op 4                                 ├─┤       usual: not part of it
//! ```
//!
//! An op is late if it takes longer than [`LEAST`] and than [`FACTOR`] times the 99th percentile of
//! its direction, from when it was due. Late ops that overlap are one stall: a device that freezes
//! with 100 ops in flight stalls once, and a schedule that catches up afterwards belongs to it.
//!
//! # What this costs
//! Nothing per op: the columns of pending latencies refuse ops over a limit as they refuse those
//! that 32 bits cannot hold, in the same compare. Refused ops are counted singly and come here; at
//! most one in a hundred does, once the usual is known. The usual is looked up every half second.

use fathom_core::{Direction, Nanos, PerDirection, Tick};

use fathom_stats::{Latency, Summary};

use crate::results::DirectionResults;
use crate::slots::SlotState;

/// Time in which ops took far longer than is usual for the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObservedStall {
    /// Due time of the slowest op; its start without a schedule.
    pub due: Tick,
    /// Time from then until the op completed.
    pub length: Nanos,
    /// Direction of the slowest op.
    pub direction: Direction,
    /// Number of late ops.
    pub ops: u64,
    /// Time within it for which the job's thread was ready to run, but waited for a processor.
    pub waited: Nanos,
    /// Time within it for which the whole process did not run.
    pub stopped: Nanos,
}

/// Watch for late ops, which keeps the worst stalls.
#[derive(Clone, Debug)]
pub(crate) struct StallWatch {
    /// Latency beyond which an op is late, by direction; `Nanos::MAX` where nothing is watched.
    limits: PerDirection<Nanos>,
    /// Ops of a direction after which a late op has the usual looked up again.
    look_at_ios: PerDirection<u64>,
    /// Time at which the usual is looked up again.
    next_look: Tick,
    /// The latest stall, to which more ops may belong.
    open: Option<Open>,
    /// Earlier stalls, the worst `STALLS_MAX`.
    worst: Vec<ObservedStall>,
    /// The open stall has grown since it was reported to the driver.
    fresh: bool,
}

/// Stall to which more ops may belong: those that were due before it ended.
#[derive(Clone, Copy, Debug)]
struct Open {
    stall: ObservedStall,
    until: Tick,
}

impl StallWatch {
    /// Creates a watch, of nothing if `watched` is false: a job that records no latency has none
    /// that is usual.
    pub(crate) fn new(watched: bool) -> Self {
        let limit = if watched { LEAST } else { Nanos::MAX };
        Self {
            limits: PerDirection::all(limit),
            look_at_ios: PerDirection::all(FIRST_LOOK_IOS),
            next_look: Tick::MAX,
            open: None,
            worst: Vec::with_capacity(STALLS_MAX + 1),
            fresh: false,
        }
    }

    /// Forgets what was found so far; measuring begins.
    pub(crate) fn begin(&mut self, now: Tick) {
        self.worst.clear();
        self.open = None;
        self.fresh = false;
        if self.limits.read != Nanos::MAX {
            self.limits = PerDirection::all(LEAST);
            self.look_at_ios = PerDirection::all(FIRST_LOOK_IOS);
            self.next_look = now + LOOK_EVERY;
        }
    }

    /// Returns the latency in nanoseconds that ops of a direction take at most without being late.
    pub(crate) fn limit_ns(&self, direction: Direction) -> u64 {
        self.limits[direction].get()
    }

    /// Returns the time at which the usual is looked up again.
    pub(crate) const fn next_look(&self) -> Tick {
        self.next_look
    }

    /// Sets the time of the next look after one at `now`.
    pub(crate) fn looked(&mut self, now: Tick) {
        self.next_look = now + LOOK_EVERY;
    }

    /// Returns whether the usual is to be looked up before an op of a direction with `ios` ops is
    /// called late.
    pub(crate) fn wants_look(&self, direction: Direction, ios: u64) -> bool {
        ios >= self.look_at_ios[direction]
    }

    /// Takes the usual of a direction from its results.
    pub(crate) fn learn(&mut self, direction: Direction, results: &DirectionResults) {
        if self.limits[direction] == Nanos::MAX || results.ios < FIRST_LOOK_IOS {
            return;
        }
        self.limits[direction] = limit(results);
        self.look_at_ios[direction] = results.ios + results.ios / 8;
    }

    /// Adds an op if it was late.
    pub(crate) fn add(&mut self, direction: Direction, state: &SlotState, now: Tick) {
        let length = now - state.due;
        if length <= self.limits[direction] {
            return;
        }
        let stall = ObservedStall {
            due: state.due,
            length,
            direction,
            ops: 1,
            waited: Nanos::ZERO,
            stopped: Nanos::ZERO,
        };
        self.fresh = true;
        match &mut self.open {
            Some(open) if state.due <= open.until => {
                let ops = open.stall.ops + 1;
                if length > open.stall.length {
                    let waited = open.stall.waited;
                    open.stall = ObservedStall { waited, ..stall };
                }
                open.stall.ops = ops;
                open.until = now;
            }
            _ => {
                if let Some(over) = self.open.replace(Open { stall, until: now }) {
                    keep(&mut self.worst, over.stall);
                }
            }
        }
    }

    /// Returns the due time of the open stall's slowest op, once after it has grown.
    #[inline]
    pub(crate) fn take_fresh(&mut self) -> Option<Tick> {
        if !self.fresh {
            return None;
        }
        self.fresh = false;
        self.open.map(|open| open.stall.due)
    }

    /// Notes that the thread waited so long for a processor during the open stall.
    pub(crate) fn waited(&mut self, waited: Nanos) {
        if let Some(open) = &mut self.open {
            open.stall.waited = waited.min(open.stall.length);
        }
    }

    /// Returns the worst stalls in order of time: those beyond the limits of the final results.
    pub(crate) fn stalls(
        &self,
        started: Tick,
        results: &PerDirection<DirectionResults>,
    ) -> Vec<ObservedStall> {
        let mut all = self.worst.clone();
        if let Some(open) = self.open {
            keep(&mut all, open.stall);
        }
        let limits = PerDirection::from_fn(|direction| limit(&results[direction]));
        all.retain(|stall| stall.length > limits[stall.direction]);
        for stall in &mut all {
            stall.due = stall.due.max(started);
        }
        all.sort_unstable_by_key(|stall| (stall.due, stall.length));
        all
    }
}

/// Adds a stall to the worst ones, of which the shortest is dropped; of two alike, the later.
fn keep(worst: &mut Vec<ObservedStall>, stall: ObservedStall) {
    let place = worst.partition_point(|kept| kept.length >= stall.length);
    if place < STALLS_MAX {
        worst.truncate(STALLS_MAX - 1);
        worst.insert(place, stall);
    }
}

/// Returns the latency beyond which an op is late.
///
/// The usual is the 99th percentile of clat, and the mean of slat besides, for ops that take their
/// time in the submission. Under a schedule, it is at least the median of resp: a job that never
/// keeps up with its rate does not stall. Higher percentiles of resp, and means of clat, would hide
/// the stall that they consist of; the latter stand in only where no histogram is kept.
fn limit(results: &DirectionResults) -> Nanos {
    let percentile = |latency: &Latency, percent: f64| {
        let histogram = latency.histogram.as_ref();
        histogram.map(|histogram| histogram.percentile(percent))
    };
    let (clat, lat) = (&results.clat, &results.lat);
    let (clat_mean, lat_mean) = (whole_mean(&clat.summary), whole_mean(&lat.summary));
    let issued = match percentile(clat, 99.0) {
        Some(p99) => p99 + lat_mean.saturating_sub(clat_mean),
        None => percentile(lat, 99.0).unwrap_or(lat_mean.max(clat_mean)),
    };
    let resp = results.resp.as_ref();
    let due = resp.and_then(|resp| percentile(resp, 50.0)).unwrap_or(0);
    Nanos::new(issued.max(due).saturating_mul(FACTOR)).max(LEAST)
}

/// Returns the mean without its fraction.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a mean of u64"
)]
fn whole_mean(summary: &Summary) -> u64 {
    summary.mean() as u64
}

/// Least length of a stall.
const LEAST: Nanos = Nanos::from_millis(1);
/// Factor on the usual latency: within it lie the tails of devices that only queue.
const FACTOR: u64 = 10;
/// Stalls kept per job: more than a report prints.
const STALLS_MAX: usize = 8;
/// Fewest ops that have a 99th percentile. Until then, every op over `LEAST` is kept, and is judged
/// at the end by what was usual.
const FIRST_LOOK_IOS: u64 = 100;
/// Interval between looks at what is usual.
const LOOK_EVERY: Nanos = Nanos::from_millis(500);

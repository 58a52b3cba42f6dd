//! Latencies that wait to be counted: many at once cost a fraction of one after the other.

use fathom_core::Tick;

use crate::results::DirectionResults;
use crate::slots::SlotState;

/// Ops of one direction that have completed and are not in its results yet, in columns.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    /// How many, below `MANY` between two calls.
    count: usize,
    /// What they moved.
    bytes: u64,
    /// There is more to look at than clat and lat: due times, or ops from before measuring began.
    looks: bool,
    /// When measuring began.
    began: Tick,
    /// complete − issue.
    clat: Column,
    /// complete − start.
    lat: Column,
    /// complete − due.
    resp: Column,
}

/// Nanoseconds; what takes longer than 32 bits tell, four seconds, does not wait here.
type Column = [u32; MANY];

/// What came of adding an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Added {
    /// It waits.
    Waits,
    /// It waits, and no further one can.
    Full,
    /// It was not added: it took too long, or was issued before measuring began, and its slat does
    /// not count.
    Not,
}

impl Pending {
    /// Nothing waits.
    pub(crate) const fn new(rated: bool) -> Self {
        Self {
            count: 0,
            bytes: 0,
            looks: rated,
            began: Tick::ZERO,
            clat: [0; MANY],
            lat: [0; MANY],
            resp: [0; MANY],
        }
    }

    /// Adds an op that completed at `now`.
    #[inline(always)]
    pub(crate) fn add(&mut self, state: &SlotState, now: Tick) -> Added {
        // Never changes it; tells the compiler that it is inside the columns.
        let place = self.count % MANY;
        // Where a clock went back, the difference wraps and is too long.
        let since = |moment: Tick| now.get().wrapping_sub(moment.get());
        let (clat, lat) = (since(state.issue), since(state.start));
        let mut all = clat | lat;
        self.clat[place] = low(clat);
        self.lat[place] = low(lat);
        if self.looks {
            if state.issue < self.began {
                return Added::Not;
            }
            let resp = since(state.due);
            all |= resp;
            self.resp[place] = low(resp);
        }
        if all > u64::from(u32::MAX) {
            return Added::Not;
        }
        self.bytes += u64::from(state.total_length());
        self.count = place + 1;
        if self.count < MANY {
            Added::Waits
        } else {
            Added::Full
        }
    }

    /// Ops that wait, and their bytes.
    pub(crate) const fn waiting(&self) -> (u64, u64) {
        (self.count as u64, self.bytes)
    }

    /// Adds all of it to `results`.
    pub(crate) fn add_to(&self, kept: Kept, results: &mut DirectionResults) {
        let used = ..self.count;
        results.ios += self.count as u64;
        results.bytes += self.bytes;
        if kept.slat {
            let slat = differences(&self.lat, &self.clat);
            results.slat.record_short(&slat[used]);
        }
        if kept.clat {
            results.clat.record_short(&self.clat[used]);
        }
        if kept.lat {
            results.lat.record_short(&self.lat[used]);
        }
        if let Some(resp) = &mut results.resp {
            resp.record_short(&self.resp[used]);
        }
        if let Some(lag) = &mut results.lag {
            let lags = differences(&self.resp, &self.lat);
            lag.record_short(&lags[used]);
        }
    }

    /// Measuring begins at `now`; if it is `ramped`, there may be ops in flight.
    pub(crate) const fn begin(&mut self, now: Tick, ramped: bool) {
        self.clear();
        self.began = now;
        self.looks |= ramped;
    }

    /// Forgets all of it.
    pub(crate) const fn clear(&mut self) {
        (self.count, self.bytes) = (0, 0);
    }
}

/// Which latencies are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    /// issue − start.
    pub(crate) slat: bool,
    /// complete − issue.
    pub(crate) clat: bool,
    /// complete − start.
    pub(crate) lat: bool,
}

/// What the earlier part of each op took: all of it, less the later part.
fn differences(all: &Column, later: &Column) -> Column {
    std::array::from_fn(|place| all[place].saturating_sub(later[place]))
}

/// The lower 32 bits.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "longer times are refused")]
const fn low(ns: u64) -> u32 {
    ns as u32
}

/// A power of two; the columns of a direction are then 768 bytes.
const MANY: usize = 64;

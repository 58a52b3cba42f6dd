//! Latencies that wait to be counted: many at once cost a fraction of one after the other.

use fathom_core::Tick;

use crate::lookahead::LOOKAHEAD_OPS;
use crate::results::DirectionResults;
use crate::slots::SlotState;

/// Ops of one direction that have completed and are not in its results yet, in columns.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    /// How many, below `MANY` between two calls.
    count: usize,
    /// What they moved.
    bytes: u64,
    /// There are due times.
    rated: bool,
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
            rated,
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

    /// Whether a [`Room`] is left.
    #[inline]
    pub(crate) const fn has_room(&self) -> bool {
        self.count + ROOM < MANY
    }

    /// Places for the next `ROOM` ops. There must be so many.
    #[inline]
    pub(crate) fn room(&mut self) -> Room<'_> {
        let from = self.count.min(MANY - ROOM);
        Room {
            count: &mut self.count,
            bytes: &mut self.bytes,
            clat: places(&mut self.clat, from),
            lat: places(&mut self.lat, from),
            resp: places(&mut self.resp, from),
        }
    }

    /// Whether there are due times.
    pub(crate) const fn is_rated(&self) -> bool {
        self.rated
    }

    /// No op from before measuring began is in flight any more.
    pub(crate) const fn looks_back_no_more(&mut self) {
        self.looks = self.rated;
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

/// Places for ops that went as usual.
#[derive(Debug)]
pub(crate) struct Room<'a> {
    count: &'a mut usize,
    bytes: &'a mut u64,
    clat: &'a mut [u32; ROOM],
    lat: &'a mut [u32; ROOM],
    resp: &'a mut [u32; ROOM],
}

impl Room<'_> {
    /// Puts an op that completed at `now` into a place below `ROOM`; false if it took too long for
    /// that. No op may be in flight from before measuring began.
    #[inline(always)]
    pub(crate) fn put<const RATED: bool>(
        &mut self,
        place: usize,
        state: &SlotState,
        now: Tick,
    ) -> bool {
        // Never changes it; tells the compiler that it is inside.
        let place = place % ROOM;
        let since = |moment: Tick| now.get().wrapping_sub(moment.get());
        let (clat, lat) = (since(state.issue), since(state.start));
        let mut all = clat | lat;
        self.clat[place] = low(clat);
        self.lat[place] = low(lat);
        if RATED {
            let resp = since(state.due);
            all |= resp;
            self.resp[place] = low(resp);
        }
        all <= u64::from(u32::MAX)
    }

    /// Keeps the ops in the first `count` places, of `length` bytes each.
    #[inline]
    pub(crate) fn take(self, count: usize, length: u32) {
        *self.count += count;
        *self.bytes += count as u64 * u64::from(length);
    }
}

/// `ROOM` places of a column.
#[inline]
fn places(column: &mut Column, from: usize) -> &mut [u32; ROOM] {
    let Some(places) = column[from..].first_chunk_mut() else {
        unreachable!("a room is smaller than a column");
    };
    places
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

/// As many ops as a worker draws ahead.
pub(crate) const ROOM: usize = LOOKAHEAD_OPS;

/// A power of two; the columns of a direction are then 1.5 KiB.
const MANY: usize = 128;

//! Latencies pending to be recorded: in batches they cost a fraction of what they cost singly.

use fathom_core::Tick;

use crate::lookahead::LOOKAHEAD_OPS;
use crate::results::DirectionResults;
use crate::slots::SlotState;

/// Completed ops of one direction not yet added to its results, in columns.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    /// Number of ops, below `COLUMN_OPS` between two calls.
    count: usize,
    /// Bytes moved.
    bytes: u64,
    /// Ops have due times.
    rated: bool,
    /// More is recorded than clat and lat, or ops from before measuring are in flight.
    compares_times: bool,
    /// Start of measuring.
    began: Tick,
    /// Longest latency kept here, ns; below 2³².
    longest: u64,
    /// complete − issue.
    clat: Column,
    /// complete − start.
    lat: Column,
    /// complete − due.
    resp: Column,
}

/// Nanoseconds; ops that take longer than 32 bits can hold, four seconds, are not kept here, nor
/// are those that are late.
type Column = [u32; COLUMN_OPS];

/// Result of adding an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Added {
    /// Added.
    Waits,
    /// Added, and the columns are full.
    Full,
    /// Not added: it took too long or almost so, or was issued before measuring began and its slat
    /// does not count.
    Not,
}

impl Pending {
    /// Creates empty columns.
    pub(crate) const fn new(rated: bool) -> Self {
        Self {
            count: 0,
            bytes: 0,
            rated,
            compares_times: rated,
            began: Tick::ZERO,
            longest: LONGEST_NS,
            clat: [0; COLUMN_OPS],
            lat: [0; COLUMN_OPS],
            resp: [0; COLUMN_OPS],
        }
    }

    /// Adds an op that completed at `now`.
    #[inline(always)]
    pub(crate) fn add(&mut self, state: &SlotState, now: Tick) -> Added {
        // A no-op that shows the compiler that the index is in range.
        let place = self.count % COLUMN_OPS;
        // If a clock went backwards, the difference wraps around and is too long.
        let since = |moment: Tick| now.get().wrapping_sub(moment.get());
        let (clat, lat) = (since(state.issue), since(state.start));
        let mut all = clat | lat;
        self.clat[place] = low(clat);
        self.lat[place] = low(lat);
        if self.compares_times {
            if state.issue < self.began {
                return Added::Not;
            }
            let resp = since(state.due);
            all |= resp;
            self.resp[place] = low(resp);
        }
        // At least the longest of them, and less than twice as long: what is refused is looked at
        // again.
        if all > self.longest {
            return Added::Not;
        }
        self.bytes += u64::from(state.total_length());
        self.count = place + 1;
        if self.count < COLUMN_OPS {
            Added::Waits
        } else {
            Added::Full
        }
    }

    /// Returns whether there is space for a [`PendingRoom`].
    #[inline]
    pub(crate) const fn has_room(&self) -> bool {
        self.count + ROOM_OPS < COLUMN_OPS
    }

    /// Returns space for the next `ROOM_OPS` ops, which must be free.
    #[inline]
    pub(crate) fn room(&mut self) -> PendingRoom<'_> {
        let from = self.count.min(COLUMN_OPS - ROOM_OPS);
        PendingRoom {
            count: &mut self.count,
            bytes: &mut self.bytes,
            longest: self.longest,
            clat: places(&mut self.clat, from),
            lat: places(&mut self.lat, from),
            resp: places(&mut self.resp, from),
        }
    }

    /// Sets the longest latency kept here, ns; longer ones than 32 bits can hold never are.
    pub(crate) const fn set_longest(&mut self, ns: u64) {
        self.longest = if ns < LONGEST_NS { ns } else { LONGEST_NS };
    }

    /// Returns whether ops have due times.
    pub(crate) const fn is_rated(&self) -> bool {
        self.rated
    }

    /// Notes that no op from before the measurement is in flight any more.
    pub(crate) const fn forget_ramp(&mut self) {
        self.compares_times = self.rated;
    }

    /// Returns the pending ops and their bytes.
    pub(crate) const fn waiting(&self) -> (u64, u64) {
        (self.count as u64, self.bytes)
    }

    /// Adds all pending ops to `results`.
    pub(crate) fn add_to(&self, kept: KeptLatencies, results: &mut DirectionResults) {
        let used = ..self.count;
        results.ios += self.count as u64;
        results.bytes += self.bytes;
        if kept.slat {
            let slat = differences(&self.lat, &self.clat);
            results.slat.record_u32(&slat[used]);
        }
        if kept.clat {
            results.clat.record_u32(&self.clat[used]);
        }
        if kept.lat {
            results.lat.record_u32(&self.lat[used]);
        }
        if let Some(resp) = &mut results.resp {
            resp.record_u32(&self.resp[used]);
        }
        if let Some(lag) = &mut results.lag {
            let lags = differences(&self.resp, &self.lat);
            lag.record_u32(&lags[used]);
        }
    }

    /// Starts measuring at `now`; if `ramped`, ops may be in flight.
    pub(crate) const fn begin(&mut self, now: Tick, ramped: bool) {
        self.clear();
        self.began = now;
        self.compares_times |= ramped;
    }

    /// Discards all pending ops.
    pub(crate) const fn clear(&mut self) {
        (self.count, self.bytes) = (0, 0);
    }
}

/// Space for ops that completed as usual.
#[derive(Debug)]
pub(crate) struct PendingRoom<'a> {
    count: &'a mut usize,
    bytes: &'a mut u64,
    longest: u64,
    clat: &'a mut [u32; ROOM_OPS],
    lat: &'a mut [u32; ROOM_OPS],
    resp: &'a mut [u32; ROOM_OPS],
}

impl PendingRoom<'_> {
    /// Stores an op that completed at `now` at an index below `ROOM_OPS`; false if it took too
    /// long. No op from before measuring may be in flight.
    #[inline(always)]
    pub(crate) fn put<const RATED: bool>(
        &mut self,
        place: usize,
        state: &SlotState,
        now: Tick,
    ) -> bool {
        // A no-op that shows the compiler that the index is in range.
        let place = place % ROOM_OPS;
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
        all <= self.longest
    }

    /// Keeps the first `count` ops, of `length` bytes each.
    #[inline]
    pub(crate) fn take(self, count: usize, length: u32) {
        *self.count += count;
        *self.bytes += count as u64 * u64::from(length);
    }
}

/// `ROOM_OPS` entries of a column.
#[inline]
fn places(column: &mut Column, from: usize) -> &mut [u32; ROOM_OPS] {
    let Some(places) = column[from..].first_chunk_mut() else {
        unreachable!("a room is smaller than a column");
    };
    places
}

/// Latencies to record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeptLatencies {
    /// issue − start.
    pub(crate) slat: bool,
    /// complete − issue.
    pub(crate) clat: bool,
    /// complete − start.
    pub(crate) lat: bool,
}

/// Computes the earlier part of each latency: the total less the later part.
fn differences(all: &Column, later: &Column) -> Column {
    std::array::from_fn(|place| all[place].saturating_sub(later[place]))
}

/// Returns the lower 32 bits.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "longer times are refused")]
const fn low(ns: u64) -> u32 {
    ns as u32
}

/// Longest latency that a column can hold, ns.
const LONGEST_NS: u64 = u32::MAX as u64;

/// As many ops as a worker draws ahead.
pub(crate) const ROOM_OPS: usize = LOOKAHEAD_OPS;

/// A power of two; the columns of a direction are then 1.5 KiB.
const COLUMN_OPS: usize = 128;

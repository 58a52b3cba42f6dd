//! Course of a group's ops in windows of time, in memory that is reserved before the first op.
//!
//! There are [`WINDOWS_MAX`](Timeline::WINDOWS_MAX) windows, of 100 ms at first. When a time comes
//! that lies after the last one, neighbours merge and the width doubles:
//!
//! ```text
//! width 1   │0│1│2│3│4│5│6│7│                  full
//! width 2   │ 0 │ 1 │ 2 │ 3 │ 4 │ 5 │ 6 │ 7 │  the first half of these are merged ones
//! slots       0   2   4   6   1   3   5   7
//! ```
//!
//! A merged window stays in the slot of its first half, and the slot of its second half is free for
//! a new window. It is emptied when that window comes, not when the width doubles: so no call moves
//! more than a few windows, and none all 240. Merging all at once was rejected: it takes as long as
//! a hundred additions do, in a turn of a job that is being measured.

use crate::Histogram;
use crate::slot_counts::SlotCounts;
use crate::windows::{Window, Windows};

/// Timeline of one direction: ops, bytes, smallest and largest latency, and their histogram, by
/// window.
///
/// Jobs [`add`](Self::add) what they have done since they did so last; [`windows`](Self::windows)
/// gives the result. Merging is exact, so the sums over the windows equal the totals of the jobs.
///
/// `new` reserves 7 MiB and touches 28 KiB of them; nothing is allocated later. `add` costs a pass
/// over the buckets between the smallest and the largest value of the window, and mostly a second
/// one to empty a slot: a few µs. Counts of 32 bits were rejected: a window of a day's run takes
/// more ops than they hold.
#[derive(Debug)]
pub struct Timeline {
    /// log₂ of the width of a window, in `FIRST_WIDTH_NS`.
    level: u32,
    slots: Box<[Slot]>,
    /// Histograms of the slots, if they are kept.
    counts: Option<SlotCounts>,
    /// Time until which ops were added, ns.
    end_ns: u64,
}

/// Ops that a job adds to a window: those since it last added any.
#[derive(Debug)]
pub struct Addition<'a> {
    /// Ops completed.
    pub ios: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Smallest and largest of their latencies, ns; `None` if none is recorded.
    pub bounds: Option<(u64, u64)>,
    /// Latencies of all of the job's ops until now, and until it last added any.
    pub histograms: Option<(&'a Histogram, &'a mut Histogram)>,
}

impl Timeline {
    /// Number of windows: more than a heat map has columns, and their histograms fit in 8 MiB.
    pub const WINDOWS_MAX: usize = 240;

    /// Creates an empty timeline, with or without histograms.
    #[must_use]
    pub fn new(keep_histogram: bool) -> Self {
        Self {
            level: 0,
            slots: vec![Slot::default(); Self::WINDOWS_MAX].into_boxed_slice(),
            counts: keep_histogram.then(|| SlotCounts::new(Self::WINDOWS_MAX)),
            end_ns: 0,
        }
    }

    /// Returns start and end of the window in which a time lies, both in ns since the timeline
    /// began, while no later time has been added.
    #[must_use]
    pub const fn window_at(at_ns: u64) -> (u64, u64) {
        let width = width_ns(level_at(at_ns));
        let start = at_ns - at_ns % width;
        (start, start.saturating_add(width))
    }

    /// Adds ops to the window in which `at_ns` lies, and takes their latencies over into the
    /// earlier one of `added.histograms`. The job has measured until `end_ns`.
    pub fn add(&mut self, at_ns: u64, end_ns: u64, added: Addition<'_>) {
        self.end_ns = self.end_ns.max(end_ns);
        if added.ios == 0 && added.bytes == 0 {
            return;
        }
        self.level = self.level.max(level_at(at_ns));
        let place = self.claim(Span {
            level: self.level,
            index: index_at(at_ns, self.level),
        });
        let totals = &mut self.slots[place].totals;
        totals.merge(&Totals {
            ios: added.ios,
            bytes: added.bytes,
            bounds: added.bounds,
        });
        let (Some((now, before)), Some(bounds)) = (added.histograms, added.bounds) else {
            return;
        };
        if let Some(counts) = &mut self.counts {
            counts.take_difference(place, now, before, bounds);
        }
    }

    /// Returns the windows, from the first to the last one with ops.
    #[must_use]
    pub fn windows(&self) -> Windows {
        let mut windows: Vec<Window> = Vec::new();
        for (place, slot) in self.slots.iter().enumerate() {
            let Some(owner) = slot.owner else {
                continue;
            };
            let index = owner.at_level(self.level).index;
            if windows.len() <= index {
                windows.resize(index + 1, Window::default());
            }
            let totals = slot.totals;
            windows[index].merge(&Window {
                ios: totals.ios,
                bytes: totals.bytes,
                min_ns: totals.bounds.map_or(0, |(min, _)| min),
                max_ns: totals.bounds.map_or(0, |(_, max)| max),
                bins: self.bins(place),
            });
        }
        Windows {
            width_ns: width_ns(self.level),
            end_ns: self.end_ns,
            windows,
        }
    }

    /// Returns index and count of the non-empty buckets of a slot.
    fn bins(&self, place: usize) -> Vec<(usize, u64)> {
        match (&self.counts, self.slots[place].totals.bounds) {
            (Some(counts), Some(bounds)) => counts.bins(place, bounds),
            _ => Vec::new(),
        }
    }

    /// Returns the slot of a window, emptied of what belongs to an earlier one.
    fn claim(&mut self, span: Span) -> usize {
        let place = span.home();
        // What is in the slot belongs to this window or to an earlier one: a window whose slot it
        // was at a lower level. Moving it may empty another slot in turn, each for an earlier
        // window than the last, so this ends, mostly after one.
        if let Some(owner) = self.slots[place].owner
            && owner.at_level(span.level) != span
        {
            let to = self.claim(owner.at_level(span.level));
            self.move_slot(place, to);
        }
        self.slots[place].owner = Some(span);
        place
    }

    /// Adds the contents of a slot to another one, and empties it.
    fn move_slot(&mut self, from: usize, to: usize) {
        let totals = std::mem::take(&mut self.slots[from].totals);
        self.slots[to].totals.merge(&totals);
        if let (Some(counts), Some(bounds)) = (&mut self.counts, totals.bounds) {
            counts.move_slot(from, to, bounds);
        }
    }
}

/// Slot for a window.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// Window whose ops it holds; `None` while it was never used.
    owner: Option<Span>,
    totals: Totals,
}

/// Sums of a window.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    ios: u64,
    bytes: u64,
    bounds: Option<(u64, u64)>,
}

impl Totals {
    fn merge(&mut self, other: &Self) {
        self.ios += other.ios;
        self.bytes += other.bytes;
        self.bounds = match (self.bounds, other.bounds) {
            (Some(own), Some(add)) => Some((own.0.min(add.0), own.1.max(add.1))),
            (own, add) => own.or(add),
        };
    }
}

/// Window of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    level: u32,
    /// Below `WINDOWS_MAX`.
    index: usize,
}

impl Span {
    /// Returns the window of a level, no lower than its own, in which it lies.
    const fn at_level(self, level: u32) -> Self {
        let index = match self.index.checked_shr(level - self.level) {
            Some(index) => index,
            None => 0,
        };
        Self { level, index }
    }

    /// Returns the slot of the window: at level 0 its index; above, that of its first half, or if
    /// that would lie after the last window of the lower level, one that a merger has freed.
    const fn home(self) -> usize {
        let (mut level, mut index) = (self.level, self.index);
        while level > 0 && index > 0 {
            index = if index < HALF {
                index * 2
            } else {
                (index - HALF) * 2 + 1
            };
            level -= 1;
        }
        index
    }
}

/// Returns the lowest level at which a time lies in a window.
const fn level_at(at_ns: u64) -> u32 {
    let mut level = 0;
    while at_ns / width_ns(level) >= Timeline::WINDOWS_MAX as u64 {
        level += 1;
    }
    level
}

/// Returns the index of the window in which a time lies, at a level no lower than its own.
#[expect(clippy::cast_possible_truncation, reason = "below WINDOWS_MAX")]
const fn index_at(at_ns: u64, level: u32) -> usize {
    (at_ns / width_ns(level)) as usize
}

/// Returns the width of a window. Cannot overflow: level 30 holds all of `u64`.
const fn width_ns(level: u32) -> u64 {
    FIRST_WIDTH_NS << level
}

/// Width of a window at first: enough ops of a slow disk for a rate, and short enough to show a
/// stall.
const FIRST_WIDTH_NS: u64 = 100_000_000;

const HALF: usize = Timeline::WINDOWS_MAX / 2;

//! What is logged: an op in 16 bytes, and whatever needs more room in several entries.
//!
//! ```text
//!          63            32 31             0
//! first   │      clat      │      time      │   ns, time since the last `Base`
//! second  │  tag           │      slat      │   ns
//! tag     │ length, 26 bits      │ way │ kind │
//! ```
//!
//! Composed in registers and stored as two words: an entry with a field for each part would be put
//! together in memory in small pieces and read back in large ones, which stalls a processor for
//! longer than all the rest of an op takes.

use fathom_core::Direction;

/// 16 bytes of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    first: u64,
    second: u64,
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// An op that has completed.
    Op,
    /// One that was issued before measuring began.
    EarlyOp,
    /// What later times count from.
    Base,
    /// Offset of the op that follows.
    Offset,
    /// The op's priority, and its length if that is long.
    Shape,
    /// High halves of its latencies; or the maximum of the window that follows.
    High,
    /// The end of a window: its value, and its series in place of a length.
    Window,
    /// A histogram begins; its bins follow.
    HistogramBegin,
    /// One bucket of it: a count, and the bucket in place of a length.
    HistogramBin,
    /// It is whole if its bins add up to this many.
    HistogramEnd,
}

impl Kind {
    const ALL: [Self; 10] = [
        Self::Op,
        Self::EarlyOp,
        Self::Base,
        Self::Offset,
        Self::Shape,
        Self::High,
        Self::Window,
        Self::HistogramBegin,
        Self::HistogramBin,
        Self::HistogramEnd,
    ];
}

impl Entry {
    /// What chunks are made of before anything is logged.
    pub(super) const TOUCHED: Self = Self {
        first: 1,
        second: 0,
    };

    /// The longest op that needs no entry for its length.
    pub(super) const LONGEST: u32 = (1 << (32 - LENGTH_SHIFT)) - 1;

    /// An op; what is longer than its field goes elsewhere.
    #[inline]
    pub(super) const fn op(time: u64, clat: u64, slat: u64, tag: u32) -> Self {
        Self {
            first: (clat << 32) | (time & LOW),
            second: ((tag as u64) << 32) | (slat & LOW),
        }
    }

    /// Kind, direction and length in one.
    #[inline]
    pub(super) const fn tag(kind: Kind, direction: Direction, length: u32) -> u32 {
        (length << LENGTH_SHIFT) | ((direction as u32) << DIRECTION_SHIFT) | kind as u32
    }

    /// A part that holds 64 bits, with 32 beside them.
    pub(super) const fn wide(tag: u32, value: u64, beside: u32) -> Self {
        Self {
            first: (value & !LOW) | beside as u64,
            second: ((tag as u64) << 32) | (value & LOW),
        }
    }

    #[inline]
    pub(super) const fn raw_tag(self) -> u32 {
        (self.second >> 32) as u32
    }

    #[inline]
    pub(super) const fn kind(self) -> Kind {
        // Only `tag` makes tags, from a kind.
        Kind::ALL[(self.raw_tag() & KIND) as usize]
    }

    #[inline]
    const fn is_op(self) -> bool {
        self.raw_tag() & KIND <= Kind::EarlyOp as u32
    }

    /// Whether something is logged here, and not only a part of it.
    pub(super) const fn is_whole(self) -> bool {
        matches!(
            self.kind(),
            Kind::Op | Kind::EarlyOp | Kind::Window | Kind::HistogramEnd
        )
    }

    const fn wide_value(self) -> u64 {
        (self.first & !LOW) | (self.second & LOW)
    }

    const fn beside(self) -> u32 {
        low(self.first)
    }
}

/// What was logged, put together again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// An op that has completed.
    Op(LoggedOp),
    /// The end of a window. Times count from the start of measurement.
    Window {
        /// What of.
        series: Series,
        /// Which way data went.
        direction: Direction,
        /// When.
        time_ns: u64,
        /// The mean.
        value: u64,
        /// The maximum.
        max: u64,
    },
    /// A histogram begins; its bins follow.
    HistogramBegin,
    /// One bucket of it.
    HistogramBin {
        /// The bucket.
        bucket: u32,
        /// Ops in it.
        count: u64,
    },
    /// A histogram is whole if its bins add up to `ops`.
    HistogramEnd {
        /// Which way data went.
        direction: Direction,
        /// When.
        time_ns: u64,
        /// Ops in it.
        ops: u64,
        /// Bytes of the last op.
        length: u32,
    },
}

/// An op as it was logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedOp {
    /// When it completed: ns since measuring began.
    pub time_ns: u64,
    /// ns.
    pub clat: u64,
    /// ns.
    pub slat: u64,
    /// Byte offset, if the log keeps it.
    pub offset: u64,
    /// Bytes.
    pub length: u32,
    /// The op's own I/O priority; 0: the job's.
    pub priority: u16,
    /// Which way data went.
    pub direction: Direction,
    /// It was issued before measuring began: its slat is not counted.
    pub early: bool,
}

/// What is averaged over windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Series {
    /// KiB/s.
    Bandwidth,
    /// Ops a second.
    Iops,
    /// ns.
    Lat,
    /// ns.
    Clat,
    /// ns.
    Slat,
}

impl Series {
    /// Returns whether its values are rates over the length of a window.
    pub(super) const fn is_rate(self) -> bool {
        matches!(self, Self::Bandwidth | Self::Iops)
    }

    pub(super) const ALL: [Self; 5] = [
        Self::Bandwidth,
        Self::Iops,
        Self::Lat,
        Self::Clat,
        Self::Slat,
    ];
}

/// The items of a chunk, in the order in which they were logged.
#[derive(Clone, Debug)]
pub struct Items<'a> {
    entries: std::slice::Iter<'a, Entry>,
    base: u64,
    parts: Parts,
    has_parts: bool,
}

/// What entries before an item say of it.
#[derive(Clone, Copy, Debug, Default)]
struct Parts {
    offset: u64,
    high: u64,
    length: u32,
    priority: u16,
}

impl<'a> Items<'a> {
    /// The items of `entries`.
    #[must_use]
    pub fn new(entries: &'a [Entry]) -> Self {
        Self {
            entries: entries.iter(),
            base: 0,
            parts: Parts::default(),
            has_parts: false,
        }
    }

    #[inline]
    fn op(&self, entry: Entry) -> LoggedOp {
        let tag = entry.raw_tag();
        LoggedOp {
            time_ns: self.base + (entry.first & LOW),
            clat: entry.first >> 32,
            slat: entry.second & LOW,
            offset: 0,
            length: tag >> LENGTH_SHIFT,
            priority: 0,
            direction: direction(tag),
            early: tag & KIND == Kind::EarlyOp as u32,
        }
    }

    /// An op of which the entries before it say more.
    #[cold]
    #[inline(never)]
    fn odd_op(&mut self, entry: Entry) -> LoggedOp {
        let parts = std::mem::take(&mut self.parts);
        self.has_parts = false;
        let op = self.op(entry);
        LoggedOp {
            clat: op.clat | (parts.high << 32),
            slat: op.slat | (parts.high & !LOW),
            offset: parts.offset,
            length: op.length | parts.length,
            priority: parts.priority,
            ..op
        }
    }

    /// What is not an op; `None` for a part.
    #[inline(never)]
    fn other(&mut self, entry: Entry) -> Option<Item> {
        let (tag, value) = (entry.raw_tag(), entry.wide_value());
        let time_ns = self.base + u64::from(entry.beside());
        match entry.kind() {
            Kind::Op | Kind::EarlyOp => {}
            Kind::Base => self.base = value,
            Kind::Offset => (self.parts.offset, self.has_parts) = (value, true),
            Kind::Shape => {
                self.parts.priority = low16(value);
                (self.parts.length, self.has_parts) = (entry.beside(), true);
            }
            Kind::High => (self.parts.high, self.has_parts) = (value, true),
            Kind::Window => {
                let max = std::mem::take(&mut self.parts).high;
                self.has_parts = false;
                return Some(Item::Window {
                    series: Series::ALL[(tag >> LENGTH_SHIFT) as usize % Series::ALL.len()],
                    direction: direction(tag),
                    time_ns,
                    value,
                    max,
                });
            }
            Kind::HistogramBegin => return Some(Item::HistogramBegin),
            Kind::HistogramBin => {
                return Some(Item::HistogramBin {
                    bucket: tag >> LENGTH_SHIFT,
                    count: value,
                });
            }
            Kind::HistogramEnd => {
                let length = std::mem::take(&mut self.parts).length;
                self.has_parts = false;
                return Some(Item::HistogramEnd {
                    direction: direction(tag),
                    time_ns,
                    ops: value,
                    length,
                });
            }
        }
        None
    }
}

impl Iterator for Items<'_> {
    type Item = Item;

    #[inline]
    fn next(&mut self) -> Option<Item> {
        loop {
            let entry = *self.entries.next()?;
            if entry.is_op() {
                return Some(Item::Op(if self.has_parts {
                    self.odd_op(entry)
                } else {
                    self.op(entry)
                }));
            }
            if let Some(item) = self.other(entry) {
                return Some(item);
            }
        }
    }
}

#[inline]
const fn direction(tag: u32) -> Direction {
    match (tag >> DIRECTION_SHIFT) & 3 {
        0 => Direction::Read,
        1 => Direction::Write,
        _ => Direction::Trim,
    }
}

/// The low half.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the other half goes elsewhere"
)]
const fn low(value: u64) -> u32 {
    value as u32
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a priority, widened before"
)]
const fn low16(value: u64) -> u16 {
    value as u16
}

const LOW: u64 = u32::MAX as u64;
const KIND: u32 = 0xf;
const DIRECTION_SHIFT: u32 = 4;
const LENGTH_SHIFT: u32 = 6;

const _: () = assert!(size_of::<Entry>() == 16);

//! Log entries: an op in 16 bytes; longer items take several entries.
//!
//! ```text
//!          63            32 31             0
//! first   │      clat      │      time      │   ns, time since the last `Base`
//! second  │  tag           │      slat      │   ns
//! tag     │ length, 26 bits      │ way │ kind │
//! ```
//!
//! Composed in registers and stored as two words. A struct with a field per part was rejected:
//! written in small pieces and read back in large ones, it defeats store forwarding and stalls the
//! CPU for longer than the rest of an op takes.

use fathom_core::Direction;

/// Entry of a log, 16 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogEntry {
    first: u64,
    second: u64,
}

/// Kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum EntryKind {
    /// Completed op.
    Op,
    /// Completed op issued before measuring began.
    EarlyOp,
    /// Base of later times.
    Base,
    /// Offset of the op that follows.
    Offset,
    /// The op's priority, and its length if that is long.
    Shape,
    /// Lag of the op that follows.
    Lag,
    /// High halves of the op's latencies, or the maximum of the window that follows.
    High,
    /// End of a window: its value, with the series in place of a length.
    Window,
    /// Start of a histogram; its bins follow.
    HistogramBegin,
    /// Bin of a histogram: its count, with the bucket in place of a length.
    HistogramBin,
    /// End of a histogram: complete if its bins add up to this count.
    HistogramEnd,
}

impl EntryKind {
    const ALL: [Self; 11] = [
        Self::Op,
        Self::EarlyOp,
        Self::Base,
        Self::Offset,
        Self::Shape,
        Self::Lag,
        Self::High,
        Self::Window,
        Self::HistogramBegin,
        Self::HistogramBin,
        Self::HistogramEnd,
    ];
}

impl LogEntry {
    /// Initial entry of a chunk, not zero so that the kernel allocates its memory.
    pub(super) const TOUCHED: Self = Self {
        first: 1,
        second: 0,
    };

    /// Longest op, in bytes, that needs no entry for its length.
    pub(super) const LENGTH_MAX: u32 = (1 << (32 - LENGTH_SHIFT)) - 1;

    /// Composes the entry of an op; values too long for their field go to further entries.
    #[inline]
    pub(super) const fn op(time: u64, clat: u64, slat: u64, tag: u32) -> Self {
        Self {
            first: (clat << 32) | (time & LOW_HALF),
            second: ((tag as u64) << 32) | (slat & LOW_HALF),
        }
    }

    /// Packs kind, direction and length into one word.
    #[inline]
    pub(super) const fn tag(kind: EntryKind, direction: Direction, length: u32) -> u32 {
        (length << LENGTH_SHIFT) | ((direction as u32) << DIRECTION_SHIFT) | kind as u32
    }

    /// Composes an entry of a part: 64 bits and another 32.
    pub(super) const fn wide(tag: u32, value: u64, beside: u32) -> Self {
        Self {
            first: (value & !LOW_HALF) | beside as u64,
            second: ((tag as u64) << 32) | (value & LOW_HALF),
        }
    }

    #[inline]
    pub(super) const fn raw_tag(self) -> u32 {
        (self.second >> 32) as u32
    }

    #[inline]
    pub(super) const fn kind(self) -> EntryKind {
        // Tags come only from `tag`, which encodes a kind.
        EntryKind::ALL[(self.raw_tag() & KIND) as usize]
    }

    #[inline]
    const fn is_op(self) -> bool {
        self.raw_tag() & KIND <= EntryKind::EarlyOp as u32
    }

    /// Returns whether the entry completes an item.
    pub(super) const fn is_whole(self) -> bool {
        matches!(
            self.kind(),
            EntryKind::Op | EntryKind::EarlyOp | EntryKind::Window | EntryKind::HistogramEnd
        )
    }

    const fn wide_value(self) -> u64 {
        (self.first & !LOW_HALF) | (self.second & LOW_HALF)
    }

    const fn beside(self) -> u32 {
        low(self.first)
    }
}

/// Logged item, decoded from its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogItem {
    /// Completed op.
    Op(LoggedOp),
    /// End of a window. Times count from the start of measurement.
    Window {
        /// Averaged series.
        series: Series,
        /// Direction.
        direction: Direction,
        /// Time.
        time_ns: u64,
        /// Mean.
        value: u64,
        /// Maximum.
        max: u64,
    },
    /// Start of a histogram; its bins follow.
    HistogramBegin,
    /// Bin of a histogram.
    HistogramBin {
        /// Bucket.
        bucket: u32,
        /// Ops in it.
        count: u64,
    },
    /// End of a histogram, complete if its bins add up to `ops`.
    HistogramEnd {
        /// Direction.
        direction: Direction,
        /// Time.
        time_ns: u64,
        /// Ops in it.
        ops: u64,
        /// Bytes of the last op.
        length: u32,
    },
}

/// Logged op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedOp {
    /// Completion: ns since measuring began.
    pub time_ns: u64,
    /// ns.
    pub clat: u64,
    /// ns.
    pub slat: u64,
    /// ns, if the log keeps it.
    pub lag: u64,
    /// Byte offset, if the log keeps it.
    pub offset: u64,
    /// Bytes.
    pub length: u32,
    /// The op's own I/O priority; 0: the job's.
    pub priority: u16,
    /// Direction.
    pub direction: Direction,
    /// The op was issued before measuring began, so its slat does not count.
    pub early: bool,
}

/// Series averaged over windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Series {
    /// KiB/s.
    Bandwidth,
    /// Ops per second.
    Iops,
    /// ns.
    Lat,
    /// ns.
    Clat,
    /// ns.
    Slat,
    /// ns.
    Resp,
}

impl Series {
    /// Returns whether its values are rates over the length of a window.
    pub(super) const fn is_rate(self) -> bool {
        matches!(self, Self::Bandwidth | Self::Iops)
    }

    pub(super) const ALL: [Self; 6] = [
        Self::Bandwidth,
        Self::Iops,
        Self::Lat,
        Self::Clat,
        Self::Slat,
        Self::Resp,
    ];
}

/// Iterator over the items of a chunk, in logged order.
#[derive(Clone, Debug)]
pub struct Items<'a> {
    entries: std::slice::Iter<'a, LogEntry>,
    base: u64,
    parts: Parts,
    has_parts: bool,
}

/// Values from the entries that precede an item.
#[derive(Clone, Copy, Debug, Default)]
struct Parts {
    offset: u64,
    high: u64,
    lag: u64,
    length: u32,
    priority: u16,
}

impl<'a> Items<'a> {
    /// Creates an iterator over the items of `entries`.
    #[must_use]
    pub fn new(entries: &'a [LogEntry]) -> Self {
        Self {
            entries: entries.iter(),
            base: 0,
            parts: Parts::default(),
            has_parts: false,
        }
    }

    #[inline]
    fn op(&self, entry: LogEntry) -> LoggedOp {
        let tag = entry.raw_tag();
        LoggedOp {
            time_ns: self.base + (entry.first & LOW_HALF),
            clat: entry.first >> 32,
            slat: entry.second & LOW_HALF,
            lag: 0,
            offset: 0,
            length: tag >> LENGTH_SHIFT,
            priority: 0,
            direction: direction(tag),
            early: tag & KIND == EntryKind::EarlyOp as u32,
        }
    }

    /// Decodes an op with the values of the entries before it.
    #[cold]
    #[inline(never)]
    fn odd_op(&mut self, entry: LogEntry) -> LoggedOp {
        let parts = std::mem::take(&mut self.parts);
        self.has_parts = false;
        let op = self.op(entry);
        LoggedOp {
            clat: op.clat | (parts.high << 32),
            slat: op.slat | (parts.high & !LOW_HALF),
            lag: parts.lag,
            offset: parts.offset,
            length: op.length | parts.length,
            priority: parts.priority,
            ..op
        }
    }

    /// Decodes any other item; `None` for a part of one.
    #[inline(never)]
    fn other(&mut self, entry: LogEntry) -> Option<LogItem> {
        let (tag, value) = (entry.raw_tag(), entry.wide_value());
        let time_ns = self.base + u64::from(entry.beside());
        match entry.kind() {
            EntryKind::Op | EntryKind::EarlyOp => {}
            EntryKind::Base => self.base = value,
            EntryKind::Offset => (self.parts.offset, self.has_parts) = (value, true),
            EntryKind::Shape => {
                self.parts.priority = low16(value);
                (self.parts.length, self.has_parts) = (entry.beside(), true);
            }
            EntryKind::Lag => (self.parts.lag, self.has_parts) = (value, true),
            EntryKind::High => (self.parts.high, self.has_parts) = (value, true),
            EntryKind::Window => {
                let max = std::mem::take(&mut self.parts).high;
                self.has_parts = false;
                return Some(LogItem::Window {
                    series: Series::ALL[(tag >> LENGTH_SHIFT) as usize % Series::ALL.len()],
                    direction: direction(tag),
                    time_ns,
                    value,
                    max,
                });
            }
            EntryKind::HistogramBegin => return Some(LogItem::HistogramBegin),
            EntryKind::HistogramBin => {
                return Some(LogItem::HistogramBin {
                    bucket: tag >> LENGTH_SHIFT,
                    count: value,
                });
            }
            EntryKind::HistogramEnd => {
                let length = std::mem::take(&mut self.parts).length;
                self.has_parts = false;
                return Some(LogItem::HistogramEnd {
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
    type Item = LogItem;

    #[inline]
    fn next(&mut self) -> Option<LogItem> {
        loop {
            let entry = *self.entries.next()?;
            if entry.is_op() {
                return Some(LogItem::Op(if self.has_parts {
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

/// Mask of the low half.
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

const LOW_HALF: u64 = u32::MAX as u64;
const KIND: u32 = 0xf;
const DIRECTION_SHIFT: u32 = 4;
const LENGTH_SHIFT: u32 = 6;

const _: () = assert!(size_of::<LogEntry>() == 16);

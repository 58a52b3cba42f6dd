//! Zones of zoned block devices: the words that devices, models and the rules of jobs share.

use std::fmt;

/// Zone of a block device, as the device reports it; offsets and lengths in bytes.
///
/// ```text
/// start          write pointer        start + capacity     start + length
///   │ written data │  to be written next ─►  │   unusable      │
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// First byte.
    pub start: u64,
    /// Bytes up to the next zone.
    pub length: u64,
    /// Bytes from the start that can be written, at most `length`.
    pub capacity: u64,
    /// Rule for writes.
    pub kind: ZoneKind,
    /// State.
    pub condition: ZoneCondition,
    /// Offset on the device of the next write; without meaning unless
    /// [`has_pointer`](Self::has_pointer).
    pub write_pointer: u64,
    /// It has a [random write area](WriteArea), which begins at the write pointer: so it is neither
    /// empty nor full.
    pub has_area: bool,
}

impl Zone {
    /// Returns the offset after the zone.
    #[must_use]
    #[inline]
    pub const fn end(&self) -> u64 {
        self.start.saturating_add(self.length)
    }

    /// Returns the offset after the last byte that can be written.
    #[must_use]
    #[inline]
    pub const fn write_end(&self) -> u64 {
        self.start.saturating_add(self.capacity)
    }

    /// Returns whether the write pointer has a meaning: not in a conventional zone, and not in one
    /// that is full, offline or read-only.
    #[must_use]
    pub const fn has_pointer(&self) -> bool {
        use ZoneCondition::{Closed, Empty, ExplicitlyOpen, ImplicitlyOpen};
        matches!(
            self.condition,
            Empty | ImplicitlyOpen | ExplicitlyOpen | Closed
        )
    }
}

/// Rule for the writes of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneKind {
    /// Anywhere and in any order.
    Conventional,
    /// At the write pointer alone (host-managed, NVMe).
    SequentialRequired,
    /// Best at the write pointer (host-aware).
    SequentialPreferred,
}

/// Condition of a zone, by the names of the ZBC and ZNS standards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneCondition {
    /// The zone has no write pointer: it is conventional.
    NotWritePointer,
    /// Nothing is written.
    Empty,
    /// Opened by a write.
    ImplicitlyOpen,
    /// Opened by a command.
    ExplicitlyOpen,
    /// Written in part; takes no resources for writing.
    Closed,
    /// Written or finished.
    Full,
    /// Can be read only.
    ReadOnly,
    /// Can be neither read nor written.
    Offline,
}

impl ZoneCondition {
    /// Returns the condition with a number, which is the same in SCSI (ZBC), ATA (ZAC), NVMe (ZNS)
    /// and the reports of Linux.
    #[must_use]
    pub const fn of_code(code: u8) -> Option<Self> {
        Some(match code {
            0x0 => Self::NotWritePointer,
            0x1 => Self::Empty,
            0x2 => Self::ImplicitlyOpen,
            0x3 => Self::ExplicitlyOpen,
            0x4 => Self::Closed,
            0xd => Self::ReadOnly,
            0xe => Self::Full,
            0xf => Self::Offline,
            _ => return None,
        })
    }
}

impl fmt::Display for ZoneCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotWritePointer => "not write pointer",
            Self::Empty => "empty",
            Self::ImplicitlyOpen => "implicitly open",
            Self::ExplicitlyOpen => "explicitly open",
            Self::Closed => "closed",
            Self::Full => "full",
            Self::ReadOnly => "read-only",
            Self::Offline => "offline",
        })
    }
}

/// Command that changes the state of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneAction {
    /// Discards the data; the zone is empty.
    Reset,
    /// Moves the write pointer to the end; the zone is full.
    Finish,
    /// Opens an empty zone with a [random write area](WriteArea).
    OpenWithArea,
    /// Moves the write pointer past the data in the random write area, as far as they fill whole
    /// granules. Does nothing on a device whose pointer only writes move.
    Commit,
}

impl ZoneAction {
    /// Returns the name of the action as a verb.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reset => "reset zone",
            Self::Finish => "finish zone",
            Self::OpenWithArea => "open zone with a random write area",
            Self::Commit => "commit the random write area of zone",
        }
    }
}

/// Random write areas of a device (ZRWA of NVMe): in a zone opened with one, the bytes from the
/// write pointer on may be written in any order, and again.
///
/// A write whose end lies beyond the area moves the pointer up, by the fewest granules after which
/// its end lies within; it may reach a whole area beyond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteArea {
    /// Bytes of an area, a multiple of the granule.
    pub bytes: u64,
    /// Unit in which the write pointer moves, bytes, ≥ 1.
    pub granule: u64,
    /// Largest number of zones that have an area at a time; `None` without a limit.
    pub zones: Option<u32>,
}

/// Zones and limits of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneReport {
    /// All zones in order, each beginning where the previous one ends, the first at 0.
    pub zones: Vec<Zone>,
    /// Largest number of zones that the device has open or active (open or closed) at a time;
    /// `None` without a limit.
    pub open_max: Option<u32>,
    /// Random write areas with which zones may be opened; `None` if the device has none.
    pub area: Option<WriteArea>,
    /// Identity of the device: the same under each of its names.
    pub device: u64,
}

impl ZoneReport {
    /// Returns whether there are zones, each of which begins where the one before ends.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let mut at = 0;
        let mut follows = |zone: &Zone| {
            let begins = zone.start == at && zone.length > 0;
            at = zone.end();
            begins
        };
        !self.zones.is_empty() && self.zones.iter().all(&mut follows)
    }
}

//! Records of the kernel's blktrace, in either byte order.
//!
//! ```text
//!  0      4         8     16      24     28      32   36      40   44     46       48
//!  │magic │sequence │time │sector │bytes │action │pid │device │cpu │error │pdu_len │ pdu …
//! ```
//!
//! The layout is `struct blk_io_trace` of `linux/blktrace_api.h`. Replayed are the events of
//! queueing ("Q"), as fio does: later ones show what merging made of them.

use fathom_core::{Direction, Nanos, SyncKind};

use crate::error::IologErrorKind;
use crate::text::{TIME_MAX, checked_length};

/// Byte order of a trace: that of the machine that recorded it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    /// Recognises a trace by its first bytes.
    pub(crate) fn of(first: &[u8]) -> Option<Self> {
        let magic: [u8; 4] = first.get(..4)?.try_into().ok()?;
        let is_magic = |word: u32| word & !VERSION_MASK == MAGIC;
        if is_magic(u32::from_le_bytes(magic)) {
            Some(Self::Little)
        } else if is_magic(u32::from_be_bytes(magic)) {
            Some(Self::Big)
        } else {
            None
        }
    }

    fn u16(self, bytes: &[u8; RECORD_BYTES], at: usize) -> u16 {
        let word = [bytes[at], bytes[at + 1]];
        match self {
            Self::Little => u16::from_le_bytes(word),
            Self::Big => u16::from_be_bytes(word),
        }
    }

    fn u32(self, bytes: &[u8; RECORD_BYTES], at: usize) -> u32 {
        let (low, high) = match self {
            Self::Little => (at, at + 2),
            Self::Big => (at + 2, at),
        };
        u32::from(self.u16(bytes, low)) | u32::from(self.u16(bytes, high)) << 16
    }

    fn u64(self, bytes: &[u8; RECORD_BYTES], at: usize) -> u64 {
        let (low, high) = match self {
            Self::Little => (at, at + 4),
            Self::Big => (at + 4, at),
        };
        u64::from(self.u32(bytes, low)) | u64::from(self.u32(bytes, high)) << 32
    }
}

impl ByteOrder {
    /// Returns a record's fixed part in little-endian order, with another time.
    pub(crate) fn little_endian(
        self,
        bytes: &[u8; RECORD_BYTES],
        time: Nanos,
    ) -> [u8; RECORD_BYTES] {
        let mut fixed = *bytes;
        if self == Self::Big {
            let mut at = 0;
            for width in FIELD_BYTES {
                fixed[at..at + width].reverse();
                at += width;
            }
        }
        fixed[8..16].copy_from_slice(&time.get().to_le_bytes());
        fixed
    }
}

/// Fixed part of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceRecord {
    /// Time on the kernel's clock.
    pub(crate) time: Nanos,
    /// Device number, as the kernel encodes it.
    device: u32,
    sector: u64,
    bytes: u32,
    action: u32,
    /// Bytes that follow and do not belong to the next record.
    pub(crate) pdu_bytes: u16,
}

/// Meaning of a record for a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TraceEvent {
    /// An op was queued.
    Data {
        direction: Direction,
        offset: u64,
        length: u32,
    },
    /// A flush was queued.
    Flush,
    /// An op was completed.
    Complete,
    /// Nothing to replay.
    Other,
}

impl TraceEvent {
    /// Kind of sync that stands for a flush of the device.
    pub(crate) const FLUSH: SyncKind = SyncKind::Full;
}

impl TraceRecord {
    /// Decodes the fixed part of a record.
    pub(crate) fn decode(
        bytes: &[u8; RECORD_BYTES],
        order: ByteOrder,
    ) -> Result<Self, IologErrorKind> {
        let magic = order.u32(bytes, 0);
        if magic & !VERSION_MASK != MAGIC {
            return Err(IologErrorKind::Magic(magic));
        }
        let version = magic.to_le_bytes()[0];
        if version != VERSION {
            return Err(IologErrorKind::TraceVersion(version));
        }
        let time = order.u64(bytes, 8);
        if time > TIME_MAX {
            return Err(IologErrorKind::TooLarge("time", TIME_MAX));
        }
        Ok(Self {
            time: Nanos::new(time),
            sector: order.u64(bytes, 16),
            bytes: order.u32(bytes, 24),
            action: order.u32(bytes, 28),
            device: order.u32(bytes, 36),
            pdu_bytes: order.u16(bytes, 46),
        })
    }

    /// Returns the major and minor number of the device.
    pub(crate) const fn device(&self) -> (u32, u32) {
        (self.device >> MINOR_BITS, self.device & MINOR_MASK)
    }

    /// Returns the meaning of the record.
    pub(crate) fn event(&self) -> Result<TraceEvent, IologErrorKind> {
        let is = |category: u32| self.action >> CATEGORY_SHIFT & category != 0;
        let action = self.action & ACTION_MASK;
        if is(NOTIFY) || is(PASSTHROUGH) {
            return Ok(TraceEvent::Other);
        }
        if action == COMPLETE {
            return Ok(TraceEvent::Complete);
        }
        if action != QUEUE {
            return Ok(TraceEvent::Other);
        }
        if self.bytes == 0 {
            return Ok(if is(FLUSH) {
                TraceEvent::Flush
            } else {
                TraceEvent::Other
            });
        }
        let direction = if is(DISCARD) {
            Direction::Trim
        } else if is(WRITE) {
            Direction::Write
        } else {
            Direction::Read
        };
        let offset = self.sector.checked_mul(SECTOR_BYTES);
        let offset = offset.ok_or(IologErrorKind::TooLarge("sector", u64::MAX / SECTOR_BYTES))?;
        Ok(TraceEvent::Data {
            direction,
            offset,
            length: checked_length(offset, self.bytes.into())?,
        })
    }
}

/// Bytes of a record's fixed part.
pub(crate) const RECORD_BYTES: usize = 48;

/// Widths of the fields of the fixed part.
const FIELD_BYTES: [usize; 11] = [4, 4, 8, 8, 4, 4, 4, 4, 4, 2, 2];

const MAGIC: u32 = 0x6561_7400;
const VERSION_MASK: u32 = 0xff;
const VERSION: u8 = 7;
const SECTOR_BYTES: u64 = 512;
const MINOR_BITS: u32 = 20;
const MINOR_MASK: u32 = (1 << MINOR_BITS) - 1;

// Actions, without the bit that says that a cgroup's identifier follows.
const ACTION_MASK: u32 = 0xffff & !(1 << 8);
const QUEUE: u32 = 1;
const COMPLETE: u32 = 8;

// Categories.
const CATEGORY_SHIFT: u32 = 16;
const WRITE: u32 = 1 << 1;
const FLUSH: u32 = 1 << 2;
const PASSTHROUGH: u32 = 1 << 9;
const NOTIFY: u32 = 1 << 10;
const DISCARD: u32 = 1 << 13;

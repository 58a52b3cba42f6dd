//! Requests to a queue (bios), and the pieces into which they are split.

use fathom_core::{IoPriority, OpKind};

/// One submission to the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bio {
    /// Kind of the operation.
    pub kind: OpKind,
    /// Byte offset on the device.
    pub offset: u64,
    /// Bytes; 0 for a sync.
    pub length: u32,
    /// Priority class.
    pub class: Class,
    /// Owner of its pieces, numbered by the caller.
    pub owner: u32,
}

/// Priority class of a request; the most urgent first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Before all others.
    RealTime,
    /// Default class.
    #[default]
    BestEffort,
    /// Idle class: only when nothing else is queued.
    Idle,
}

impl Class {
    /// Returns the class of a kernel I/O priority.
    #[must_use]
    pub const fn from_priority(raw: u16) -> Self {
        match IoPriority::from_raw(raw).class {
            1 => Self::RealTime,
            3 => Self::Idle,
            _ => Self::BestEffort,
        }
    }

    /// Returns the class as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// Size limits of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes (`max_sectors_kb`); at least one page.
    pub max_bytes: u32,
    /// Discontiguous pages in memory (`max_segments`); at least 1. No page here adjoins another.
    pub max_segments: u32,
}

impl Limits {
    /// Returns the largest number of bytes in a request with data.
    #[must_use]
    pub fn bytes(&self) -> u32 {
        let segments = self.max_segments.max(1).saturating_mul(PAGE_BYTES);
        self.max_bytes.max(PAGE_BYTES).min(segments)
    }

    /// Returns the size of a bio's first piece; its full size if it moves no data.
    #[must_use]
    pub fn piece(&self, bio: &Bio) -> u32 {
        if moves_data(bio.kind) {
            bio.length.min(self.bytes())
        } else {
            bio.length
        }
    }

    /// Returns the number of pieces of a bio, at least 1.
    #[must_use]
    pub fn pieces(&self, bio: &Bio) -> u32 {
        bio.length.div_ceil(self.piece(bio).max(1)).max(1)
    }
}

impl Default for Limits {
    /// Returns the kernel's defaults for a disk that reports no limits.
    fn default() -> Self {
        Self {
            max_bytes: 1280 * 1024,
            max_segments: 1024,
        }
    }
}

/// Returns whether the size limits apply to this kind.
const fn moves_data(kind: OpKind) -> bool {
    use fathom_core::Direction::{Read, Write};
    matches!(kind, OpKind::Data(Read | Write))
}

/// Page size of the modelled machines.
const PAGE_BYTES: u32 = 4096;

#[cfg(test)]
mod tests {
    use fathom_core::{Direction, SyncKind};

    use super::*;

    #[track_caller]
    fn check(limits: (u32, u32), kind: OpKind, length: u32, want: (u32, u32)) {
        let limits = Limits {
            max_bytes: limits.0,
            max_segments: limits.1,
        };
        let bio = Bio {
            kind,
            offset: 0,
            length,
            class: Class::default(),
            owner: 0,
        };
        assert_eq!((limits.piece(&bio), limits.pieces(&bio)), want);
    }

    #[test]
    fn data_are_cut_by_sectors_and_by_segments() {
        let write = OpKind::Data(Direction::Write);
        check((131_072, 256), write, 1 << 20, (131_072, 8));
        check((131_072, 256), write, (1 << 20) + 512, (131_072, 9));
        check((131_072, 16), write, 1 << 20, (65_536, 16));
        check((131_072, 256), write, 4096, (4096, 1));
        check((0, 0), write, 8192, (4096, 2));
    }

    #[test]
    fn what_moves_no_data_stays_whole() {
        check(
            (4096, 1),
            OpKind::Data(Direction::Trim),
            1 << 30,
            (1 << 30, 1),
        );
        check((4096, 1), OpKind::Sync(SyncKind::Full), 0, (0, 1));
    }

    #[test]
    fn the_class_is_the_kernels() {
        for (raw, want) in [(0, Class::BestEffort), (0x2000, Class::RealTime)] {
            assert_eq!(Class::from_priority(raw), want);
        }
        assert_eq!(Class::from_priority(0x4004), Class::BestEffort);
        assert_eq!(Class::from_priority(0x6007), Class::Idle);
    }
}

//! Trims that share an UNMAP.

use fathom_core::{FileIndex, Slot};

use crate::scsi::cdb::{Extent, UNMAP_RANGES_MAX};

/// Most that a disk takes in one UNMAP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnmapLimits {
    ranges: u32,
    /// Blocks of all ranges.
    blocks: u32,
}

impl UnmapLimits {
    /// Limits of a disk that does not tell them.
    pub(super) const ONE_RANGE: Self = Self {
        ranges: 1,
        blocks: u32::MAX,
    };

    /// Decodes the page Block Limits (SBC-4): MAXIMUM UNMAP LBA COUNT and MAXIMUM UNMAP BLOCK
    /// DESCRIPTOR COUNT, which older pages are too short for.
    pub(super) fn of_page(page: &[u8; 64]) -> Self {
        let [code, length_high, length_low] = [page[1], page[2], page[3]];
        let length = u16::from_be_bytes([length_high, length_low]);
        if code != 0xb0 || length < LENGTH_WITH_UNMAP {
            return Self::ONE_RANGE;
        }
        let word = |at: usize| {
            let bytes = page[at..].first_chunk().copied();
            u32::from_be_bytes(bytes.unwrap_or_default())
        };
        Self {
            ranges: word(24).max(1),
            blocks: word(20),
        }
    }
}

/// Trims that are gathered until they are sent, as one UNMAP.
#[derive(Debug)]
pub(super) struct Unmap {
    /// Ranges that a parameter list has room for.
    room: u16,
    file: FileIndex,
    /// Slots of the ops, by range.
    pub(super) slots: Vec<Slot>,
    pub(super) ranges: Vec<Extent>,
    /// Blocks of all ranges.
    blocks: u64,
}

impl Unmap {
    /// Creates an empty one, for the trims of a queue of `depth` slots.
    pub(super) fn new(depth: u32) -> Self {
        let room = u16::try_from(depth).unwrap_or(u16::MAX);
        let room = room.min(UNMAP_RANGES_MAX);
        Self {
            room,
            file: FileIndex::new(0),
            slots: Vec::with_capacity(room.into()),
            ranges: Vec::with_capacity(room.into()),
            blocks: 0,
        }
    }

    /// Returns the number of ranges that there is room for.
    pub(super) const fn room(&self) -> u16 {
        self.room
    }

    /// Returns the number of its ranges.
    pub(super) fn count(&self) -> u16 {
        // Cannot be cut: it has no more than there is room for.
        u16::try_from(self.ranges.len()).unwrap_or(self.room)
    }

    pub(super) const fn file(&self) -> FileIndex {
        self.file
    }

    /// Returns whether a range can be added to the others. The first one always can: the disk
    /// itself refuses it if it is too long.
    pub(super) fn takes(&self, file: FileIndex, range: Extent, limits: UnmapLimits) -> bool {
        let count = self.count();
        if count == 0 {
            return true;
        }
        file == self.file
            && count < self.room
            && u32::from(count) < limits.ranges
            && self.blocks + u64::from(range.blocks) <= limits.blocks.into()
    }

    pub(super) fn add(&mut self, slot: Slot, file: FileIndex, range: Extent) {
        self.file = file;
        self.slots.push(slot);
        self.ranges.push(range);
        self.blocks += u64::from(range.blocks);
    }

    pub(super) fn clear(&mut self) {
        self.slots.clear();
        self.ranges.clear();
        self.blocks = 0;
    }
}

/// Length of a page Block Limits that has the limits of UNMAP.
const LENGTH_WITH_UNMAP: u16 = 0x3c;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_of_the_page() {
        let mut page = [0; 64];
        page[..4].copy_from_slice(&[0, 0xb0, 0, 0x3c]);
        page[20..28].copy_from_slice(&[0, 0, 2, 0, 0, 0, 0, 8]);
        let want = UnmapLimits {
            ranges: 8,
            blocks: 512,
        };
        assert_eq!(UnmapLimits::of_page(&page), want);
        page[27] = 0;
        assert_eq!(UnmapLimits::of_page(&page).ranges, 1);
        for (at, byte) in [(1, 0xb2), (3, 0x0c)] {
            let mut other = page;
            other[at] = byte;
            assert_eq!(UnmapLimits::of_page(&other), UnmapLimits::ONE_RANGE);
        }
    }

    /// Returns how many ranges of 8 blocks one UNMAP takes.
    fn taken(depth: u32, limits: UnmapLimits) -> u32 {
        let mut own = Unmap::new(depth);
        let (file, range) = (
            FileIndex::new(1),
            Extent {
                first: 0,
                blocks: 8,
            },
        );
        let mut count = 0;
        while own.takes(file, range, limits) {
            own.add(Slot::new(count), file, range);
            count += 1;
        }
        assert!(!own.takes(FileIndex::new(0), range, limits) || count == 0);
        own.clear();
        assert!(own.takes(FileIndex::new(0), range, limits));
        count
    }

    #[test]
    fn ranges_are_added_up_to_each_limit() {
        let limits = |ranges, blocks| UnmapLimits { ranges, blocks };
        assert_eq!(taken(16, limits(u32::MAX, u32::MAX)), 16);
        assert_eq!(taken(1000, limits(u32::MAX, u32::MAX)), 255);
        assert_eq!(taken(16, limits(5, u32::MAX)), 5);
        assert_eq!(taken(16, limits(16, 31)), 3);
        assert_eq!(taken(16, limits(16, 7)), 1);
        assert_eq!(taken(16, UnmapLimits::ONE_RANGE), 1);
    }

    #[test]
    fn ranges_of_another_file_are_of_another_command() {
        let mut own = Unmap::new(4);
        let limits = UnmapLimits {
            ranges: 9,
            blocks: 99,
        };
        let range = Extent {
            first: 0,
            blocks: 8,
        };
        own.add(Slot::new(0), FileIndex::new(0), range);
        assert!(own.takes(FileIndex::new(0), range, limits));
        assert!(!own.takes(FileIndex::new(1), range, limits));
    }
}

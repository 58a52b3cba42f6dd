//! Several writes of a zone in flight at a time.

use fathom_core::{WriteArea, Zone};

/// Writes of a zone of which several are in flight, from the write pointer on: in its random write
/// area, or appended.
///
/// They are issued in the order of their offsets and may complete in any. The writes in flight form
/// two groups, of which the older one has the lower offsets. The pointer stays at the start of
/// the older group until all of it is done, and moves to the start of the younger one then. So two
/// counts stand for all writes, and nothing is kept for each. The price: the pointer lags behind
/// the first write in flight by up to a group.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SharedWrites {
    /// Offset of the next write.
    next: u64,
    /// Start of the younger group.
    younger_from: u64,
    /// Writes in flight of the older and of the younger group.
    older: u32,
    younger: u32,
    /// Mark of the younger group; the older one has the other.
    mark: bool,
    /// Nothing was written since the last commit.
    pub(super) is_committed: bool,
}

impl SharedWrites {
    /// Begins with nothing in flight at the write pointer of a zone.
    pub(super) const fn open(pointer: u64) -> Self {
        Self {
            next: pointer,
            younger_from: pointer,
            older: 0,
            younger: 0,
            mark: false,
            is_committed: true,
        }
    }

    /// Begins as [`open`](Self::open), after writes that are not committed.
    pub(super) const fn written(pointer: u64) -> Self {
        Self {
            is_committed: false,
            ..Self::open(pointer)
        }
    }

    pub(super) const fn is_idle(&self) -> bool {
        self.older == 0 && self.younger == 0
    }

    /// Returns the offset of the next write.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// Returns whether a write of `length` bytes fits beside those in flight: it must not move the
    /// device's pointer beyond the first of them. Alone, it may have as many bytes as the area.
    pub(super) const fn fits(&self, zone: &Zone, area: WriteArea, length: u64) -> bool {
        let done = zone.write_pointer - zone.start;
        let limit = zone.start + done - done % area.granule + area.bytes;
        self.is_idle() || self.next + length <= limit
    }

    /// Notes a write of `length` bytes at the next offset, and returns the mark of its group.
    pub(super) const fn issue(&mut self, length: u64) -> bool {
        self.is_committed = false;
        if self.is_idle() {
            // It is a group of its own, and the next write begins another.
            self.older = 1;
            self.younger_from = self.next + length;
            self.next = self.younger_from;
            return !self.mark;
        }
        self.younger += 1;
        self.next += length;
        self.mark
    }

    /// Notes the end of a write of the group with this mark, and returns the offset up to which all
    /// is done if that has changed.
    pub(super) const fn end(&mut self, mark: bool) -> Option<u64> {
        if mark == self.mark {
            self.younger -= 1;
        } else {
            self.older -= 1;
        }
        if self.older > 0 {
            return None;
        }
        let done = match self.younger {
            0 => self.next,
            _ => self.younger_from,
        };
        self.older = self.younger;
        self.younger = 0;
        self.younger_from = self.next;
        self.mark = !self.mark;
        Some(done)
    }

    /// Takes back a write that was not issued after all. If others follow it, its bytes stay
    /// unwritten, as those of a failed write do.
    pub(super) const fn take_back(&mut self, mark: bool, offset: u64, length: u64) -> Option<u64> {
        if offset + length == self.next {
            self.next = offset;
            if self.younger_from > offset {
                self.younger_from = offset;
            }
        }
        self.end(mark)
    }

    /// Returns where the next write goes after a failed one, given the zone as the device reports
    /// it; `None` if its pointer is not where the writes so far may have left it.
    ///
    /// Writes that took effect end within the area: what a failed one leaves unwritten before its
    /// end stays so, and what lies beyond is written again.
    pub(super) fn resume(&self, found: &Zone, area: WriteArea) -> Option<u64> {
        let ahead = self.next.checked_sub(found.write_pointer)?;
        let agrees = found.has_area && ahead <= 2 * area.bytes;
        agrees.then(|| self.next.min(found.write_pointer + area.bytes))
    }
}

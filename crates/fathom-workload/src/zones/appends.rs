//! Appends: writes whose place in their zone the device chooses.
//!
//! The device performs the appends in flight in any order, each at its write pointer. The table
//! gives them offsets in the order of issue: the pointer after a group of them is right, but two
//! may have changed places.

use fathom_core::Zone;

use crate::pattern::OpTarget;

use super::answer::{ZoneAnswer, ZoneRules};
use super::shared_writes::SharedWrites;
use super::table::ZoneTable;

impl ZoneTable {
    /// Makes room for the counts of appends, if a job appends.
    pub(super) fn prepare_appends(&mut self, rules: &ZoneRules) {
        if rules.appends && self.shared_writes.is_empty() {
            self.shared_writes = vec![SharedWrites::default(); self.zones.len()].into_boxed_slice();
        }
    }

    /// Returns whether several writes of a zone may be in flight.
    #[inline]
    pub(super) fn shares_writes(&self, index: usize) -> bool {
        self.zones[index].appends || self.has_area(index)
    }

    /// Issues an append to a zone without an area.
    pub(super) fn append(&mut self, index: usize, target: &OpTarget, length: u32) -> ZoneAnswer {
        if !self.zones[index].appends {
            self.zones[index].appends = true;
            self.shared_writes[index] = SharedWrites::open(self.zones[index].zone.write_pointer);
        }
        self.issue_shared(index, target, length)
    }

    /// Moves the pointer of a zone after the end of one of several writes.
    pub(super) fn move_shared_pointer(&mut self, index: usize, pointer: Option<u64>) {
        if self.has_area(index) {
            return self.move_pointer_in_area(index, pointer);
        }
        // After a failure, only the device knows how far it has come.
        if let Some(pointer) = pointer.filter(|_| !self.zones[index].stale) {
            self.move_pointer(index, pointer);
        }
        self.zones[index].appends = !self.shared_writes[index].is_idle();
    }

    /// Returns whether the write pointer of a zone with appends in flight is where they may have
    /// left it.
    pub(super) fn agrees_with_appends(&self, index: usize, found: &Zone) -> bool {
        let from = self.zones[index].zone.write_pointer;
        (from..=self.shared_writes[index].next()).contains(&found.write_pointer)
    }
}

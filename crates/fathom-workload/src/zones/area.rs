//! Random write areas: several writes of a zone in flight at a time.

use fathom_core::{Zone, ZoneCondition};

use crate::pattern::OpTarget;

use super::answer::{FinishReason, StepKind, ZoneAnswer, ZoneHold, ZoneRules, ZoneStep};
use super::shared_writes::SharedWrites;
use super::table::{Held, ZoneTable, issue};

impl ZoneTable {
    /// Returns whether a zone has a random write area.
    #[inline]
    pub(super) fn has_area(&self, index: usize) -> bool {
        self.zones[index].zone.has_area
    }

    /// Returns whether writes or a command have a zone.
    pub(super) fn is_held(&self, index: usize) -> bool {
        let has_writes = self.shares_writes(index) && !self.shared_writes[index].is_idle();
        self.zones[index].held != Held::Free || has_writes
    }

    /// Returns the offset of the next write of a zone.
    pub(super) fn next_write(&self, index: usize) -> u64 {
        match self.shares_writes(index) {
            true => self.shared_writes[index].next(),
            false => self.zones[index].zone.write_pointer,
        }
    }

    /// Returns whether a zone must be opened with an area before a job writes there.
    pub(super) fn wants_area(&self, rules: &ZoneRules, index: usize) -> bool {
        if !rules.areas || self.area.is_none() {
            return false;
        }
        // The condition is that of the last report, step or reset: writes do not change it.
        let state = &self.zones[index];
        state.zone.condition == ZoneCondition::Empty && state.written() == 0
    }

    /// Returns whether a write of `length` bytes has to wait for those in flight in the area of its
    /// zone.
    pub(super) fn overfills(&self, index: usize, length: u64) -> bool {
        if !self.has_area(index) {
            return false;
        }
        let (zone, writes) = (&self.zones[index].zone, &self.shared_writes[index]);
        self.area
            .is_some_and(|area| !writes.fits(zone, area, length))
    }

    /// Returns whether a zone that takes several writes takes one more, or what has to come before
    /// it.
    pub(super) fn takes_another(&self, rules: &ZoneRules, index: usize) -> bool {
        let state = &self.zones[index];
        let smallest = u64::from(rules.smallest_write);
        let room = state
            .zone
            .write_end()
            .saturating_sub(self.next_write(index));
        // Reports and finishes come when nothing is in flight; what is full is finished first.
        let needs_quiet = state.stale || room < smallest;
        match self.is_held(index) {
            true => state.held == Held::Free && !needs_quiet && !self.overfills(index, smallest),
            false => state.stale || !state.is_full(),
        }
    }

    /// Issues one of several writes of a zone: in its area, where it fits, or appended.
    pub(super) fn issue_shared(
        &mut self,
        index: usize,
        target: &OpTarget,
        length: u32,
    ) -> ZoneAnswer {
        let writes = &mut self.shared_writes[index];
        let offset = writes.next();
        let mark = writes.issue(length.into());
        match issue(index, target, offset, length) {
            ZoneAnswer::Issue(target, mut hold) => {
                hold.mark = Some(mark);
                ZoneAnswer::Issue(target, hold)
            }
            other => other,
        }
    }

    /// Returns the step that finishes a zone that is written whole, if there is one: on the device,
    /// it is open until then.
    pub(super) fn finish_written(&mut self) -> Option<ZoneAnswer> {
        if self.written_whole == 0 {
            return None;
        }
        let is_one = |&&number: &&u32| {
            let index = number as usize;
            let is_stale = self.zones[index].stale;
            self.zones[index].is_full() && !self.is_held(index) && !is_stale
        };
        let index = *self.open.iter().find(is_one)? as usize;
        Some(self.hold_for(index, StepKind::Finish(FinishReason::WrittenWhole)))
    }

    /// Returns the step that puts what was written in an area of a range behind the write pointer,
    /// if there is one: what other programs know of a zone ends there.
    pub(crate) fn commit_of(&mut self, rules: &ZoneRules) -> Option<ZoneStep> {
        let is_one = |&&number: &&u32| {
            let index = number as usize;
            let is_written = self.has_area(index) && !self.shared_writes[index].is_committed;
            let is_ready = !self.is_held(index) && !self.zones[index].stale;
            rules.range.contains(&index) && is_written && is_ready
        };
        let index = *self.open.iter().find(is_one)? as usize;
        let kind = match self.zones[index].is_full() {
            true => StepKind::Finish(FinishReason::WrittenWhole),
            false => StepKind::Commit,
        };
        self.shared_writes[index].is_committed = true;
        match self.hold_for(index, kind) {
            ZoneAnswer::Do(step) => Some(step),
            _ => None,
        }
    }

    /// Notes that a zone was opened with an area.
    pub(super) fn give_area(&mut self, index: usize) {
        let zone = &mut self.zones[index].zone;
        (zone.condition, zone.has_area) = (ZoneCondition::ExplicitlyOpen, true);
        self.shared_writes[index] = SharedWrites::open(zone.write_pointer);
    }

    /// Notes that a zone has no area any more.
    pub(super) fn take_area(&mut self, index: usize) {
        if self.has_area(index) {
            self.written_whole -= u32::from(self.zones[index].is_full());
            self.zones[index].zone.has_area = false;
        }
    }

    /// Returns whether a zone as the device reports it, after a write has failed, is as jobs know
    /// it.
    pub(crate) fn agrees(&self, hold: ZoneHold, found: &Zone) -> bool {
        let index = hold.zone as usize;
        match hold.mark {
            Some(_) if self.has_area(index) => self.resume_of(index, found).is_some(),
            Some(_) => self.agrees_with_appends(index, found),
            None => found.write_pointer == hold.offset,
        }
    }

    /// Returns where the writes of a zone with an area go on after one that failed; `None` if the
    /// zone is not as jobs have left it.
    pub(super) fn resume_of(&self, index: usize, found: &Zone) -> Option<u64> {
        let area = self.area.filter(|_| self.has_area(index))?;
        self.shared_writes[index].resume(found, area)
    }

    /// Goes on in the area of a zone at `pointer` after a failed write.
    pub(super) fn resume_in_area(&mut self, index: usize, pointer: u64) {
        self.move_pointer_in_area(index, Some(pointer));
        self.shared_writes[index] = SharedWrites::written(pointer);
    }

    /// Moves the pointer of a zone with an area after the end of a write.
    pub(super) fn move_pointer_in_area(&mut self, index: usize, pointer: Option<u64>) {
        if let Some(pointer) = pointer {
            let was_full = self.zones[index].is_full();
            self.move_pointer(index, pointer);
            let is_full = self.zones[index].is_full();
            self.written_whole += u32::from(is_full);
            self.written_whole -= u32::from(was_full);
        }
    }

    /// Has the area of a zone follow the write pointer after a write that was alone.
    pub(super) fn follow_pointer(&mut self, index: usize) {
        if self.has_area(index) {
            let pointer = self.zones[index].zone.write_pointer;
            self.shared_writes[index] = SharedWrites::written(pointer);
            self.written_whole += u32::from(self.zones[index].is_full());
        }
    }
}

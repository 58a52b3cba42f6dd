//! Random write areas: several writes of a zone in flight at a time.

use fathom_core::{WriteArea, Zone, ZoneCondition};

use crate::pattern::OpTarget;

use super::answer::{FinishReason, StepKind, ZoneAnswer, ZoneHold, ZoneRules, ZoneStep};
use super::table::{Held, ZoneTable, issue};

/// Writes of a zone with a random write area, from the write pointer on.
///
/// They are issued in the order of their offsets and may complete in any. The writes in flight form
/// two groups, of which the older one has the lower offsets. The pointer stays at the start of
/// the older group until all of it is done, and moves to the start of the younger one then. So two
/// counts stand for all writes, and nothing is kept for each. The price: the pointer lags behind
/// the first write in flight by up to a group.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AreaWrites {
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
    is_committed: bool,
}

impl AreaWrites {
    /// Begins with nothing in flight at the write pointer of a zone that has an area.
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
    const fn written(pointer: u64) -> Self {
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

impl ZoneTable {
    /// Returns whether a zone has a random write area.
    #[inline]
    pub(super) fn has_area(&self, index: usize) -> bool {
        self.zones[index].zone.has_area
    }

    /// Returns whether writes or a command have a zone.
    pub(super) fn is_held(&self, index: usize) -> bool {
        let has_writes = self.has_area(index) && !self.area_writes[index].is_idle();
        self.zones[index].held != Held::Free || has_writes
    }

    /// Returns the offset of the next write of a zone.
    pub(super) fn next_write(&self, index: usize) -> u64 {
        match self.has_area(index) {
            true => self.area_writes[index].next(),
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
        let (zone, writes) = (&self.zones[index].zone, &self.area_writes[index]);
        self.area
            .is_some_and(|area| !writes.fits(zone, area, length))
    }

    /// Returns whether a zone with an area takes one more write, or what has to come before it.
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

    /// Issues a write in the area of a zone, where it fits.
    pub(super) fn issue_in_area(
        &mut self,
        index: usize,
        target: &OpTarget,
        length: u32,
    ) -> ZoneAnswer {
        let writes = &mut self.area_writes[index];
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
            let is_written = self.has_area(index) && !self.area_writes[index].is_committed;
            let is_ready = !self.is_held(index) && !self.zones[index].stale;
            rules.range.contains(&index) && is_written && is_ready
        };
        let index = *self.open.iter().find(is_one)? as usize;
        let kind = match self.zones[index].is_full() {
            true => StepKind::Finish(FinishReason::WrittenWhole),
            false => StepKind::Commit,
        };
        self.area_writes[index].is_committed = true;
        match self.hold_for(index, kind) {
            ZoneAnswer::Do(step) => Some(step),
            _ => None,
        }
    }

    /// Notes that a zone was opened with an area.
    pub(super) fn give_area(&mut self, index: usize) {
        let zone = &mut self.zones[index].zone;
        (zone.condition, zone.has_area) = (ZoneCondition::ExplicitlyOpen, true);
        self.area_writes[index] = AreaWrites::open(zone.write_pointer);
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
        match hold.mark {
            Some(_) => self.resume_of(hold.zone as usize, found).is_some(),
            None => found.write_pointer == hold.offset,
        }
    }

    /// Returns where the writes of a zone with an area go on after one that failed; `None` if the
    /// zone is not as jobs have left it.
    pub(super) fn resume_of(&self, index: usize, found: &Zone) -> Option<u64> {
        let area = self.area.filter(|_| self.has_area(index))?;
        self.area_writes[index].resume(found, area)
    }

    /// Goes on in the area of a zone at `pointer` after a failed write.
    pub(super) fn resume_in_area(&mut self, index: usize, pointer: u64) {
        self.move_pointer_in_area(index, Some(pointer));
        self.area_writes[index] = AreaWrites::written(pointer);
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
            self.area_writes[index] = AreaWrites::written(pointer);
            self.written_whole += u32::from(self.zones[index].is_full());
        }
    }
}

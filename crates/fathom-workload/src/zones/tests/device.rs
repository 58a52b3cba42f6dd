//! Device that knows its zones and nothing of jobs.

use fathom_core::{WriteArea, Zone, ZoneAction, ZoneCondition, ZoneKind, ZoneReport};

use crate::pattern::OpTarget;

pub(super) const KIB: u64 = 1024;
pub(super) const ZONE: u64 = 64 * KIB;
const BLOCK: u64 = 4 * KIB;

pub(super) struct Device {
    pub(super) zones: Vec<Zone>,
    area: Option<WriteArea>,
    /// Blocks that were written since the last reset of their zone.
    written: Vec<bool>,
    /// Writes fail, and leave holes in random write areas.
    fails: bool,
}

impl Device {
    pub(super) fn new(zones: u64, capacity: u64, odd: &[ZoneCondition]) -> Self {
        let zone = |number: u64| {
            let condition = usize::try_from(number)
                .ok()
                .and_then(|index| odd.get(index));
            let condition = condition.copied().unwrap_or(ZoneCondition::Empty);
            let written = match condition {
                ZoneCondition::Closed => 8 * KIB,
                ZoneCondition::Full => capacity,
                _ => 0,
            };
            Zone {
                start: number * ZONE,
                length: ZONE,
                capacity,
                kind: match condition {
                    ZoneCondition::NotWritePointer => ZoneKind::Conventional,
                    _ => ZoneKind::SequentialRequired,
                },
                condition,
                write_pointer: number * ZONE + written,
                has_area: false,
            }
        };
        Self {
            zones: (0..zones).map(zone).collect(),
            area: None,
            written: vec![false; block(zones * ZONE)],
            fails: false,
        }
    }

    pub(super) fn with_areas(self, area: Option<WriteArea>, fails: bool) -> Self {
        Self {
            area,
            fails,
            ..self
        }
    }

    pub(super) fn report(&self) -> ZoneReport {
        ZoneReport {
            zones: self.zones.clone(),
            open_max: None,
            area: self.area,
            device: 0,
        }
    }

    /// Returns the number of zones that are open, or written in part.
    pub(super) fn active(&self) -> usize {
        let active = |zone: &&Zone| {
            let is_begun = zone.has_area || zone.write_pointer > zone.start;
            zone.kind != ZoneKind::Conventional && zone.has_pointer() && is_begun
        };
        self.zones.iter().filter(active).count()
    }

    /// Returns the end of what is written in a zone.
    pub(super) fn end(&self, index: usize) -> u64 {
        let zone = &self.zones[index];
        let blocks = block(zone.start)..block(zone.write_end());
        let last = blocks.rev().find(|&block| self.written[block]);
        let end = last.map_or(0, |last| (last as u64 + 1) * BLOCK);
        match zone.kind {
            ZoneKind::Conventional => zone.start,
            _ => end.max(zone.write_pointer),
        }
    }

    /// Returns whether all that is written in whole granules lies behind the write pointer.
    pub(super) fn lies_behind_pointer(&self, index: usize) -> bool {
        let (zone, end) = (&self.zones[index], self.end(index));
        match self.area.filter(|_| zone.has_area) {
            Some(area) => {
                let written = end - zone.start;
                zone.write_pointer >= end - written % area.granule
            }
            None => true,
        }
    }

    pub(super) fn write(&mut self, target: &OpTarget, moves: bool) {
        let index = usize::try_from(target.offset / ZONE).expect("a zone");
        let zone = &mut self.zones[index];
        if zone.kind == ZoneKind::Conventional {
            return;
        }
        assert!(
            zone.has_pointer(),
            "{target:?} in a zone that is {}",
            zone.condition
        );
        assert!(!zone.has_area, "{target:?} as if there were no area");
        assert_eq!(target.offset, zone.write_pointer, "off the write pointer");
        let end = target.offset + u64::from(target.length);
        assert!(end <= zone.write_end(), "{target:?} beyond the capacity");
        if moves {
            zone.write_pointer = end;
            zone.condition = match end == zone.write_end() {
                true => ZoneCondition::Full,
                false => ZoneCondition::ImplicitlyOpen,
            };
            self.note(target);
        }
    }

    /// Appends to the zone of a write, wherever that was thought to be.
    pub(super) fn append(&mut self, target: &OpTarget, takes_effect: bool) {
        let zone = &self.zones[usize::try_from(target.offset / ZONE).expect("a zone")];
        let offset = zone.write_pointer;
        self.write(&OpTarget { offset, ..*target }, takes_effect);
    }

    /// Carries out a write in a random write area; one that fails takes effect all the same, or
    /// none.
    pub(super) fn write_in_area(&mut self, target: &OpTarget, takes_effect: bool) {
        let index = usize::try_from(target.offset / ZONE).expect("a zone");
        let (zone, area) = (self.zones[index], self.area.expect("areas"));
        assert!(zone.has_area && zone.has_pointer(), "{target:?}: no area");
        assert!(
            target.offset >= zone.write_pointer,
            "{target:?} behind the write pointer at {}",
            zone.write_pointer
        );
        let end = target.offset + u64::from(target.length);
        let limit = zone.write_end().min(zone.write_pointer + 2 * area.bytes);
        assert!(end <= limit, "{target:?} beyond {limit}");
        if takes_effect {
            self.note(target);
            let beyond = end.saturating_sub(zone.write_pointer + area.bytes);
            let pointer = zone.write_pointer + beyond.next_multiple_of(area.granule);
            self.move_pointer(index, pointer);
        }
    }

    /// Checks that a read is one of data.
    pub(super) fn check_read(&self, index: usize, target: &OpTarget) {
        let zone = &self.zones[index];
        let end = target.offset + u64::from(target.length);
        let mut blocks = block(target.offset)..block(end);
        let is_written = blocks.all(|block| self.written[block]);
        let has_holes = self.fails && zone.has_area;
        let is_data = zone.kind == ZoneKind::Conventional
            || end <= zone.write_pointer
            || is_written
            || has_holes;
        assert!(
            is_data && zone.condition != ZoneCondition::Offline,
            "{target:?}"
        );
    }

    /// Checks that a trim is one of a whole zone that can be reset.
    pub(super) fn check_trim(&self, target: &OpTarget) {
        let zone = self.zones[usize::try_from(target.offset / ZONE).expect("a zone")];
        let whole = (target.offset, u64::from(target.length)) == (zone.start, zone.length);
        assert!(whole, "{target:?} is no whole zone");
        assert!(can_be_reset(&zone), "{target:?}");
    }

    pub(super) fn manage(&mut self, action: ZoneAction, start: u64) {
        let index = usize::try_from(start / ZONE).expect("a zone");
        let (zone, end) = (self.zones[index], self.end(index));
        let (condition, pointer) = match action {
            ZoneAction::Reset => {
                self.written[block(start)..block(zone.end())].fill(false);
                (ZoneCondition::Empty, start)
            }
            ZoneAction::Finish => (ZoneCondition::Full, zone.write_end()),
            ZoneAction::OpenWithArea => (ZoneCondition::ExplicitlyOpen, start),
            ZoneAction::Commit => {
                let granule = self.area.expect("areas").granule;
                let committed = end - (end - start) % granule;
                return self.move_pointer(index, committed.max(zone.write_pointer));
            }
        };
        let zone = &mut self.zones[index];
        (zone.condition, zone.write_pointer) = (condition, pointer);
        zone.has_area = action == ZoneAction::OpenWithArea;
    }

    /// Moves the write pointer of a zone with an area.
    fn move_pointer(&mut self, index: usize, pointer: u64) {
        let zone = &mut self.zones[index];
        zone.write_pointer = pointer.min(zone.write_end());
        if zone.write_pointer == zone.write_end() {
            (zone.condition, zone.has_area) = (ZoneCondition::Full, false);
        }
    }

    /// Notes that blocks are written, each only once.
    fn note(&mut self, target: &OpTarget) {
        let end = target.offset + u64::from(target.length);
        for written in &mut self.written[block(target.offset)..block(end)] {
            assert!(!*written, "{target:?} is written again");
            *written = true;
        }
    }
}

fn block(offset: u64) -> usize {
    usize::try_from(offset / BLOCK).expect("few blocks")
}

/// Returns whether a device resets a zone.
pub(super) fn can_be_reset(zone: &Zone) -> bool {
    let is_lost = matches!(
        zone.condition,
        ZoneCondition::Offline | ZoneCondition::ReadOnly
    );
    zone.kind != ZoneKind::Conventional && !is_lost
}

//! Zoned: a device whose zones are written at their write pointers only, as host-managed disks and
//! NVMe zoned namespaces are.
//!
//! A trim of a whole zone is its reset, and takes the device's time; any other trim fails.
//!
//! A write that does not begin at the write pointer, crosses the capacity or exceeds the limit of
//! open zones fails, as does any op on an offline zone; the device below never sees it. Zones may
//! go offline or read-only at a given time, or be reset as if by another host.
//!
//! A zone that was opened with a random write area takes writes in any order that begin at or
//! beyond the write pointer, and end within two areas of it.
//!
//! # Limits
//! Resets, commits and finishes by command take no time. A zone stays open from its first write
//! until it is full, finished or reset: the device closes none by itself. Reads beyond the write
//! pointer succeed.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use fathom_core::{
    BlockDevice, Command, CommandData, Direction, Errno, Finished, Geometry, Nanos, OpKind, Tick,
    WriteArea, Zone, ZoneAction, ZoneCondition, ZoneKind, ZoneReport,
};

use super::Layer;
use crate::Parameters;

/// Configuration of a zoned layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZonedConfig {
    /// Bytes of the device below.
    pub bytes: u64,
    /// Bytes of a zone, ≥ 1; the last one may be shorter.
    pub zone_bytes: u64,
    /// Bytes of a zone that can be written, at most `zone_bytes`.
    pub capacity: u64,
    /// Conventional zones at the start of the device.
    pub conventional: u64,
    /// Largest number of open zones; `None` without a limit.
    pub open_max: Option<u32>,
    /// Random write areas; `None` if zones have none.
    pub area: Option<WriteArea>,
    /// Changes that the device makes by itself, all at the same time after it is opened.
    pub events: ZoneEvents,
}

/// Changes of zones that no job asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZoneEvents {
    /// Time of the changes.
    pub at: Nanos,
    /// Number of a zone that goes offline.
    pub offline: Option<u64>,
    /// Number of a zone that becomes read-only.
    pub read_only: Option<u64>,
    /// Number of a zone that another host resets.
    pub reset: Option<u64>,
}

impl ZonedConfig {
    /// Returns the zones, all of them empty.
    #[must_use]
    pub fn zones(&self) -> Vec<Zone> {
        let count = self.bytes.div_ceil(self.zone_bytes);
        let zone = |number: u64| {
            let start = number * self.zone_bytes;
            let length = self.zone_bytes.min(self.bytes - start);
            let conventional = number < self.conventional;
            Zone {
                start,
                length,
                capacity: if conventional {
                    length
                } else {
                    self.capacity.min(length)
                },
                kind: match conventional {
                    true => ZoneKind::Conventional,
                    false => ZoneKind::SequentialRequired,
                },
                condition: match conventional {
                    true => ZoneCondition::NotWritePointer,
                    false => ZoneCondition::Empty,
                },
                write_pointer: start,
                has_area: false,
            }
        };
        (0..count).map(zone).collect()
    }
}

impl Layer for ZonedConfig {
    fn over(&self, device: Box<dyn BlockDevice>, opened: Tick) -> Box<dyn BlockDevice> {
        Box::new(Zoned::new(device, self.clone(), opened))
    }

    fn zones(&self) -> Option<ZoneReport> {
        Some(ZoneReport {
            zones: self.zones(),
            open_max: self.open_max,
            area: self.area,
            device: 0,
        })
    }
}

/// Zoned device.
///
/// A command costs a division and a table entry more than that of the device below.
#[derive(Debug)]
pub struct Zoned<D> {
    device: D,
    config: ZonedConfig,
    zones: Vec<Zone>,
    /// End of what is written in the random write area of each zone; none if there are no areas.
    written: Vec<u64>,
    open: u32,
    areas: u32,
    /// Time of the changes to come.
    events_at: Option<Tick>,
    /// Commands that failed here, in order.
    failed: VecDeque<Finished>,
    /// By tag: write in flight that has moved its zone's write pointer.
    writes: Vec<Option<Command>>,
}

impl<D: BlockDevice> Zoned<D> {
    /// Divides `device` into zones at the time `opened`.
    #[must_use]
    pub fn new(device: D, config: ZonedConfig, opened: Tick) -> Self {
        let events = &config.events;
        let changes = [events.offline, events.read_only, events.reset];
        let changes = changes.iter().any(Option::is_some);
        let zones = config.zones();
        let with_areas = zones.iter().filter(|_| config.area.is_some());
        Self {
            written: with_areas.map(|zone| zone.start).collect(),
            zones,
            events_at: changes.then(|| opened + events.at),
            device,
            config,
            open: 0,
            areas: 0,
            failed: VecDeque::new(),
            writes: Vec::new(),
        }
    }

    /// Checks a command against its zone, and moves the write pointer.
    fn admit(&mut self, command: &Command) -> Result<(), Errno> {
        let OpKind::Data(direction) = command.kind else {
            return Ok(());
        };
        let index = self.index(command.offset)?;
        let zone = self.zones[index];
        if zone.condition == ZoneCondition::Offline {
            return Err(Errno::EIO);
        }
        if direction == Direction::Read || zone.kind == ZoneKind::Conventional {
            return Ok(());
        }
        if direction == Direction::Trim {
            return self.reset_by_trim(command, &zone);
        }
        if let (true, Some(area)) = (zone.has_area, self.config.area) {
            return self.write_in_area(command, index, area);
        }
        let at_pointer = zone.has_pointer() && command.offset == zone.write_pointer;
        if !at_pointer || command.end() > zone.write_end() {
            return Err(Errno::EIO);
        }
        if !is_open(zone.condition) && self.has_no_room() {
            return Err(Errno::ETOOMANYREFS);
        }
        let is_full = command.end() == zone.write_end();
        self.set(
            index,
            command.end(),
            match is_full {
                true => ZoneCondition::Full,
                false => ZoneCondition::ImplicitlyOpen,
            },
        );
        let tag = command.tag as usize;
        if self.writes.len() <= tag {
            self.writes.resize(tag + 1, None);
        }
        self.writes[tag] = Some(*command);
        Ok(())
    }

    /// Moves the write pointer back to the end of what a write has transferred, unless the zone has
    /// gone on.
    fn end_write(&mut self, finished: &Finished) {
        let write = self.writes.get_mut(finished.tag as usize);
        let (Some(write), Ok(moved)) =
            (write.and_then(Option::take), u64::try_from(finished.result))
        else {
            return;
        };
        let reached = write.offset + moved;
        if let Ok(zone) = self.index(write.offset)
            && reached < write.end()
            && self.zones[zone].write_pointer == write.end()
        {
            self.set(zone, reached, ZoneCondition::ImplicitlyOpen);
        }
    }

    /// Checks a write against the random write area of its zone, and moves the write pointer up if
    /// it ends beyond the area.
    fn write_in_area(
        &mut self,
        command: &Command,
        index: usize,
        area: WriteArea,
    ) -> Result<(), Errno> {
        let zone = self.zones[index];
        let limit = zone.write_end().min(zone.write_pointer + 2 * area.bytes);
        if command.offset < zone.write_pointer || command.end() > limit {
            return Err(Errno::EIO);
        }
        self.written[index] = self.written[index].max(command.end());
        let beyond = command
            .end()
            .saturating_sub(zone.write_pointer + area.bytes);
        let moved = beyond.next_multiple_of(area.granule);
        self.commit_to(index, zone.write_pointer + moved);
        Ok(())
    }

    /// Moves the write pointer of a zone with a random write area.
    fn commit_to(&mut self, index: usize, pointer: u64) {
        let (zone, end) = (self.zones[index], self.zones[index].write_end());
        match pointer < end {
            true => self.set(index, pointer, zone.condition),
            false => self.set(index, end, ZoneCondition::Full),
        }
    }

    /// Opens an empty zone with a random write area.
    fn open_with_area(&mut self, index: usize, area: WriteArea) -> Result<(), Errno> {
        let zone = self.zones[index];
        if zone.condition != ZoneCondition::Empty {
            return Err(Errno::EIO);
        }
        if self.has_no_room() || area.zones.is_some_and(|max| self.areas >= max) {
            return Err(Errno::ETOOMANYREFS);
        }
        self.set(index, zone.start, ZoneCondition::ExplicitlyOpen);
        self.written[index] = zone.start;
        self.zones[index].has_area = true;
        self.areas += 1;
        Ok(())
    }

    fn has_no_room(&self) -> bool {
        self.config.open_max.is_some_and(|max| self.open >= max)
    }

    /// Resets the zone that a trim covers.
    fn reset_by_trim(&mut self, command: &Command, zone: &Zone) -> Result<(), Errno> {
        if command.end() != zone.end() {
            return Err(Errno::EIO);
        }
        self.manage_zone(ZoneAction::Reset, command.offset)
    }

    /// Sets pointer and condition of a zone, and counts the open ones.
    fn set(&mut self, index: usize, write_pointer: u64, condition: ZoneCondition) {
        let zone = &mut self.zones[index];
        self.open -= u32::from(is_open(zone.condition));
        self.open += u32::from(is_open(condition));
        if zone.has_area && !is_open(condition) {
            zone.has_area = false;
            self.areas -= 1;
        }
        zone.write_pointer = write_pointer;
        zone.condition = condition;
    }

    fn index(&self, offset: u64) -> Result<usize, Errno> {
        let index = usize::try_from(offset / self.config.zone_bytes).unwrap_or(usize::MAX);
        (index < self.zones.len())
            .then_some(index)
            .ok_or(Errno::EIO)
    }

    /// Makes the configured spontaneous changes, if their time has come.
    #[cold]
    fn change(&mut self) {
        self.events_at = None;
        let events = self.config.events;
        let changes = [
            (events.offline, ZoneCondition::Offline),
            (events.read_only, ZoneCondition::ReadOnly),
            (events.reset, ZoneCondition::Empty),
        ];
        for (number, condition) in changes {
            let index = number.and_then(|number| usize::try_from(number).ok());
            let zone = index.and_then(|index| Some((index, *self.zones.get(index)?)));
            if let Some((index, zone)) = zone
                && zone.kind != ZoneKind::Conventional
            {
                self.set(index, zone.start, condition);
            }
        }
    }
}

impl<D: BlockDevice> BlockDevice for Zoned<D> {
    fn geometry(&self) -> Geometry {
        self.device.geometry()
    }

    fn start(&mut self, command: &Command, data: &mut CommandData, now: Tick) {
        if self.events_at.is_some_and(|at| now >= at) {
            self.change();
        }
        match self.admit(command) {
            Ok(()) => self.device.start(command, data, now),
            Err(errno) => {
                // A refusal takes a moment, too: virtual time goes on.
                let at = now + REFUSAL;
                let finished = Finished::new(command.tag, at, errno.result());
                self.failed.push_back(finished);
            }
        }
    }

    fn next(&self) -> Option<Tick> {
        let failed = self.failed.front().map(|finished| finished.at);
        failed.into_iter().chain(self.device.next()).min()
    }

    fn completed(&mut self, now: Tick) -> Option<Finished> {
        match self.failed.front() {
            Some(finished) if finished.at <= now => self.failed.pop_front(),
            _ => {
                let finished = self.device.completed(now)?;
                self.end_write(&finished);
                Some(finished)
            }
        }
    }

    fn manage_zone(&mut self, action: ZoneAction, start: u64) -> Result<(), Errno> {
        let index = self.index(start)?;
        let zone = self.zones[index];
        let refuses = matches!(
            zone.condition,
            ZoneCondition::Offline | ZoneCondition::ReadOnly | ZoneCondition::NotWritePointer
        );
        if refuses || zone.start != start {
            return Err(Errno::EIO);
        }
        match action {
            ZoneAction::Reset => self.set(index, zone.start, ZoneCondition::Empty),
            ZoneAction::Finish => self.set(index, zone.write_end(), ZoneCondition::Full),
            ZoneAction::OpenWithArea => {
                let area = self.config.area.ok_or(Errno::EOPNOTSUPP)?;
                return self.open_with_area(index, area);
            }
            ZoneAction::Commit => {
                if let (true, Some(area)) = (zone.has_area, self.config.area) {
                    let written = self.written[index].max(zone.write_pointer);
                    let rest = (written - zone.start) % area.granule;
                    self.commit_to(index, (written - rest).max(zone.write_pointer));
                }
            }
        }
        Ok(())
    }

    fn zone(&self, offset: u64) -> Option<Zone> {
        self.zones.get(self.index(offset).ok()?).copied()
    }

    fn descriptors(&self, add: &mut dyn FnMut(BorrowedFd<'_>)) {
        self.device.descriptors(add);
    }
}

/// Keys of the layer in files.
pub(super) const KEYS: &[&str] = &[
    "zone_mib",
    "capacity_mib",
    "conventional",
    "max_open",
    "area_kib",
    "area_granule_kib",
    "max_areas",
    "event_ms",
    "goes_offline",
    "goes_read_only",
    "reset_by_other",
];

pub(super) fn read(fields: &dyn Parameters, below: u64) -> Option<Arc<dyn Layer>> {
    // All keys are read before one is refused: those that were not would be called unknown.
    let whole = |key, default| fields.whole(key, 1..=1 << 20, default);
    let zone_mib = whole("zone_mib", None);
    let capacity_mib = whole("capacity_mib", Some(zone_mib));
    let open_max = fields.count("max_open", 0..=1 << 20, Some(0));
    let zone = |key| {
        let number = fields.whole(key, 0..=NO_ZONE, Some(NO_ZONE));
        (number < NO_ZONE).then_some(number)
    };
    let zone_bytes = zone_mib << 20;
    let config = ZonedConfig {
        bytes: below,
        zone_bytes,
        capacity: capacity_mib << 20,
        conventional: fields.whole("conventional", 0..=ZONES_MAX, Some(0)),
        open_max: (open_max > 0).then_some(open_max),
        area: area(fields),
        events: ZoneEvents {
            at: fields.time("event_ms", Nanos::from_millis(1), 0.0..=1e9, Some(0.0)),
            offline: zone("goes_offline"),
            read_only: zone("goes_read_only"),
            reset: zone("reset_by_other"),
        },
    };
    match mistake(&config) {
        None => Some(Arc::new(config)),
        Some((key, why, what_to_do)) => {
            fields.refuse(key, &why, what_to_do);
            None
        }
    }
}

/// Returns the first key whose value does not fit the others or the device below, why, and what to
/// do.
fn mistake(config: &ZonedConfig) -> Option<(&'static str, String, &'static str)> {
    let (zone_mib, capacity_mib) = (config.zone_bytes >> 20, config.capacity >> 20);
    if capacity_mib > zone_mib {
        return Some((
            "capacity_mib",
            format!("a capacity of {capacity_mib} MiB exceeds the zone of {zone_mib} MiB"),
            "lower it to `zone_mib` or below",
        ));
    }
    let zones = config.bytes.div_ceil(config.zone_bytes);
    if config.conventional > zones {
        return Some((
            "conventional",
            format!(
                "{} conventional zones are more than the {zones} that the device below has",
                config.conventional
            ),
            "lower it to the number of zones or below",
        ));
    }
    if zones > ZONES_MAX {
        return Some((
            "zone_mib",
            format!("the device below has more than {ZONES_MAX} zones of {zone_mib} MiB"),
            "use larger zones or a smaller device",
        ));
    }
    let changes = [
        ("goes_offline", config.events.offline),
        ("goes_read_only", config.events.read_only),
        ("reset_by_other", config.events.reset),
    ];
    for (key, number) in changes {
        match number {
            Some(number) if number >= zones => {
                let why = format!("there is no zone {number}: the device below has {zones}");
                return Some((key, why, "zones are counted from 0"));
            }
            Some(number) if number < config.conventional => {
                let why = format!("zone {number} is conventional, so its condition never changes");
                return Some((key, why, "name a zone after the conventional ones"));
            }
            _ => {}
        }
    }
    let area = config.area?;
    (!area.bytes.is_multiple_of(area.granule)).then(|| {
        let (kib, granule_kib) = (area.bytes >> 10, area.granule >> 10);
        (
            "area_kib",
            format!("an area of {kib} KiB is not a multiple of its granule of {granule_kib} KiB"),
            "make it a multiple of `area_granule_kib`",
        )
    })
}

/// Reads the random write areas; `None` if there are none.
fn area(fields: &dyn Parameters) -> Option<WriteArea> {
    let kib = fields.whole("area_kib", 0..=1 << 20, Some(0));
    let granule_kib = fields.whole("area_granule_kib", 1..=1 << 20, Some(4));
    let zones = fields.count("max_areas", 0..=1 << 20, Some(0));
    (kib > 0).then_some(WriteArea {
        bytes: kib << 10,
        granule: granule_kib << 10,
        zones: (zones > 0).then_some(zones),
    })
}

const fn is_open(condition: ZoneCondition) -> bool {
    matches!(
        condition,
        ZoneCondition::ImplicitlyOpen | ZoneCondition::ExplicitlyOpen
    )
}

/// Time in which a device refuses a command: a guess, which only must not be 0.
const REFUSAL: Nanos = Nanos::from_micros(1);

/// Stands for no zone, beyond all of them.
const NO_ZONE: u64 = 1 << 40;

/// Most zones of a modelled device: a table of them stays below 100 MB.
const ZONES_MAX: u64 = 1 << 20;

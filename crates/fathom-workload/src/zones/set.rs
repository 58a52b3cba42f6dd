//! Zones of one device, shared by the jobs of a run.

use std::fmt;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fathom_core::{WriteArea, Zone, ZoneKind, ZoneReport};

use super::table::ZoneTable;

/// Zones of one device: state, and the rules by which jobs use them.
///
/// Create it from the device's report; all jobs of a run on the device share it, and it stays true
/// as long as only they change the zones. A write holds its zone from the decision to the
/// completion, so that no zone has two writes in flight and each write begins at the write pointer;
/// those of a zone with a random write area follow each other from there on.
///
/// # Cost
/// Two short critical sections per op; 80 bytes per zone, and 32 more where the device has random
/// write areas. Nothing is allocated after the creation.
pub struct ZoneSet {
    table: Mutex<ZoneTable>,
    emulated: bool,
    open_max: Option<u32>,
}

impl ZoneSet {
    /// Creates the zones of a device as it reports them.
    ///
    /// # Panics
    /// If the report has no zones, or zones that do not follow each other from 0 on.
    #[must_use]
    pub fn new(report: &ZoneReport) -> Self {
        Self {
            table: Mutex::new(ZoneTable::new(report)),
            emulated: false,
            open_max: report.open_max,
        }
    }

    /// Creates zones of a device that has none: `bytes` in zones of `length`, empty, of which
    /// `capacity` can be written. Resets and finishes change nothing on the device.
    ///
    /// # Panics
    /// If there is not a single zone.
    #[must_use]
    pub fn emulated(bytes: u64, length: u64, capacity: u64) -> Self {
        let zone = |number: u64| {
            let start = number * length;
            Zone {
                start,
                length,
                capacity: capacity.min(length),
                kind: ZoneKind::SequentialRequired,
                condition: fathom_core::ZoneCondition::Empty,
                write_pointer: start,
                has_area: false,
            }
        };
        let report = ZoneReport {
            // A rest at the end of the device that is shorter than a zone is left alone.
            zones: (0..bytes / length.max(1)).map(zone).collect(),
            open_max: None,
            area: None,
            device: 0,
        };
        Self {
            emulated: true,
            ..Self::new(&report)
        }
    }

    /// Returns the device's own limit of open zones.
    #[must_use]
    pub const fn open_max(&self) -> Option<u32> {
        self.open_max
    }

    /// Returns the random write areas with which zones may be opened; `None` if the device has
    /// none.
    #[must_use]
    pub fn area(&self) -> Option<WriteArea> {
        self.lock().area
    }

    /// Takes over what another name of the device reports before the jobs begin: the block device
    /// says nothing of random write areas.
    pub fn complete(&self, report: &ZoneReport) {
        let mut table = self.lock();
        if table.area.is_none() && report.area.is_some() && table.len() == report.zones.len() {
            table.take_over(report);
        }
    }

    /// Returns whether the device knows nothing of the zones.
    #[must_use]
    pub const fn is_emulated(&self) -> bool {
        self.emulated
    }

    /// Returns the largest part of `from..to` that consists of whole zones.
    #[must_use]
    pub fn whole_zones(&self, from: u64, to: u64) -> Range<u64> {
        let table = self.lock();
        let inside = table.inside(from, to);
        match inside.is_empty() {
            true => from..from,
            false => table.zone(inside.start).start..table.zone(inside.end - 1).end(),
        }
    }

    /// Returns the distances between an offset and the starts of zones, and the capacities.
    pub(crate) fn distances_from(&self, offset: u64) -> Vec<u64> {
        let table = self.lock();
        let zones = (0..table.len()).map(|index| table.zone(index));
        zones
            .flat_map(|zone| [zone.start.abs_diff(offset), zone.length, zone.capacity])
            .collect()
    }

    /// Returns the length of the first zone, which is that of all but perhaps the last.
    #[must_use]
    pub fn zone_bytes(&self) -> u64 {
        self.lock().zone(0).length
    }

    /// Returns the largest capacity of the zones that lie whole between two offsets.
    #[must_use]
    pub fn capacity_max(&self, from: u64, to: u64) -> u64 {
        self.lock().capacity_max(from, to)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, ZoneTable> {
        // A panic under the lock is a bug of ours that has ended its job; the others go on.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ZoneSet {
    /// Shows the size alone: a set may have a hundred thousand zones.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZoneSet")
            .field("zones", &self.lock().len())
            .field("emulated", &self.emulated)
            .finish_non_exhaustive()
    }
}

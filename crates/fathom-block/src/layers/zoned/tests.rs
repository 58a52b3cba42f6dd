//! Zones of a null device: write pointers, limits, areas, resets and events.

use super::*;
use crate::Null;

const MIB: u64 = 1 << 20;

/// Returns a device of four zones of 1 MiB, the first conventional, the others of 512 KiB.
fn device(events: ZoneEvents) -> Zoned<Null> {
    let config = ZonedConfig {
        bytes: 4 * MIB,
        zone_bytes: MIB,
        capacity: MIB / 2,
        conventional: 1,
        open_max: Some(1),
        area: None,
        events,
    };
    Zoned::new(Null::new(4 * MIB, 512), config, Tick::ZERO)
}

#[track_caller]
fn check(device: &mut Zoned<Null>, direction: Direction, offset: u64, want: Result<u32, Errno>) {
    let command = Command {
        tag: 0,
        kind: OpKind::Data(direction),
        offset,
        length: 256 << 10,
    };
    device.start(&command, &mut None, Tick::new(1));
    let now = Tick::ZERO + Nanos::from_millis(10);
    let moved = device.completed(now).expect("a completion").moved();
    assert_eq!(moved, want, "{direction:?} at {offset}");
}

#[test]
fn writes_off_the_pointer_fail() {
    let (write, read) = (Direction::Write, Direction::Read);
    let moved = Ok(256 << 10);
    let mut device = device(ZoneEvents::default());
    check(&mut device, write, MIB / 2, moved);
    check(&mut device, write, MIB + MIB / 4, Err(Errno::EIO));
    check(&mut device, write, MIB, moved);
    check(&mut device, write, MIB, Err(Errno::EIO));
    check(&mut device, read, MIB + MIB / 2, moved);
    // One zone may be open.
    check(&mut device, write, 2 * MIB, Err(Errno::ETOOMANYREFS));
    check(&mut device, write, MIB + MIB / 4, moved);
    check(&mut device, write, MIB + MIB / 2, Err(Errno::EIO));
    check(&mut device, write, 2 * MIB, moved);
    let pointer = |device: &Zoned<Null>| device.zone(2 * MIB).map(|zone| zone.write_pointer);
    assert_eq!(pointer(&device), Some(2 * MIB + MIB / 4));
    assert_eq!(device.manage_zone(ZoneAction::Reset, 2 * MIB), Ok(()));
    assert_eq!(pointer(&device), Some(2 * MIB));
    assert_eq!(device.manage_zone(ZoneAction::Finish, 3 * MIB), Ok(()));
    check(&mut device, write, 3 * MIB, Err(Errno::EIO));
    assert_eq!(device.manage_zone(ZoneAction::Reset, 0), Err(Errno::EIO));
}

/// Null device that moves half of each command.
#[derive(Debug)]
struct Half(Null);

impl BlockDevice for Half {
    fn geometry(&self) -> Geometry {
        self.0.geometry()
    }

    fn start(&mut self, command: &Command, data: &mut CommandData, now: Tick) {
        self.0.start(command, data, now);
    }

    fn next(&self) -> Option<Tick> {
        self.0.next()
    }

    fn completed(&mut self, now: Tick) -> Option<Finished> {
        let mut finished = self.0.completed(now)?;
        finished.result /= 2;
        Some(finished)
    }
}

#[test]
fn a_short_write_moves_the_pointer_as_far_as_it_has_come() {
    let config = device(ZoneEvents::default()).config;
    let mut device = Zoned::new(Half(Null::new(4 * MIB, 512)), config, Tick::ZERO);
    let mut write = |offset, length| {
        let command = Command {
            tag: 0,
            kind: OpKind::Data(Direction::Write),
            offset,
            length,
        };
        device.start(&command, &mut None, Tick::new(1));
        let now = Tick::ZERO + Nanos::from_millis(10);
        let moved = device.completed(now).expect("a completion").moved();
        let zone = device.zone(offset).expect("a zone");
        (moved, zone.write_pointer - MIB, zone.condition)
    };
    let open = ZoneCondition::ImplicitlyOpen;
    assert_eq!(write(MIB, 512 << 10), (Ok(256 << 10), MIB / 4, open));
    let rest = write(MIB + MIB / 4, 256 << 10);
    assert_eq!(rest, (Ok(128 << 10), MIB / 4 + MIB / 8, open));
}

#[test]
fn a_random_write_area_takes_writes_in_any_order() {
    let (write, moved) = (Direction::Write, Ok(256 << 10));
    let mut device = device(ZoneEvents::default());
    device.config.open_max = None;
    assert_eq!(
        device.manage_zone(ZoneAction::OpenWithArea, MIB),
        Err(Errno::EOPNOTSUPP)
    );
    device.config.area = Some(WriteArea {
        bytes: MIB / 4,
        granule: MIB / 4,
        zones: Some(1),
    });
    device.written = device.zones.iter().map(|zone| zone.start).collect();
    let open = |device: &mut Zoned<Null>, number| {
        device.manage_zone(ZoneAction::OpenWithArea, number * MIB)
    };
    assert_eq!(open(&mut device, 0), Err(Errno::EIO), "conventional");
    assert_eq!(open(&mut device, 1), Ok(()));
    assert_eq!(open(&mut device, 2), Err(Errno::ETOOMANYREFS));
    assert_eq!(open(&mut device, 1), Err(Errno::EIO), "open already");
    // The second quarter reaches beyond the area, and moves the pointer past the first.
    check(&mut device, write, MIB + MIB / 4, moved);
    let pointer = |device: &Zoned<Null>| {
        let zone = device.zone(MIB).expect("a zone");
        (zone.write_pointer, zone.has_area)
    };
    assert_eq!(pointer(&device), (MIB + MIB / 4, true));
    check(&mut device, write, MIB, Err(Errno::EIO));
    check(&mut device, write, MIB + MIB / 2, Err(Errno::EIO));
    check(&mut device, write, MIB + MIB / 4, moved);
    assert_eq!(device.manage_zone(ZoneAction::Commit, MIB), Ok(()));
    assert_eq!(pointer(&device), (MIB + MIB / 2, false), "full");
    assert_eq!(open(&mut device, 2), Ok(()));
}

#[test]
fn trims_reset_whole_zones() {
    let mut device = device(ZoneEvents::default());
    check(&mut device, Direction::Write, MIB, Ok(256 << 10));
    // A quarter of the zone.
    check(&mut device, Direction::Trim, MIB, Err(Errno::EIO));
    let trim = |device: &mut Zoned<Null>, offset| {
        let command = Command {
            tag: 0,
            kind: OpKind::Data(Direction::Trim),
            offset,
            length: 1 << 20,
        };
        device.start(&command, &mut None, Tick::new(1));
        let now = Tick::ZERO + Nanos::from_millis(10);
        device.completed(now).expect("a completion").moved()
    };
    assert_eq!(trim(&mut device, MIB + MIB / 2), Err(Errno::EIO));
    assert_eq!(trim(&mut device, MIB), Ok(1 << 20));
    let zone = device.zone(MIB).expect("a zone");
    assert_eq!(
        (zone.condition, zone.write_pointer),
        (ZoneCondition::Empty, MIB)
    );
    // The zone no longer counts as open.
    check(&mut device, Direction::Write, 2 * MIB, Ok(256 << 10));
}

#[test]
fn zones_change_by_themselves() {
    let events = ZoneEvents {
        at: Nanos::ZERO,
        offline: Some(1),
        read_only: Some(2),
        reset: Some(99),
    };
    let mut device = device(events);
    check(&mut device, Direction::Read, MIB, Err(Errno::EIO));
    check(&mut device, Direction::Write, 2 * MIB, Err(Errno::EIO));
    check(&mut device, Direction::Read, 2 * MIB, Ok(256 << 10));
    check(&mut device, Direction::Write, 0, Ok(256 << 10));
}

//! Zones of zoned block devices: report, reset and finish by `ioctl(2)`.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use fathom_core::{Zone, ZoneAction, ZoneCondition, ZoneKind};

/// Returns the number of zones of a block device; 0 if it is not zoned.
///
/// # Errors
/// The error of `BLKGETNRZONES`: `ENOTTY` for anything but a block device.
pub fn zone_count(device: &File) -> io::Result<u32> {
    let mut count = 0_u32;
    // SAFETY: the descriptor is open for the length of the call, and BLKGETNRZONES writes one u32
    // to the address, which is that of a live one.
    let rc = unsafe { libc::ioctl(device.as_raw_fd(), BLKGETNRZONES, &raw mut count) };
    check(rc)?;
    Ok(count)
}

/// Returns the zones of a device from the one that contains the byte `offset` on, at most `count`.
///
/// # Errors
/// The error of `BLKREPORTZONE`; `EINVAL` for zones that Linux does not know.
pub fn zones(device: &File, offset: u64, count: usize) -> io::Result<Vec<Zone>> {
    let mut found = Vec::new();
    let mut from = offset;
    while found.len() < count {
        let mut report = Report::new(from);
        report.nr_zones = u32::try_from((count - found.len()).min(BATCH)).unwrap_or(1);
        // SAFETY: the descriptor is open for the length of the call. BLKREPORTZONE reads the 16
        // bytes at the front of the report and writes at most `nr_zones` zones after them, for
        // which the live report has room: `nr_zones` ≤ BATCH.
        let rc = unsafe { libc::ioctl(device.as_raw_fd(), BLKREPORTZONE, &raw mut *report) };
        check(rc)?;
        let reported = (report.nr_zones as usize).min(BATCH);
        let has_capacity = report.flags & REPORTS_CAPACITY != 0;
        for raw in &report.zones[..reported] {
            found.push(zone(raw, has_capacity)?);
        }
        match found.last() {
            Some(last) if reported > 0 && last.end() > from => from = last.end(),
            _ => break,
        }
    }
    Ok(found)
}

/// Changes the state of the zone of `length` bytes at `start`; the device must be open for writing.
///
/// # Errors
/// The error of `BLKRESETZONE` or `BLKFINISHZONE`; `EOPNOTSUPP` for other actions.
pub fn manage_zone(device: &File, action: ZoneAction, start: u64, length: u64) -> io::Result<()> {
    let range: [u64; 2] = [start / SECTOR, length / SECTOR];
    let request = match action {
        ZoneAction::Reset => BLKRESETZONE,
        ZoneAction::Finish => BLKFINISHZONE,
        ZoneAction::OpenWithArea | ZoneAction::Commit => {
            return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        }
    };
    // SAFETY: the descriptor is open for the length of the call, and both requests read a `struct
    // blk_zone_range` of two u64 from the address, which is that of a live array.
    check(unsafe { libc::ioctl(device.as_raw_fd(), request, range.as_ptr()) })
}

/// Converts a zone as the kernel reports it.
fn zone(raw: &RawZone, has_capacity: bool) -> io::Result<Zone> {
    let unknown = || io::Error::from_raw_os_error(libc::EINVAL);
    let kind = match raw.kind {
        1 => ZoneKind::Conventional,
        2 => ZoneKind::SequentialRequired,
        3 => ZoneKind::SequentialPreferred,
        _ => return Err(unknown()),
    };
    let condition = ZoneCondition::of_code(raw.condition).ok_or_else(unknown)?;
    let bytes = |sectors: u64| sectors.saturating_mul(SECTOR);
    let length = bytes(raw.length);
    Ok(Zone {
        start: bytes(raw.start),
        length,
        capacity: match has_capacity && kind != ZoneKind::Conventional {
            true => bytes(raw.capacity).min(length),
            false => length,
        },
        kind,
        condition,
        write_pointer: bytes(raw.write_pointer),
        has_area: false,
    })
}

fn check(rc: libc::c_int) -> io::Result<()> {
    match rc {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// `struct blk_zone_report` of <linux/blkzoned.h>, with room for a batch of zones.
#[repr(C)]
struct Report {
    sector: u64,
    nr_zones: u32,
    flags: u32,
    zones: [RawZone; BATCH],
}

impl Report {
    fn new(offset: u64) -> Box<Self> {
        Box::new(Self {
            sector: offset / SECTOR,
            nr_zones: 0,
            flags: 0,
            zones: [RawZone::default(); BATCH],
        })
    }
}

/// `struct blk_zone` of <linux/blkzoned.h>.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawZone {
    start: u64,
    length: u64,
    write_pointer: u64,
    kind: u8,
    condition: u8,
    /// `non_seq`, `reset` and reserved bytes.
    hints: [u8; 6],
    capacity: u64,
    reserved: [u64; 3],
}

const _: () = assert!(size_of::<RawZone>() == 64);

/// Zones per call, 16 KiB.
const BATCH: usize = 256;
const SECTOR: u64 = 512;
/// `BLK_ZONE_REP_CAPACITY`: the field `capacity` is valid, since Linux 5.9.
const REPORTS_CAPACITY: u32 = 1;

/// `_IOWR(0x12, 130, struct blk_zone_report)`, `_IOW(0x12, 131, struct blk_zone_range)`,
/// `_IOR(0x12, 133, __u32)` and `_IOW(0x12, 136, struct blk_zone_range)` of <linux/blkzoned.h>.
const BLKREPORTZONE: libc::Ioctl = 0xc010_1282_u32 as libc::Ioctl;
const BLKRESETZONE: libc::Ioctl = 0x4010_1283_u32 as libc::Ioctl;
const BLKGETNRZONES: libc::Ioctl = 0x8004_1285_u32 as libc::Ioctl;
const BLKFINISHZONE: libc::Ioctl = 0x4010_1288_u32 as libc::Ioctl;

#[cfg(test)]
mod tests {
    use super::*;

    const SEQUENTIAL: RawZone = RawZone {
        start: 2048,
        length: 2048,
        write_pointer: 2056,
        kind: 2,
        condition: 2,
        hints: [0; 6],
        capacity: 1024,
        reserved: [0; 3],
    };

    #[test]
    fn reports_are_converted_to_bytes() {
        let want = Zone {
            start: 1 << 20,
            length: 1 << 20,
            capacity: 512 << 10,
            kind: ZoneKind::SequentialRequired,
            condition: ZoneCondition::ImplicitlyOpen,
            write_pointer: (1 << 20) + 4096,
            has_area: false,
        };
        assert_eq!(zone(&SEQUENTIAL, true).expect("a zone"), want);
        // Kernels before 5.9 have no capacity.
        let whole = zone(&SEQUENTIAL, false).expect("a zone");
        assert_eq!(whole.capacity, 1 << 20);
        let unknown = RawZone {
            condition: 9,
            ..SEQUENTIAL
        };
        assert!(zone(&unknown, true).is_err());
    }

    #[test]
    fn a_file_has_no_zones() {
        let file = File::open("/dev/null").expect("/dev/null");
        let refused = zone_count(&file).expect_err("no block device");
        assert_eq!(refused.raw_os_error(), Some(libc::ENOTTY));
        assert!(zones(&file, 0, 1).is_err());
        assert!(manage_zone(&file, ZoneAction::Reset, 0, 4096).is_err());
    }
}

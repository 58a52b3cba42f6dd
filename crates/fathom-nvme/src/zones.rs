//! Zoned namespaces: their format, the reports of their zones, and the actions on a zone.
//!
//! Offsets and values are those of the NVM Express Zoned Namespace Command Set Specification 1.1.
//! Zones leave this module in bytes, as the rest of the program has them.

use std::fmt;

use fathom_core::{WriteArea, Zone, ZoneAction, ZoneCondition, ZoneKind};

use crate::block_format::format_index;
use crate::identify::{NIDT_COMMAND_SET, Page};
use crate::wire::{u16_at, u32_at, u64_at};

/// Format of the zones of a namespace, and the device's limit of open ones.
///
/// A namespace consists of zones of one length; what is left after the last whole zone belongs to
/// none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneFormat {
    /// Length of a zone in blocks; above 0, and below 8 EiB.
    pub zone_blocks: u64,
    /// Bytes of a block's data as a power of two, 9 to 16.
    pub block_shift: u8,
    /// Number of zones, at most [`ZONES_MAX`].
    pub zones: u32,
    /// Smaller of the limits of open and of active zones; `None` if there is neither.
    pub open_max: Option<u32>,
    /// Random write areas; `None` if there are none, or of no usable size.
    pub area: Option<WriteArea>,
    /// The controller moves the write pointer over an area on command.
    pub commits: bool,
}

impl ZoneFormat {
    /// Decodes Identify Namespace (CNS 00h), and its extension by the Zoned Namespace Command Set
    /// (CNS 05h, CSI 02h); `None` for what no host can use: a block size below 512 bytes or above
    /// 64 KiB, a namespace of 8 EiB or above, zones without a length, or none or too many of them.
    #[must_use]
    pub fn decode(namespace: &Page, zoned: &Page) -> Option<Self> {
        let index = format_index(namespace);
        let block_shift = namespace[LBAF0 + 4 * index + 2];
        let blocks = u64_at(namespace, NSZE);
        let zone_blocks = u64_at(zoned, LBAFE0 + 16 * index);
        let is_usable =
            (9..=16).contains(&block_shift) && blocks <= i64::MAX.unsigned_abs() >> block_shift;
        let zones = u32::try_from(blocks.checked_div(zone_blocks)?).ok()?;
        let limits = [limit(u32_at(zoned, MAR)), limit(u32_at(zoned, MOR))];
        (is_usable && (1..=ZONES_MAX).contains(&zones)).then(|| Self {
            zone_blocks,
            block_shift,
            zones,
            open_max: limits.into_iter().flatten().min(),
            area: area(zoned, block_shift),
            commits: zoned[ZRWACAP] & ZRWACAP_FLUSH != 0,
        })
    }

    /// Returns the length of a zone in bytes.
    #[must_use]
    pub const fn zone_bytes(&self) -> u64 {
        // Cannot overflow: a zone is no longer than its namespace.
        self.zone_blocks << self.block_shift
    }

    /// Returns the first block of a zone; `None` after the last one.
    #[must_use]
    pub fn first_block(&self, zone: u64) -> Option<u64> {
        // Cannot overflow, as `zone_bytes`.
        (zone < u64::from(self.zones)).then(|| zone * self.zone_blocks)
    }

    /// Decodes the zones of a report (Zone Management Receive, action 00h): those that it counts,
    /// and has whole.
    ///
    /// # Errors
    /// The first field that no zone of this format can have.
    pub fn zones_of(&self, report: &[u8]) -> Result<Vec<Zone>, ZoneFault> {
        let Some((header, descriptors)) = report.split_at_checked(DESCRIPTOR_BYTES) else {
            return Ok(Vec::new());
        };
        let count = usize::try_from(u64_at(header, 0)).unwrap_or(usize::MAX);
        let descriptors = descriptors.chunks_exact(DESCRIPTOR_BYTES).take(count);
        descriptors.map(|own| self.zone(own)).collect()
    }

    /// Decodes the first zone of a report, which must begin at a block.
    ///
    /// # Errors
    /// As [`zones_of`](Self::zones_of), or there is no zone, or another one.
    pub fn zone_at(&self, first: u64, report: &[u8]) -> Result<Zone, ZoneFault> {
        let zones = self.zones_of(report)?;
        let zone = zones.first().copied().ok_or(ZoneField::Missing);
        let is_wanted = |zone: &Zone| zone.start >> self.block_shift == first;
        let zone = zone.and_then(|zone| is_wanted(&zone).then_some(zone).ok_or(ZoneField::First));
        zone.map_err(|field| ZoneFault { first, field })
    }

    /// Decodes a zone descriptor.
    fn zone(&self, descriptor: &[u8]) -> Result<Zone, ZoneFault> {
        let first = u64_at(descriptor, ZSLBA);
        let fault = |field| Err(ZoneFault { first, field });
        let number = first / self.zone_blocks;
        if self.first_block(number) != Some(first) {
            return fault(ZoneField::First);
        }
        if descriptor[ZONE_TYPE] & 0xf != SEQUENTIAL_REQUIRED {
            return fault(ZoneField::Type(descriptor[ZONE_TYPE] & 0xf));
        }
        let state = descriptor[ZONE_STATE] >> 4;
        // Without a write pointer are conventional zones alone, which NVMe does not have.
        let known = |condition: &ZoneCondition| *condition != ZoneCondition::NotWritePointer;
        let Some(condition) = ZoneCondition::of_code(state).filter(known) else {
            return fault(ZoneField::State(state));
        };
        let capacity = u64_at(descriptor, ZCAP);
        if capacity > self.zone_blocks {
            return fault(ZoneField::Capacity(capacity));
        }
        let start = first << self.block_shift;
        let mut zone = Zone {
            start,
            length: self.zone_bytes(),
            capacity: capacity << self.block_shift,
            kind: ZoneKind::SequentialRequired,
            condition,
            // Without meaning in other states, in which devices report anything.
            write_pointer: start,
            has_area: false,
        };
        if zone.has_pointer() {
            let pointer = u64_at(descriptor, WRITE_POINTER);
            if !(first..=first + capacity).contains(&pointer) {
                return fault(ZoneField::WritePointer(pointer));
            }
            zone.write_pointer = pointer << self.block_shift;
            // Devices leave the mark on zones that they have reset.
            zone.has_area = condition != ZoneCondition::Empty
                && descriptor[ZONE_ATTRIBUTES] & ATTRIBUTE_ZRWA != 0;
        }
        Ok(zone)
    }
}

/// Survey of all zones of a namespace, report by report.
///
/// While [`next`](Self::next) names a block, read a report from there and [`add`](Self::add) it.
#[derive(Debug)]
pub struct ZoneSurvey {
    format: ZoneFormat,
    zones: Vec<Zone>,
}

impl ZoneSurvey {
    /// Creates a survey that has seen nothing yet.
    #[must_use]
    pub fn new(format: ZoneFormat) -> Self {
        Self {
            format,
            // Not reserved: the controller has shown none yet.
            zones: Vec::new(),
        }
    }

    /// Returns the block from which the next report is wanted; `None` when all zones are known.
    #[must_use]
    pub fn next(&self) -> Option<u64> {
        self.format.first_block(self.zones.len() as u64)
    }

    /// Adds a report from the wanted block on.
    ///
    /// # Errors
    /// A field that is impossible, a zone that does not follow the one before it, or a report
    /// without zones.
    pub fn add(&mut self, report: &[u8]) -> Result<(), ZoneFault> {
        let found = self.format.zones_of(report)?;
        let at = self.next();
        if let (Some(first), true) = (at, found.is_empty()) {
            let field = ZoneField::Missing;
            return Err(ZoneFault { first, field });
        }
        for zone in found {
            let first = zone.start >> self.format.block_shift;
            if self.next() != Some(first) {
                let field = ZoneField::First;
                return Err(ZoneFault { first, field });
            }
            self.zones.push(zone);
        }
        Ok(())
    }

    /// Returns the zones, in order and without gaps.
    #[must_use]
    pub fn into_zones(self) -> Vec<Zone> {
        self.zones
    }
}

/// Field of a report that no zone can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneFault {
    /// First block of the zone.
    pub first: u64,
    /// The field.
    pub field: ZoneField,
}

/// Field of a zone, with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneField {
    /// The first block, which is that of no zone, or not of the one that follows.
    First,
    /// The type.
    Type(u8),
    /// The state.
    State(u8),
    /// The capacity in blocks, beyond the length.
    Capacity(u64),
    /// The write pointer, outside of the zone.
    WritePointer(u64),
    /// The zone itself: the report ends before it.
    Missing,
}

impl fmt::Display for ZoneFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "zone at block {}: ", self.first)?;
        match self.field {
            ZoneField::First => f.write_str("no zone begins there, or another one was due"),
            ZoneField::Type(kind) => write!(f, "unknown type {kind:x}h"),
            ZoneField::State(state) => write!(f, "unknown state {state:x}h"),
            ZoneField::Capacity(blocks) => {
                write!(f, "capacity of {blocks} blocks, beyond its length")
            }
            ZoneField::WritePointer(pointer) => {
                write!(f, "write pointer at block {pointer}, outside of it")
            }
            ZoneField::Missing => f.write_str("not in the report"),
        }
    }
}

impl std::error::Error for ZoneFault {}

/// Returns dword 13 of Zone Management Send for an action: the Zone Send Action in bits 0 to 7, and
/// whether the zone gets a random write area in bit 9.
///
/// The command names the first block of the zone; [`ZoneAction::Commit`] names the last block that
/// is to be behind the write pointer.
#[must_use]
pub const fn zone_send_action(action: ZoneAction) -> u32 {
    match action {
        ZoneAction::Finish => 0x02,
        ZoneAction::Reset => 0x04,
        ZoneAction::OpenWithArea => 0x03 | 1 << 9,
        ZoneAction::Commit => 0x11,
    }
}

/// Returns whether a namespace is of the Zoned Namespace Command Set, from its list of identifiers
/// (CNS 03h).
#[must_use]
pub fn is_zoned(descriptors: &Page) -> bool {
    let mut rest = &descriptors[..];
    // A descriptor without a length ends the list.
    while let Some((&[kind, length @ 1..=u8::MAX, _, _], behind)) = rest.split_first_chunk() {
        let Some((value, next)) = behind.split_at_checked(length.into()) else {
            return false;
        };
        if kind == NIDT_COMMAND_SET {
            return value[0] == CSI_ZONED;
        }
        rest = next;
    }
    false
}

/// Returns the random write areas of a namespace.
fn area(zoned: &Page, block_shift: u8) -> Option<WriteArea> {
    let bytes = |field| u64::from(u16_at(zoned, field)) << block_shift;
    let zones = u32_at(zoned, NUMZRWA);
    let area = WriteArea {
        bytes: bytes(ZRWASZ),
        granule: bytes(ZRWAFG),
        zones: (zones > 0).then_some(zones),
    };
    let is_supported = u16_at(zoned, OZCS) & OZCS_ZRWA != 0;
    let is_usable = area.bytes > 0 && area.granule > 0 && area.bytes.is_multiple_of(area.granule);
    (is_supported && is_usable).then_some(area)
}

/// Returns a limit of zones, which is counted from 0.
fn limit(field: u32) -> Option<u32> {
    field.checked_add(1)
}

/// Largest number of zones: a disk of 256 TB with zones of 64 MiB has 4 million. The zones of a
/// run take some hundred bytes each.
pub const ZONES_MAX: u32 = 1 << 22;

// Identify Namespace.
const NSZE: usize = 0;
const LBAF0: usize = 128;
// Its extension by the Zoned Namespace Command Set.
const OZCS: usize = 2;
const OZCS_ZRWA: u16 = 1 << 1;
const MAR: usize = 4;
const MOR: usize = 8;
const NUMZRWA: usize = 44;
const ZRWAFG: usize = 48;
const ZRWASZ: usize = 50;
const ZRWACAP: usize = 52;
const ZRWACAP_FLUSH: u8 = 1;
const LBAFE0: usize = 2816;
const CSI_ZONED: u8 = 2;

/// Bytes of a zone descriptor, and of the header of a report.
const DESCRIPTOR_BYTES: usize = 64;
// Zone descriptor.
const ZONE_TYPE: usize = 0;
const ZONE_STATE: usize = 1;
const ZONE_ATTRIBUTES: usize = 2;
const ATTRIBUTE_ZRWA: u8 = 1 << 3;
const ZCAP: usize = 8;
const ZSLBA: usize = 16;
const WRITE_POINTER: usize = 24;
const SEQUENTIAL_REQUIRED: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identify::{IDENTIFY_BYTES, namespace_descriptors};
    use crate::wire::put;

    /// Four zones of 1 MiB in blocks of 4 KiB.
    const FORMAT: ZoneFormat = ZoneFormat {
        zone_blocks: 256,
        block_shift: 12,
        zones: 4,
        open_max: None,
        area: None,
        commits: false,
    };

    /// The pages of a namespace whose format 3 has these zones.
    fn pages(blocks: u64, shift: u8, zone_blocks: u64) -> (Page, Page) {
        let (mut namespace, mut zoned) = ([0; IDENTIFY_BYTES], [0; IDENTIFY_BYTES]);
        put(&mut namespace, NSZE, blocks.to_le_bytes());
        namespace[26] = 3;
        namespace[LBAF0 + 14] = shift;
        put(&mut zoned, MAR, u32::MAX.to_le_bytes());
        put(&mut zoned, MOR, u32::MAX.to_le_bytes());
        put(&mut zoned, LBAFE0 + 48, zone_blocks.to_le_bytes());
        (namespace, zoned)
    }

    /// A report of zones: first block, type and state, capacity, write pointer.
    fn report(count: u64, zones: &[(u64, [u8; 2], u64, u64)]) -> Vec<u8> {
        let mut bytes = vec![0; DESCRIPTOR_BYTES * (zones.len() + 1)];
        put(&mut bytes, 0, count.to_le_bytes());
        for (place, &(first, kind_and_state, capacity, pointer)) in zones.iter().enumerate() {
            let own = &mut bytes[DESCRIPTOR_BYTES * (place + 1)..];
            put(own, ZONE_TYPE, kind_and_state);
            put(own, ZCAP, capacity.to_le_bytes());
            put(own, ZSLBA, first.to_le_bytes());
            put(own, WRITE_POINTER, pointer.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn the_format_is_that_of_the_blocks_in_use() {
        let (namespace, mut zoned) = pages(1030, 12, 256);
        assert_eq!(ZoneFormat::decode(&namespace, &zoned), Some(FORMAT));
        assert_eq!(FORMAT.zone_bytes(), 1 << 20);
        assert_eq!(
            (FORMAT.first_block(3), FORMAT.first_block(4)),
            (Some(768), None)
        );
        put(&mut zoned, MOR, 13_u32.to_le_bytes());
        put(&mut zoned, MAR, 7_u32.to_le_bytes());
        let limited = ZoneFormat::decode(&namespace, &zoned).and_then(|format| format.open_max);
        assert_eq!(limited, Some(8));
    }

    #[test]
    fn random_write_areas_are_decoded_to_bytes() {
        let (namespace, mut zoned) = pages(1024, 12, 256);
        let area = |zoned: &Page| {
            let format = ZoneFormat::decode(&namespace, zoned).expect("a format");
            (format.area, format.commits)
        };
        put(&mut zoned, ZRWAFG, 4_u16.to_le_bytes());
        put(&mut zoned, ZRWASZ, 32_u16.to_le_bytes());
        assert_eq!(area(&zoned), (None, false), "not supported");
        zoned[OZCS] = 2;
        zoned[ZRWACAP] = 1;
        let mut want = WriteArea {
            bytes: 32 << 12,
            granule: 4 << 12,
            zones: None,
        };
        assert_eq!(area(&zoned), (Some(want), true));
        put(&mut zoned, NUMZRWA, 3_u32.to_le_bytes());
        want.zones = Some(3);
        assert_eq!(area(&zoned), (Some(want), true));
        for granule in [0_u16, 5, 64] {
            put(&mut zoned, ZRWAFG, granule.to_le_bytes());
            assert_eq!(area(&zoned).0, None, "granule of {granule} blocks");
        }
    }

    #[test]
    fn unusable_formats_are_none() {
        for (blocks, shift, zone_blocks) in [
            (1024, 12, 0),
            (1024, 8, 256),
            (1024, 17, 256),
            (1024, 64, 256),
            (1024, 12, 1025),
            (1 << 52, 12, 1 << 40),
            (u64::MAX, 9, u64::MAX),
            (u64::from(ZONES_MAX) + 1, 9, 1),
            (0, 12, 256),
        ] {
            let (namespace, zoned) = pages(blocks, shift, zone_blocks);
            let got = ZoneFormat::decode(&namespace, &zoned);
            assert_eq!(got, None, "{blocks} {shift} {zone_blocks}");
        }
    }

    #[test]
    fn zones_are_decoded_to_bytes() {
        let report = report(
            2,
            &[
                (256, [0x02, 0x20], 192, 260),
                (512, [0x12, 0xe5], 192, u64::MAX),
                (768, [0xff; 2], 0, 0),
            ],
        );
        let zones = FORMAT.zones_of(&report).expect("two zones");
        let open = Zone {
            start: 1 << 20,
            length: 1 << 20,
            capacity: 768 << 10,
            kind: ZoneKind::SequentialRequired,
            condition: ZoneCondition::ImplicitlyOpen,
            write_pointer: (1 << 20) + 16384,
            has_area: false,
        };
        let full = Zone {
            start: 2 << 20,
            condition: ZoneCondition::Full,
            write_pointer: 2 << 20,
            has_area: false,
            ..open
        };
        assert_eq!(zones, [open, full], "what lies behind the count is no zone");
    }

    #[test]
    fn each_state_has_its_condition() {
        use ZoneCondition::{
            Closed, Empty, ExplicitlyOpen, Full, ImplicitlyOpen, Offline, ReadOnly,
        };
        let known = [
            (1, Empty),
            (2, ImplicitlyOpen),
            (3, ExplicitlyOpen),
            (4, Closed),
            (0xd, ReadOnly),
            (0xe, Full),
            (0xf, Offline),
        ];
        for state in 0..16 {
            let got = FORMAT.zones_of(&report(1, &[(0, [2, state << 4], 256, 0)]));
            let want = known.iter().find(|row| row.0 == state).map(|row| row.1);
            let field = ZoneField::State(state);
            let want = want.ok_or(ZoneFault { first: 0, field });
            assert_eq!(got.map(|zones| zones[0].condition), want);
        }
    }

    #[test]
    fn impossible_fields_are_named() {
        let check = |zone, field: ZoneField, text: &str| {
            let fault = FORMAT.zones_of(&report(u64::MAX, &[zone])).unwrap_err();
            let first = zone.0;
            assert_eq!(fault, ZoneFault { first, field });
            assert_eq!(fault.to_string(), format!("zone at block {first}: {text}"));
        };
        let no_start = "no zone begins there, or another one was due";
        for first in [100, 1024, u64::MAX] {
            check((first, [2, 0x10], 256, first), ZoneField::First, no_start);
        }
        check(
            (0, [1, 0x10], 256, 0),
            ZoneField::Type(1),
            "unknown type 1h",
        );
        check(
            (0, [2, 0x10], 257, 0),
            ZoneField::Capacity(257),
            "capacity of 257 blocks, beyond its length",
        );
        for pointer in [255, 449, u64::MAX] {
            let text = format!("write pointer at block {pointer}, outside of it");
            check(
                (256, [2, 0x30], 192, pointer),
                ZoneField::WritePointer(pointer),
                &text,
            );
        }
    }

    #[test]
    fn a_survey_takes_reports_until_all_zones_are_known() {
        let empty = |number: u64| (number * 256, [2, 0x10], 256, number * 256);
        let mut survey = ZoneSurvey::new(FORMAT);
        assert_eq!(survey.next(), Some(0));
        let first = report(2, &[empty(0), empty(1)]);
        assert_eq!((survey.add(&first), survey.next()), (Ok(()), Some(512)));
        let fault = |first, field| Err(ZoneFault { first, field });
        // Some zones again, a gap, no zones at all.
        assert_eq!(survey.add(&first), fault(0, ZoneField::First));
        let gap = report(1, &[empty(3)]);
        assert_eq!(survey.add(&gap), fault(768, ZoneField::First));
        for none in [report(0, &[empty(2)]), report(9, &[]), vec![0xff; 9]] {
            assert_eq!(survey.add(&none), fault(512, ZoneField::Missing));
        }
        let rest = report(2, &[empty(2), empty(3)]);
        assert_eq!((survey.add(&rest), survey.next()), (Ok(()), None));
        let starts: Vec<u64> = survey.into_zones().iter().map(|zone| zone.start).collect();
        assert_eq!(starts, [0, 1 << 20, 2 << 20, 3 << 20]);
    }

    #[test]
    fn a_single_zone_is_the_one_that_was_asked_for() {
        let full = report(1, &[(512, [2, 0xe0], 256, 0)]);
        let zone = FORMAT.zone_at(512, &full).expect("the zone");
        assert_eq!((zone.start, zone.condition), (2 << 20, ZoneCondition::Full));
        let fault = |field| Err(ZoneFault { first: 256, field });
        assert_eq!(FORMAT.zone_at(256, &full), fault(ZoneField::First));
        assert_eq!(FORMAT.zone_at(256, &[0; 128]), fault(ZoneField::Missing));
    }

    #[test]
    fn the_command_set_is_found_among_the_identifiers() {
        let mut page = namespace_descriptors(&[7; 16]);
        assert!(!is_zoned(&page), "NVM");
        page[24] = 2;
        assert!(is_zoned(&page));
        // The list ends before it, or within a descriptor.
        page[1] = 0;
        assert!(!is_zoned(&page));
        let mut cut = [0; IDENTIFY_BYTES];
        for place in (0..IDENTIFY_BYTES).step_by(16) {
            cut[place..place + 2].copy_from_slice(&[3, 12]);
        }
        cut[4081] = 0xff;
        assert!(!is_zoned(&cut));
    }

    #[test]
    fn actions_have_the_codes_of_the_specification() {
        assert_eq!(zone_send_action(ZoneAction::Finish), 2);
        assert_eq!(zone_send_action(ZoneAction::Reset), 4);
        assert_eq!(zone_send_action(ZoneAction::OpenWithArea), 0x203);
        assert_eq!(zone_send_action(ZoneAction::Commit), 0x11);
    }
}

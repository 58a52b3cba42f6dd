//! Ops as NVMe commands.

use fathom_core::{Direction, Op, OpKind, ZoneAction};
use fathom_nvme::{FORCE_UNIT_ACCESS, Opcode, ProtectionType, zone_send_action};
use fathom_sys::uring::{CommandData, NvmeCommand};

use super::namespace::Namespace;
use super::options::Options;

/// Command of an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Encoded {
    pub(super) command: NvmeCommand,
    /// Blocks that it names; 0 for a flush.
    pub(super) blocks: u32,
    /// First of them.
    pub(super) first: u64,
}

/// Encodes an op; `None` if it is not in whole blocks, or in more than a command can name. `opcode`
/// is the command of a read or a write, `placement` the identifier under which a write is placed.
#[inline]
pub(super) fn encode(
    op: &Op,
    opcode: Opcode,
    namespace: &Namespace,
    options: &Options,
    placement: Option<u16>,
) -> Option<Encoded> {
    let direction = match op.kind {
        OpKind::Data(direction) => direction,
        OpKind::Sync(_) => return Some(flush(namespace)),
    };
    let (first, blocks) = extent(op.offset, op.length, namespace.op_block_bytes)?;
    let encoded = |command| Encoded {
        command,
        blocks,
        first,
    };
    if direction == Direction::Trim {
        return match namespace.zones {
            None => Some(encoded(deallocate(namespace))),
            // A reset takes whole zones.
            Some(zones) if u64::from(blocks) == zones.zone_blocks => {
                Some(encoded(reset_zone(namespace, first)))
            }
            Some(_) => None,
        };
    }
    // An append names its zone.
    let first = match namespace.zones {
        Some(zones) if opcode == Opcode::ZONE_APPEND => first - first % zones.zone_blocks,
        _ => first,
    };
    // Counted from 0, in 16 bits.
    let count = blocks.checked_sub(1).filter(|&count| count <= 0xffff)?;
    let transfers = is_transfer(opcode);
    let mut twelve = count | protection_field(namespace, options, opcode);
    let is_forced = match direction {
        Direction::Write => options.write_fua,
        Direction::Read | Direction::Trim => options.read_fua,
    };
    if is_forced && opcode != Opcode::WRITE_UNCORRECTABLE {
        twelve |= FORCE_UNIT_ACCESS;
    }
    if opcode == Opcode::WRITE_ZEROES && options.deallocate {
        twelve |= DEALLOCATE;
    }
    let has_hint = opcode == Opcode::READ || opcode == Opcode::WRITE;
    let mut thirteen = if has_hint { options.dsm.into() } else { 0 };
    if let Some(identifier) =
        placement.filter(|_| opcode == Opcode::WRITE || opcode == Opcode::ZONE_APPEND)
    {
        twelve |= DIRECTIVE_PLACEMENT;
        thirteen |= u32::from(identifier) << 16;
    }
    let tags = reference_tags(namespace, first);
    Some(encoded(NvmeCommand {
        opcode: opcode.0,
        nsid: namespace.id,
        dwords_2: [0, tags[0]],
        dwords_10: [
            low(first),
            low(first >> 32),
            twelve,
            thirteen,
            tags[1],
            application_tag(namespace, options),
        ],
        data: match transfers {
            true => CommandData::Buffer {
                offset: op.buffer_offset,
                length: op.length,
            },
            false => CommandData::None,
        },
        // Cannot overflow: at most 2¹⁶ blocks with 2¹⁶ bytes of metadata, and checked against the
        // buffer when the file was opened.
        metadata_bytes: match transfers {
            true => blocks.saturating_mul(namespace.separate_bytes),
            false => 0,
        },
    }))
}

/// Returns whether a command moves data.
#[inline]
fn is_transfer(opcode: Opcode) -> bool {
    [
        Opcode::READ,
        Opcode::WRITE,
        Opcode::COMPARE,
        Opcode::ZONE_APPEND,
    ]
    .contains(&opcode)
}

/// Returns the reason why an op cannot be encoded as a command.
#[cold]
pub(super) fn refusal(op: &Op, namespace: &Namespace) -> String {
    match (op.kind, namespace.zones) {
        (OpKind::Data(Direction::Trim), Some(zones)) => {
            let bytes = zones.zone_bytes();
            format!("a trim resets a whole zone, and those of the namespace have {bytes} B")
        }
        _ => {
            let bytes = namespace.op_block_bytes;
            format!("not a whole number of {bytes} B blocks, or more than 65536 of them")
        }
    }
}

/// Writes a range of a trim, its first block and their number, as Dataset Management has it.
pub(super) fn put_range(range: &mut [u8], (first, blocks): (u64, u32)) {
    let bytes = &mut range[..RANGE_BYTES as usize];
    bytes[..4].fill(0);
    bytes[4..8].copy_from_slice(&blocks.to_le_bytes());
    bytes[8..].copy_from_slice(&first.to_le_bytes());
}

/// Returns the first block and the number of blocks of `length` bytes, if they are whole ones.
#[inline]
pub(crate) fn extent(offset: u64, length: u32, block_bytes: u32) -> Option<(u64, u32)> {
    let bytes = block_bytes;
    if bytes.is_power_of_two() {
        let (shift, mask) = (bytes.trailing_zeros(), u64::from(bytes - 1));
        let is_whole = (offset | u64::from(length)) & mask == 0;
        return is_whole.then_some((offset >> shift, length >> shift));
    }
    let is_whole = offset.is_multiple_of(u64::from(bytes)) && length.is_multiple_of(bytes);
    is_whole.then_some((offset / u64::from(bytes), length / bytes))
}

const fn flush(namespace: &Namespace) -> Encoded {
    Encoded {
        command: NvmeCommand {
            opcode: Opcode::FLUSH.0,
            nsid: namespace.id,
            dwords_2: [0; 2],
            dwords_10: [0; 6],
            data: CommandData::None,
            metadata_bytes: 0,
        },
        blocks: 0,
        first: 0,
    }
}

/// Encodes Dataset Management with one range, which is in the second buffer.
const fn deallocate(namespace: &Namespace) -> NvmeCommand {
    NvmeCommand {
        opcode: Opcode::DATASET_MANAGEMENT.0,
        nsid: namespace.id,
        dwords_2: [0; 2],
        // The number of ranges less one, and the attribute.
        dwords_10: [0, ATTRIBUTE_DEALLOCATE, 0, 0, 0, 0],
        data: CommandData::Extra {
            length: RANGE_BYTES,
        },
        metadata_bytes: 0,
    }
}

/// Encodes Zone Management Send that resets the zone which begins at a block.
const fn reset_zone(namespace: &Namespace, first: u64) -> NvmeCommand {
    let action = zone_send_action(ZoneAction::Reset);
    NvmeCommand {
        opcode: Opcode::ZONE_MANAGEMENT_SEND.0,
        nsid: namespace.id,
        dwords_2: [0; 2],
        dwords_10: [low(first), low(first >> 32), 0, action, 0, 0],
        data: CommandData::None,
        metadata_bytes: 0,
    }
}

/// Returns the protection information field of dword 12.
#[inline]
fn protection_field(namespace: &Namespace, options: &Options, opcode: Opcode) -> u32 {
    if namespace.format.protection.is_none() || opcode == Opcode::WRITE_UNCORRECTABLE {
        return 0;
    }
    let tags = &options.protection.tags;
    let flag = |is_set: bool, bit: u32| u32::from(is_set) << bit;
    // Verify has none to insert or remove.
    flag(
        options.protection.controller_protects && opcode != Opcode::VERIFY,
        29,
    ) | flag(tags.check_guard, 28)
        | flag(tags.check_application, 27)
        | flag(tags.check_reference, 26)
}

/// Returns the reference tag of the first block, which is its address: dwords 3 and 14. The guard
/// of 64 bits has 48 of it, in both; that of 16 has 32, in the latter.
#[inline]
fn reference_tags(namespace: &Namespace, first: u64) -> [u32; 2] {
    use fathom_nvme::Guard;
    match &namespace.format.protection {
        None => [0; 2],
        Some(own) if own.kind == ProtectionType::Three => [0; 2],
        Some(own) => match own.guard {
            Guard::Crc16 => [0, low(first)],
            Guard::Crc64 => [low(first >> 32) & 0xffff, low(first)],
        },
    }
}

#[inline]
fn application_tag(namespace: &Namespace, options: &Options) -> u32 {
    match namespace.format.protection {
        None => 0,
        Some(_) => {
            u32::from(options.protection.tags.application_mask) << 16
                | u32::from(options.protection.tags.application)
        }
    }
}

/// Returns the low 32 bits.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the high bits have a field of their own"
)]
const fn low(number: u64) -> u32 {
    number as u32
}

/// Bytes of a range of Dataset Management.
pub(super) const RANGE_BYTES: u32 = 16;
const ATTRIBUTE_DEALLOCATE: u32 = 1 << 2;
/// DEAC of Write Zeroes.
const DEALLOCATE: u32 = 1 << 25;
/// Directive type 2, data placement.
const DIRECTIVE_PLACEMENT: u32 = 2 << 20;

#[cfg(test)]
mod tests {
    use fathom_core::{EngineValues, FileIndex, Slot, SyncKind};
    use fathom_nvme::{Guard, ZoneFormat};

    use super::*;
    use crate::passthrough::namespace::tests::namespace;

    fn op(kind: OpKind, offset: u64, length: u32) -> Op {
        Op {
            slot: Slot::new(0),
            kind,
            priority: 0,
            file: FileIndex::new(0),
            length,
            buffer_offset: 0,
            offset,
            sequence: 0,
        }
    }

    const ZONES: ZoneFormat = ZoneFormat {
        zone_blocks: 1 << 18,
        block_shift: 12,
        zones: 1 << 21,
        open_max: None,
        area: None,
        commits: false,
    };
    const READ: OpKind = OpKind::Data(Direction::Read);
    const WRITE: OpKind = OpKind::Data(Direction::Write);
    const TRIM: OpKind = OpKind::Data(Direction::Trim);

    fn options() -> Options {
        Options::resolve(&EngineValues::default()).unwrap()
    }

    /// Encodes an op as Read or Write.
    fn encoded(op: &Op, options: &Options, metadata: u16, guard: Option<Guard>) -> Encoded {
        let own = namespace(metadata, false, guard, options);
        plain(op, &own, options).unwrap()
    }

    fn plain(op: &Op, own: &Namespace, options: &Options) -> Option<Encoded> {
        let opcode = match op.kind {
            WRITE => Opcode::WRITE,
            _ => Opcode::READ,
        };
        encode(op, opcode, own, options, None)
    }

    /// Encodes a write of the second block as another command.
    fn write_as(opcode: Opcode, options: &Options) -> NvmeCommand {
        let own = namespace(0, false, None, options);
        let encoded = encode(&op(WRITE, 4096, 4096), opcode, &own, options, None);
        encoded.unwrap().command
    }

    #[test]
    fn reads_and_writes_name_their_blocks_from_0() {
        let options = options();
        let got = encoded(&op(READ, 0x12_3456_7000 << 8, 8192), &options, 0, None);
        assert_eq!((got.command.opcode, got.command.nsid), (2, 1));
        assert_eq!(got.command.dwords_10, [0x2345_6700, 1, 1, 0, 0, 0]);
        let data = CommandData::Buffer {
            offset: 0,
            length: 8192,
        };
        assert_eq!((got.command.data, got.blocks), (data, 2));
        let got = encoded(&op(WRITE, 0, 4096), &options, 0, None);
        assert_eq!((got.command.opcode, got.command.dwords_10[2]), (1, 0));
    }

    #[test]
    fn bits_of_options_stand_where_the_specification_has_them() {
        let options = Options {
            read_fua: true,
            dsm: 0x40,
            deallocate: true,
            ..options()
        };
        let read = encoded(&op(READ, 0, 4096), &options, 0, None).command;
        assert_eq!(read.dwords_10[2..4], [1 << 30, 0x40]);
        let write = write_as(Opcode::WRITE_ZEROES, &options);
        assert_eq!((write.opcode, write.data), (8, CommandData::None));
        assert_eq!(write.dwords_10, [1, 0, 1 << 25, 0, 0, 0]);
        let options = Options {
            write_fua: true,
            ..options
        };
        let write = write_as(Opcode::WRITE_UNCORRECTABLE, &options);
        assert_eq!(
            (write.opcode, write.dwords_10[2]),
            (4, 0),
            "it has no such bit"
        );
        let own = namespace(0, false, None, &options);
        let placed = encode(
            &op(WRITE, 0, 4096),
            Opcode::WRITE,
            &own,
            &options,
            Some(0x2001),
        )
        .unwrap()
        .command;
        let twelve = 1 << 30 | 2 << 20;
        assert_eq!(placed.dwords_10[2..4], [twelve, 0x2001 << 16 | 0x40]);
    }

    #[test]
    fn a_compare_has_the_data_of_a_write_and_no_hint() {
        let options = Options {
            dsm: 0x40,
            ..options()
        };
        let own = namespace(0, false, None, &options);
        let got = encode(&op(READ, 4096, 8192), Opcode::COMPARE, &own, &options, None);
        let command = got.unwrap().command;
        assert_eq!((command.opcode, command.dwords_10), (5, [1, 0, 1, 0, 0, 0]));
        let data = CommandData::Buffer {
            offset: 0,
            length: 8192,
        };
        assert_eq!(command.data, data);
    }

    #[test]
    fn trims_and_flushes_have_no_block_count() {
        let options = options();
        let trim = encoded(&op(TRIM, 8192, 1 << 30), &options, 0, None);
        assert_eq!(trim.command.dwords_10, [0, 4, 0, 0, 0, 0]);
        assert_eq!(trim.command.data, CommandData::Extra { length: 16 });
        let mut range = [0xff; 20];
        put_range(&mut range, (trim.first, trim.blocks));
        assert_eq!(
            range,
            [
                0, 0, 0, 0, 0, 0, 4, 0, 2, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255
            ]
        );
        let flush = encoded(&op(OpKind::Sync(SyncKind::Full), 0, 0), &options, 0, None);
        assert_eq!((flush.command.opcode, flush.command.dwords_10), (0, [0; 6]));
        assert_eq!(
            (flush.command.data, flush.command.nsid),
            (CommandData::None, 1)
        );
    }

    #[test]
    fn trims_of_zones_reset_them() {
        let options = options();
        let mut own = namespace(0, false, None, &options);
        own.zones = Some(ZONES);
        let encode = |offset, length| plain(&op(TRIM, offset, length), &own, &options);
        let reset = encode(0x4_0003 << 30, 1 << 30).unwrap();
        assert_eq!((reset.command.opcode, reset.command.nsid), (0x79, 1));
        assert_eq!(reset.command.dwords_10, [0xc_0000, 0x10, 0, 4, 0, 0]);
        assert_eq!(reset.command.data, CommandData::None);
        assert_eq!(encode(0, 4096), None, "a part of a zone");
        let told = refusal(&op(TRIM, 0, 4096), &own);
        assert!(
            told.contains("whole zone") && told.contains("1073741824 B"),
            "{told}"
        );
    }

    #[test]
    fn an_append_names_the_start_of_its_zone() {
        let options = Options {
            dsm: 0x40,
            ..options()
        };
        let mut own = namespace(0, false, None, &options);
        own.zones = Some(ZONES);
        let target = op(WRITE, 0x4_0003 << 30 | 5 << 12, 8192);
        let got = encode(&target, Opcode::ZONE_APPEND, &own, &options, Some(3)).unwrap();
        let twelve = 2 << 20 | 1;
        let dwords = [0xc_0000, 0x10, twelve, 3 << 16, 0, 0];
        assert_eq!((got.command.opcode, got.command.dwords_10), (0x7d, dwords));
        assert!(matches!(got.command.data, CommandData::Buffer { .. }));
    }

    #[test]
    fn protection_is_asked_for_where_there_is_some() {
        let mut options = options();
        options.protection.tags.check_guard = true;
        options.protection.tags.check_reference = true;
        let plain = encoded(&op(READ, 4096, 4096), &options, 0, None).command;
        assert_eq!(plain.dwords_10, [1, 0, 0, 0, 0, 0]);
        let own = encoded(&op(READ, 4096, 4096), &options, 8, Some(Guard::Crc16)).command;
        assert_eq!(
            own.dwords_10,
            [1, 0, 1 << 29 | 1 << 28 | 1 << 26, 0, 1, 0xffff_1234]
        );
        assert_eq!(own.metadata_bytes, 0);
        options.protection.controller_protects = false;
        let at = 0x0123_4567_89ab << 12;
        let own = encoded(&op(READ, at, 8192), &options, 16, Some(Guard::Crc64)).command;
        assert_eq!(own.dwords_10[2], 1 << 28 | 1 << 26 | 1);
        assert_eq!((own.dwords_2, own.dwords_10[4]), ([0, 0x0123], 0x4567_89ab));
        assert_eq!(own.metadata_bytes, 32);
    }

    #[test]
    fn extended_blocks_are_longer() {
        let mut options = options();
        options.protection.controller_protects = false;
        let own = namespace(8, true, Some(Guard::Crc16), &options);
        let own_op = op(WRITE, 3 * 4104, 2 * 4104);
        let got = plain(&own_op, &own, &options).unwrap();
        assert_eq!(
            (got.first, got.blocks, got.command.metadata_bytes),
            (3, 2, 0)
        );
        assert_eq!(plain(&op(WRITE, 4096, 4104), &own, &options), None);
    }

    #[test]
    fn parts_of_blocks_are_none() {
        let options = options();
        let own = namespace(0, false, None, &options);
        for (offset, length) in [(1, 4096), (0, 4097), (0, 0), (0, (1 << 16) * 4096 + 4096)] {
            assert_eq!(plain(&op(READ, offset, length), &own, &options), None);
        }
    }
}

//! I/O commands, decoded and checked.

use crate::command::{Command, DataPointer, Opcode};
use crate::completion::Status;
use crate::wire::{u32_at, u64_at};

/// I/O command on a namespace, with every field checked: its blocks lie within the namespace, and
/// its data have the length that the command implies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoCommand {
    /// Action.
    pub action: IoAction,
    /// Data.
    pub data: IoData,
    /// Offset of the first byte in the namespace; 0 without blocks.
    pub offset: u64,
    /// Bytes of the namespace; 0 without blocks.
    pub length: u64,
}

/// Action of an I/O command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoAction {
    /// Read.
    Read,
    /// Write.
    Write {
        /// The data are durable when the command completes (FUA).
        is_durable: bool,
    },
    /// Compare with the host's data.
    Compare,
    /// Make earlier writes durable.
    Flush,
    /// Write zeros.
    WriteZeroes {
        /// As in a write.
        is_durable: bool,
    },
    /// Deallocate this many [`ranges`] of the data.
    Deallocate(u16),
    /// Nothing: a hint that has no use here.
    Hint,
}

/// Data of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoData {
    /// None.
    None,
    /// To the host, this many bytes.
    ToHost(u32),
    /// From the host.
    FromHost {
        /// Bytes.
        length: u32,
        /// They are in the capsule; else they are to be requested.
        is_in_capsule: bool,
    },
}

/// Properties of a namespace that commands are checked against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoNamespace {
    /// Size in blocks.
    pub blocks: u64,
    /// Block size as a power of two.
    pub block_shift: u8,
    /// Commands that change data fail.
    pub is_read_only: bool,
}

/// Range of a namespace, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Offset.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
}

impl IoCommand {
    /// Decodes a command for a namespace; a transfer may have at most `transfer_bytes_max` bytes.
    ///
    /// # Errors
    /// The status to complete the command with. Data in its capsule are then to be dropped.
    #[inline]
    pub fn decode(
        command: &Command,
        namespace: &IoNamespace,
        transfer_bytes_max: u32,
    ) -> Result<Self, Status> {
        if command.as_bytes()[1] & FUSED != 0 {
            return Err(Status::INVALID_FIELD.do_not_retry());
        }
        let opcode = command.opcode();
        let changes = [
            Opcode::WRITE,
            Opcode::WRITE_ZEROES,
            Opcode::DATASET_MANAGEMENT,
        ];
        if namespace.is_read_only && changes.contains(&opcode) {
            return Err(Status::NAMESPACE_WRITE_PROTECTED.do_not_retry());
        }
        let is_durable = command.dword(12) & FORCE_UNIT_ACCESS != 0;
        match opcode {
            Opcode::READ => {
                let range = blocks(command, namespace)?;
                let length = transfer_length(range, transfer_bytes_max)?;
                let data = to_host(command, length)?;
                Ok(Self::of(IoAction::Read, data, range))
            }
            Opcode::WRITE | Opcode::COMPARE => {
                let range = blocks(command, namespace)?;
                let length = transfer_length(range, transfer_bytes_max)?;
                let data = from_host(command, length..=length)?;
                let action = match opcode {
                    Opcode::WRITE => IoAction::Write { is_durable },
                    _ => IoAction::Compare,
                };
                Ok(Self::of(action, data, range))
            }
            Opcode::WRITE_ZEROES => {
                without_data(command)?;
                let range = blocks(command, namespace)?;
                let action = IoAction::WriteZeroes { is_durable };
                Ok(Self::of(action, IoData::None, range))
            }
            Opcode::FLUSH => {
                without_data(command)?;
                Ok(Self::of(IoAction::Flush, IoData::None, Range::NONE))
            }
            Opcode::DATASET_MANAGEMENT => dataset_management(command),
            _ => Err(Status::INVALID_OPCODE.do_not_retry()),
        }
    }

    const fn of(action: IoAction, data: IoData, range: Range) -> Self {
        Self {
            action,
            data,
            offset: range.offset,
            length: range.length,
        }
    }
}

impl Range {
    const NONE: Self = Self {
        offset: 0,
        length: 0,
    };
}

/// Decodes the ranges of a Dataset Management command, each checked against the namespace. Ranges
/// without blocks are left out.
pub fn ranges(
    data: &[u8],
    count: u16,
    namespace: IoNamespace,
) -> impl Iterator<Item = Result<Range, Status>> {
    let entries = data.chunks_exact(RANGE_BYTES as usize).take(count.into());
    let decoded = entries.map(move |entry| {
        let (count, first) = (u32_at(entry, 4), u64_at(entry, 8));
        range_of(first, u64::from(count), &namespace)
    });
    decoded.filter(|range| !matches!(range, Ok(Range { length: 0, .. })))
}

/// Decodes a Dataset Management command.
fn dataset_management(command: &Command) -> Result<IoCommand, Status> {
    let count = u16::from(command.dword(10).to_le_bytes()[0]) + 1;
    let bytes = u32::from(count) * RANGE_BYTES;
    // Linux always sends room for all ranges.
    let data = from_host(command, bytes..=RANGES_MAX * RANGE_BYTES)?;
    let action = match command.dword(11) & DEALLOCATE {
        0 => IoAction::Hint,
        _ => IoAction::Deallocate(count),
    };
    Ok(IoCommand::of(action, data, Range::NONE))
}

/// Returns the blocks that a command names.
#[inline]
fn blocks(command: &Command, namespace: &IoNamespace) -> Result<Range, Status> {
    let count = u64::from(command.dword(12) & 0xffff) + 1;
    range_of(command.qword(10), count, namespace)
}

#[inline]
fn range_of(first: u64, count: u64, namespace: &IoNamespace) -> Result<Range, Status> {
    match first.checked_add(count) {
        // Cannot overflow: the namespace's size in bytes is a `u64`.
        Some(end) if end <= namespace.blocks => Ok(Range {
            offset: first << namespace.block_shift,
            length: count << namespace.block_shift,
        }),
        _ => Err(Status::LBA_OUT_OF_RANGE.do_not_retry()),
    }
}

/// Returns the length of a range as that of a transfer.
#[inline]
fn transfer_length(range: Range, most: u32) -> Result<u32, Status> {
    match u32::try_from(range.length) {
        Ok(length) if length <= most => Ok(length),
        _ => Err(Status::INVALID_FIELD.do_not_retry()),
    }
}

/// Checks the data pointer of a read.
#[inline]
fn to_host(command: &Command, length: u32) -> Result<IoData, Status> {
    check_pointer_kind(command)?;
    match command.data_pointer() {
        DataPointer::Transport { length: there } if there == length => Ok(IoData::ToHost(length)),
        DataPointer::Transport { .. } => Err(Status::DATA_SGL_LENGTH_INVALID.do_not_retry()),
        _ => Err(Status::SGL_TYPE_INVALID.do_not_retry()),
    }
}

/// Checks the data pointer of a command with data from the host, of any of these lengths.
#[inline]
fn from_host(command: &Command, lengths: std::ops::RangeInclusive<u32>) -> Result<IoData, Status> {
    check_pointer_kind(command)?;
    let (length, is_in_capsule) = match command.data_pointer() {
        DataPointer::Transport { length } => (length, false),
        DataPointer::InCapsule { length, .. } => (length, true),
        DataPointer::Other(_) => return Err(Status::SGL_TYPE_INVALID.do_not_retry()),
    };
    if !lengths.contains(&length) {
        return Err(Status::DATA_SGL_LENGTH_INVALID.do_not_retry());
    }
    Ok(IoData::FromHost {
        length,
        is_in_capsule,
    })
}

/// Checks that no data come in the capsule of a command that has none: they would have no place.
#[inline]
fn without_data(command: &Command) -> Result<(), Status> {
    match command.data_pointer() {
        DataPointer::InCapsule { length: 1.., .. } => {
            Err(Status::DATA_SGL_LENGTH_INVALID.do_not_retry())
        }
        _ => Ok(()),
    }
}

/// Checks that the data pointer is an SGL descriptor: fabrics have no PRPs.
#[inline]
fn check_pointer_kind(command: &Command) -> Result<(), Status> {
    match command.as_bytes()[1] & POINTER_KIND {
        POINTER_SGL => Ok(()),
        _ => Err(Status::INVALID_FIELD.do_not_retry()),
    }
}

/// FUSE: first or second of two commands.
const FUSED: u8 = 0x3;
/// PSDT.
const POINTER_KIND: u8 = 0xc0;
const POINTER_SGL: u8 = 0x40;
/// FUA, in dword 12 of reads and writes: the command completes when its data are on the medium, not
/// in a volatile cache.
pub const FORCE_UNIT_ACCESS: u32 = 1 << 30;
/// AD, in dword 11 of Dataset Management.
const DEALLOCATE: u32 = 1 << 2;
const RANGE_BYTES: u32 = 16;
const RANGES_MAX: u32 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    const NAMESPACE: IoNamespace = IoNamespace {
        blocks: 1 << 20,
        block_shift: 9,
        is_read_only: false,
    };

    fn transfer(opcode: Opcode, first: u64, count: u32, data: DataPointer) -> Command {
        Command::new(opcode, 1)
            .with_nsid(1)
            .with_qword(10, first)
            .with_dword(12, count - 1)
            .with_data(data)
    }

    const fn outside(length: u32) -> DataPointer {
        DataPointer::Transport { length }
    }

    const fn inside(length: u32) -> DataPointer {
        DataPointer::InCapsule { offset: 0, length }
    }

    #[track_caller]
    fn check(command: Command, want: Result<(IoAction, IoData, u64, u64), Status>) {
        let decoded = IoCommand::decode(&command, &NAMESPACE, 131_072);
        let parts = |command: IoCommand| {
            let IoCommand {
                action,
                data,
                offset,
                length,
            } = command;
            (action, data, offset, length)
        };
        assert_eq!(
            decoded.map(parts),
            want.map_err(Status::do_not_retry),
            "{command:?}"
        );
    }

    #[test]
    fn transfers_are_decoded_in_bytes() {
        let write = IoAction::Write { is_durable: false };
        let data = |length, is_in_capsule| IoData::FromHost {
            length,
            is_in_capsule,
        };
        check(
            transfer(Opcode::READ, 8, 8, outside(4096)),
            Ok((IoAction::Read, IoData::ToHost(4096), 4096, 4096)),
        );
        check(
            transfer(Opcode::WRITE, 0, 256, outside(131_072)),
            Ok((write, data(131_072, false), 0, 131_072)),
        );
        check(
            transfer(Opcode::WRITE, (1 << 20) - 1, 1, inside(512)),
            Ok((write, data(512, true), ((1 << 20) - 1) << 9, 512)),
        );
        let durable = transfer(Opcode::WRITE, 0, 1, inside(512)).with_dword(12, 1 << 30);
        let write = IoAction::Write { is_durable: true };
        check(durable, Ok((write, data(512, true), 0, 512)));
        check(
            transfer(Opcode::COMPARE, 1, 1, inside(512)),
            Ok((IoAction::Compare, data(512, true), 512, 512)),
        );
    }

    #[test]
    fn commands_without_data_are_decoded() {
        check(
            Command::new(Opcode::FLUSH, 1),
            Ok((IoAction::Flush, IoData::None, 0, 0)),
        );
        // More than fits one transfer: nothing is transferred.
        check(
            transfer(Opcode::WRITE_ZEROES, 8, 65_536, outside(0)),
            Ok((
                IoAction::WriteZeroes { is_durable: false },
                IoData::None,
                4096,
                65_536 << 9,
            )),
        );
    }

    #[test]
    fn commands_beyond_the_end_are_refused() {
        for (first, count) in [
            (1 << 20, 1),
            ((1 << 20) - 1, 2),
            (u64::MAX, 1),
            (u64::MAX - 1, 3),
            (u64::MAX >> 9, 1),
        ] {
            for opcode in [Opcode::READ, Opcode::WRITE, Opcode::WRITE_ZEROES] {
                let command = transfer(opcode, first, count, outside(count * 512));
                check(command, Err(Status::LBA_OUT_OF_RANGE));
            }
        }
    }

    #[test]
    fn data_of_another_length_are_refused() {
        let wrong = Status::DATA_SGL_LENGTH_INVALID;
        check(transfer(Opcode::READ, 0, 8, outside(4095)), Err(wrong));
        check(transfer(Opcode::READ, 0, 8, outside(8192)), Err(wrong));
        check(transfer(Opcode::WRITE, 0, 8, outside(0)), Err(wrong));
        check(transfer(Opcode::WRITE, 0, 8, inside(512)), Err(wrong));
        check(
            transfer(Opcode::READ, 0, 257, outside(257 * 512)),
            Err(Status::INVALID_FIELD),
        );
        check(
            transfer(Opcode::READ, 0, 1, inside(512)),
            Err(Status::SGL_TYPE_INVALID),
        );
        check(
            transfer(Opcode::WRITE, 0, 1, DataPointer::Other(0)),
            Err(Status::SGL_TYPE_INVALID),
        );
    }

    #[test]
    fn data_of_commands_that_have_none_are_refused() {
        let wrong = Status::DATA_SGL_LENGTH_INVALID;
        let flush = Command::new(Opcode::FLUSH, 1);
        check(flush.with_data(inside(512)), Err(wrong));
        check(
            flush.with_data(inside(0)),
            Ok((IoAction::Flush, IoData::None, 0, 0)),
        );
        check(
            transfer(Opcode::WRITE_ZEROES, 0, 1, inside(512)),
            Err(wrong),
        );
    }

    #[test]
    fn reserved_forms_are_refused() {
        for (flags, want) in [
            (0x41, Status::INVALID_FIELD),
            (0x42, Status::INVALID_FIELD),
            (0x00, Status::INVALID_FIELD),
            (0x80, Status::INVALID_FIELD),
        ] {
            let mut bytes = *transfer(Opcode::READ, 0, 1, outside(512)).as_bytes();
            bytes[1] = flags;
            check(Command::from_bytes(bytes), Err(want));
        }
        let unknown = Command::new(Opcode(0x0e), 1);
        check(unknown, Err(Status::INVALID_OPCODE));
    }

    #[test]
    fn a_read_only_namespace_is_not_changed() {
        let namespace = IoNamespace {
            is_read_only: true,
            ..NAMESPACE
        };
        let decode = |opcode| {
            let command = transfer(opcode, 0, 1, outside(512));
            IoCommand::decode(&command, &namespace, 4096).map(|command| command.action)
        };
        let protected = Err(Status::NAMESPACE_WRITE_PROTECTED.do_not_retry());
        assert_eq!(decode(Opcode::READ), Ok(IoAction::Read));
        assert_eq!(decode(Opcode::WRITE), protected);
        assert_eq!(decode(Opcode::WRITE_ZEROES), protected);
        assert_eq!(decode(Opcode::DATASET_MANAGEMENT), protected);
    }

    /// Linux sends 4096 bytes for any number of ranges.
    #[test]
    fn ranges_are_checked_one_by_one() {
        let command = Command::new(Opcode::DATASET_MANAGEMENT, 1)
            .with_dword(10, 2)
            .with_dword(11, 4)
            .with_data(inside(4096));
        let data = IoData::FromHost {
            length: 4096,
            is_in_capsule: true,
        };
        check(command, Ok((IoAction::Deallocate(3), data, 0, 0)));
        check(command.with_dword(11, 1), Ok((IoAction::Hint, data, 0, 0)));
        check(
            command.with_data(inside(47)),
            Err(Status::DATA_SGL_LENGTH_INVALID),
        );
        let mut bytes = [0; 64];
        bytes[4] = 8;
        bytes[8] = 16;
        bytes[16 + 8] = 1; // no blocks
        bytes[32 + 4..32 + 8].fill(0xff);
        let decoded: Vec<_> = ranges(&bytes, 3, NAMESPACE).collect();
        let first = Range {
            offset: 16 << 9,
            length: 4096,
        };
        let beyond = Status::LBA_OUT_OF_RANGE.do_not_retry();
        assert_eq!(decoded, [Ok(first), Err(beyond)]);
    }
}

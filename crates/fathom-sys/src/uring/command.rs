//! Commands for the NVMe driver (`IORING_OP_URING_CMD`).
//!
//! An entry of 128 bytes ends with 80 bytes for the driver, here `struct nvme_uring_cmd` of
//! <linux/nvme_ioctl.h>: the command without what the driver fills in (identifier, data pointer).

use fathom_core::Slot;

use super::abi::{OP_URING_CMD, URING_CMD_FIXED};
use super::entry::{head, pair_u16, pair_u32};
use super::ops::{buffer_number, file_flags};
use super::rings::CommandWords;
use super::{CommandRing, Memory, Mode};
use crate::file_io::{Descriptor, raw};
use crate::nvme::{URING_CMD_IO, URING_CMD_IO_VECTOR};

/// NVMe command of an I/O queue.
///
/// Fields not named here are zero. The data must have the length that the command implies: the
/// kernel maps no more than this for the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NvmeCommand {
    /// Opcode; its lowest bit says that data go to the device.
    pub opcode: u8,
    /// Namespace identifier.
    pub nsid: u32,
    /// Command dwords 2 and 3.
    pub dwords_2: [u32; 2],
    /// Command dwords 10 to 15.
    pub dwords_10: [u32; 6],
    /// Data to transfer.
    pub data: CommandData,
    /// Bytes of metadata, at the start of the slot's second buffer; 0: none.
    pub metadata_bytes: u32,
}

impl NvmeCommand {
    /// Returns whether it transfers data of the slot's buffer.
    #[must_use]
    pub const fn moves_data(&self) -> bool {
        matches!(self.data, CommandData::Buffer { .. })
    }
}

/// Place of a command's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommandData {
    /// None.
    #[default]
    None,
    /// A part of the slot's buffer.
    Buffer {
        /// Offset in the buffer.
        offset: u32,
        /// Bytes.
        length: u32,
    },
    /// The start of the slot's second buffer.
    Extra {
        /// Bytes.
        length: u32,
    },
}

/// Addresses that go with a command.
#[derive(Clone, Copy, Debug, Default)]
struct Addresses {
    data: u64,
    /// Bytes, or the number of vectors.
    data_length: u32,
    metadata: u64,
}

impl CommandRing {
    /// Queues a command. `file` is the index of its file, and `open` returns the file itself if
    /// files are not registered.
    ///
    /// # Panics
    /// If the slot is in flight, or the data or metadata are outside of its buffers.
    #[inline]
    pub fn push_command<'file>(
        &mut self,
        slot: Slot,
        file: u32,
        open: impl FnOnce() -> Descriptor<'file>,
        command: &NvmeCommand,
    ) {
        let file = match self.mode.fixed_files {
            true => file.cast_signed(),
            false => raw(open()),
        };
        let flags = file_flags(self.mode.fixed_files) | self.async_flag();
        let addresses = addresses(&mut self.memory, self.mode, slot, command);
        let user_data = self.in_flight.begin(slot);
        let words = words(
            command,
            self.mode,
            (flags, file),
            slot,
            addresses,
            user_data,
        );
        // SAFETY: the slot was free, so fewer commands than slots were in flight, and the queue has
        // a place for each slot. The entry names parts of the slot's buffers, checked by
        // `Buffers::address`, and perhaps the slot's vector. All live in `memory` until the
        // command has completed or for ever (see `drop`), and no reference to them is given while
        // the slot is in flight. The kernel maps the lengths given here, and no more.
        unsafe { self.rings.submission.push_command(words) };
    }
}

/// Returns the addresses of a command's data and metadata.
#[inline]
fn addresses(memory: &mut Memory, mode: Mode, slot: Slot, command: &NvmeCommand) -> Addresses {
    let extra = |length: u32| {
        let extra = memory.extra.as_ref();
        let extra = extra.unwrap_or_else(|| panic!("no second buffers"));
        extra.address(slot, 0, length).addr() as u64
    };
    let metadata = match command.metadata_bytes {
        0 => 0,
        length => extra(length),
    };
    let (data, data_length) = match command.data {
        CommandData::None => (0, 0),
        CommandData::Extra { length } => (extra(length), length),
        CommandData::Buffer { offset, length } => {
            let address = memory.buffers.address(slot, offset, length);
            if mode.vectored {
                let vector = &mut memory.vectors[slot.index()];
                vector.iov_base = address.cast();
                vector.iov_len = length as usize;
                ((&raw const *vector).expose_provenance() as u64, 1)
            } else {
                (address.addr() as u64, length)
            }
        }
    };
    Addresses {
        data,
        data_length,
        metadata,
    }
}

/// Assembles the entry from whole words; see `entry.rs`.
#[inline(always)]
fn words(
    command: &NvmeCommand,
    mode: Mode,
    (flags, file): (u8, i32),
    slot: Slot,
    addresses: Addresses,
    user_data: u64,
) -> CommandWords {
    let in_buffer = command.moves_data();
    let operation = match mode.vectored && in_buffer {
        true => URING_CMD_IO_VECTOR,
        false => URING_CMD_IO,
    };
    let is_fixed = mode.fixed_buffers && in_buffer;
    let (buffer, command_flags) = match is_fixed {
        true => (buffer_number(slot), URING_CMD_FIXED),
        false => (0, 0),
    };
    let [two, three] = command.dwords_2;
    let [ten, eleven, twelve, thirteen, fourteen, fifteen] = command.dwords_10;
    [
        pair_u32(pair_u16(head(OP_URING_CMD, flags), 0), file.cast_unsigned()),
        pair_u32(operation, 0),
        0,
        pair_u32(0, command_flags),
        user_data,
        pair_u32(pair_u16(buffer, 0), 0),
        pair_u32(u32::from_ne_bytes([command.opcode, 0, 0, 0]), command.nsid),
        pair_u32(two, three),
        addresses.metadata,
        addresses.data,
        pair_u32(command.metadata_bytes, addresses.data_length),
        pair_u32(ten, eleven),
        pair_u32(twelve, thirteen),
        pair_u32(fourteen, fifteen),
        // No time-out but the driver's.
        0,
    ]
}

#[cfg(test)]
mod tests {
    use std::mem::transmute;

    use io_uring::squeue;
    use io_uring::{opcode, types};

    use super::*;
    use crate::uring::RingConfig;

    fn command() -> NvmeCommand {
        NvmeCommand {
            opcode: 2,
            nsid: 0x1a2b,
            dwords_2: [0x22, 0x33],
            dwords_10: [0x100, 0x111, 0x122, 0x133, 0x144, 0x155],
            data: CommandData::Buffer {
                offset: 0,
                length: 4096,
            },
            metadata_bytes: 64,
        }
    }

    /// `struct nvme_uring_cmd`, field by field.
    fn wire(addresses: Addresses) -> [u8; 80] {
        let mut bytes = [0; 80];
        let command = command();
        let mut put = |at: usize, part: &[u8]| bytes[at..at + part.len()].copy_from_slice(part);
        put(0, &[command.opcode]);
        put(4, &command.nsid.to_ne_bytes());
        put(8, &command.dwords_2[0].to_ne_bytes());
        put(12, &command.dwords_2[1].to_ne_bytes());
        put(16, &addresses.metadata.to_ne_bytes());
        put(24, &addresses.data.to_ne_bytes());
        put(32, &command.metadata_bytes.to_ne_bytes());
        put(36, &addresses.data_length.to_ne_bytes());
        for (dword, at) in command.dwords_10.iter().zip((40..).step_by(4)) {
            put(at, &dword.to_ne_bytes());
        }
        bytes
    }

    #[test]
    fn entries_are_those_of_the_builders() {
        let addresses = Addresses {
            data: 0x1234_5678_9000,
            data_length: 4096,
            metadata: 0x1234_5678_a000,
        };
        let mode = Mode::new(&RingConfig::default(), false);
        let words = words(&command(), mode, (0, 7), Slot::new(3), addresses, 0x0a0b);
        let built = opcode::UringCmd80::new(types::Fd(7), URING_CMD_IO)
            .cmd(wire(addresses))
            .build()
            .user_data(0x0a0b);
        // SAFETY: it is `struct io_uring_sqe` and the 64 bytes after it (`repr(C)`): integers.
        let built = unsafe { transmute::<squeue::Entry128, [u64; 16]>(built) };
        assert_eq!(words, built[..15]);
        assert_eq!(built[15], 0, "a word that is never written");
    }

    #[test]
    fn registered_buffers_and_vectors_are_of_data_alone() {
        let config = RingConfig {
            fixed_buffers: true,
            ..RingConfig::default()
        };
        let entry = |config: &RingConfig, command: &NvmeCommand| {
            let mode = Mode::new(config, false);
            let words = words(command, mode, (0, 7), Slot::new(3), Addresses::default(), 0);
            let part = |word: u64, shift: u32, mask: u64| word >> shift & mask;
            (
                part(words[1], 0, 0xffff_ffff),
                part(words[3], 32, 0xffff_ffff),
                part(words[5], 0, 0xffff),
            )
        };
        let (io, vector) = (u64::from(URING_CMD_IO), u64::from(URING_CMD_IO_VECTOR));
        assert_eq!(entry(&config, &command()), (io, 1, 3));
        let ranges = NvmeCommand {
            data: CommandData::Extra { length: 16 },
            ..command()
        };
        assert_eq!(entry(&config, &ranges), (io, 0, 0));
        let vectored = RingConfig {
            vectored: true,
            ..RingConfig::default()
        };
        assert_eq!(entry(&vectored, &command()), (vector, 0, 0));
        assert_eq!(entry(&vectored, &ranges), (io, 0, 0));
    }
}

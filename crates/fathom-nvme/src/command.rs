//! Submission queue entries.

use std::fmt;

use crate::wire::{put, u16_at, u32_at, u64_at};

/// Submission queue entry: a command as the host sends it.
///
/// Kept as its 64 bytes and read field by field, since most fields have a meaning for some opcodes
/// only.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Command([u8; Self::BYTES]);

impl Command {
    /// Length on the wire.
    pub const BYTES: usize = 64;

    /// Creates a command whose fields not named here are zero, with the SGL marker that fabrics
    /// require.
    #[must_use]
    pub fn new(opcode: Opcode, cid: u16) -> Self {
        let mut command = Self([0; Self::BYTES]);
        command.0[OPCODE] = opcode.0;
        command.0[FLAGS] = PSDT_SGL;
        put(&mut command.0, CID, cid.to_le_bytes());
        command
    }

    /// Takes the bytes of an entry, of which any are valid.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes of the entry.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }

    /// Returns the opcode.
    #[must_use]
    pub const fn opcode(&self) -> Opcode {
        Opcode(self.0[OPCODE])
    }

    /// Returns the type of a fabrics command, which stands where others have their namespace.
    #[must_use]
    pub const fn fabrics_type(&self) -> u8 {
        self.0[FABRICS_TYPE]
    }

    /// Returns the command identifier: any 16 bits, chosen by the host and never an index.
    #[must_use]
    pub fn cid(&self) -> u16 {
        u16_at(&self.0, CID)
    }

    /// Returns the namespace identifier.
    #[must_use]
    pub fn nsid(&self) -> u32 {
        u32_at(&self.0, NSID)
    }

    /// Returns a command dword, 10 to 15.
    ///
    /// # Panics
    /// `number` is above 15.
    #[must_use]
    pub fn dword(&self, number: usize) -> u32 {
        u32_at(&self.0, number * 4)
    }

    /// Returns the 64 bits of a command dword and the next.
    ///
    /// # Panics
    /// `number` is above 14.
    #[must_use]
    pub fn qword(&self, number: usize) -> u64 {
        u64_at(&self.0, number * 4)
    }

    /// Returns the data pointer.
    #[must_use]
    pub fn data_pointer(&self) -> DataPointer {
        let (address, length) = (u64_at(&self.0, SGL), u32_at(&self.0, SGL + 8));
        match self.0[SGL + 15] {
            SGL_IN_CAPSULE => DataPointer::InCapsule {
                offset: address,
                length,
            },
            SGL_TRANSPORT => DataPointer::Transport { length },
            other => DataPointer::Other(other),
        }
    }

    /// Sets the command identifier.
    #[must_use]
    #[inline]
    pub fn with_cid(mut self, cid: u16) -> Self {
        put(&mut self.0, CID, cid.to_le_bytes());
        self
    }

    /// Sets the namespace identifier.
    #[must_use]
    pub fn with_nsid(mut self, nsid: u32) -> Self {
        put(&mut self.0, NSID, nsid.to_le_bytes());
        self
    }

    /// Sets a command dword.
    ///
    /// # Panics
    /// `number` is above 15.
    #[must_use]
    pub fn with_dword(mut self, number: usize, value: u32) -> Self {
        put(&mut self.0, number * 4, value.to_le_bytes());
        self
    }

    /// Sets a command dword and the next.
    ///
    /// # Panics
    /// `number` is above 14.
    #[must_use]
    pub fn with_qword(mut self, number: usize, value: u64) -> Self {
        put(&mut self.0, number * 4, value.to_le_bytes());
        self
    }

    /// Sets the data pointer.
    #[must_use]
    pub fn with_data(mut self, data: DataPointer) -> Self {
        let (kind, address, length) = match data {
            DataPointer::InCapsule { offset, length } => (SGL_IN_CAPSULE, offset, length),
            DataPointer::Transport { length } => (SGL_TRANSPORT, 0, length),
            DataPointer::Other(kind) => (kind, 0, 0),
        };
        put(&mut self.0, SGL, address.to_le_bytes());
        put(&mut self.0, SGL + 8, length.to_le_bytes());
        self.0[SGL + 15] = kind;
        self
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("opcode", &self.opcode())
            .field("cid", &self.cid())
            .field("nsid", &self.nsid())
            .field("data", &self.data_pointer())
            .finish_non_exhaustive()
    }
}

/// Opcode of a command; its meaning depends on the queue, admin or I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opcode(pub u8);

impl Opcode {
    /// Any fabrics command, on any queue.
    pub const FABRICS: Self = Self(0x7f);

    /// Flush (I/O).
    pub const FLUSH: Self = Self(0x00);
    /// Write (I/O).
    pub const WRITE: Self = Self(0x01);
    /// Read (I/O).
    pub const READ: Self = Self(0x02);
    /// Write Uncorrectable (I/O).
    pub const WRITE_UNCORRECTABLE: Self = Self(0x04);
    /// Compare (I/O).
    pub const COMPARE: Self = Self(0x05);
    /// Write Zeroes (I/O).
    pub const WRITE_ZEROES: Self = Self(0x08);
    /// Dataset Management (I/O).
    pub const DATASET_MANAGEMENT: Self = Self(0x09);
    /// Verify (I/O).
    pub const VERIFY: Self = Self(0x0c);
    /// Zone Management Send (I/O).
    pub const ZONE_MANAGEMENT_SEND: Self = Self(0x79);
    /// Zone Append (I/O).
    pub const ZONE_APPEND: Self = Self(0x7d);

    /// Get Log Page (admin).
    pub const GET_LOG_PAGE: Self = Self(0x02);
    /// Identify (admin).
    pub const IDENTIFY: Self = Self(0x06);
    /// Abort (admin).
    pub const ABORT: Self = Self(0x08);
    /// Set Features (admin).
    pub const SET_FEATURES: Self = Self(0x09);
    /// Get Features (admin).
    pub const GET_FEATURES: Self = Self(0x0a);
    /// Asynchronous Event Request (admin).
    pub const ASYNC_EVENT_REQUEST: Self = Self(0x0c);
    /// Keep Alive (admin).
    pub const KEEP_ALIVE: Self = Self(0x18);
}

/// Location of a command's data: its SGL descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataPointer {
    /// In the capsule, after the command.
    InCapsule {
        /// Offset from the start of the capsule's data; only 0 is in use.
        offset: u64,
        /// Bytes.
        length: u32,
    },
    /// In PDUs of their own.
    Transport {
        /// Bytes; 0 for a command without data.
        length: u32,
    },
    /// Another type of descriptor. Type 0 without length is that of many commands without data.
    Other(u8),
}

const OPCODE: usize = 0;
const FLAGS: usize = 1;
const CID: usize = 2;
const NSID: usize = 4;
const FABRICS_TYPE: usize = 4;
const SGL: usize = 24;

/// PSDT 01b: the data pointer is an SGL descriptor.
const PSDT_SGL: u8 = 0x40;
/// Data block descriptor, subtype offset.
const SGL_IN_CAPSULE: u8 = 0x01;
/// Transport data block descriptor, subtype transport.
const SGL_TRANSPORT: u8 = 0x5a;

#[cfg(test)]
mod tests {
    use super::*;

    /// A 4 KiB write of block 8 as the Linux host sends it, from a trace.
    #[test]
    fn fields_stand_where_the_specification_has_them() {
        let command = Command::new(Opcode::WRITE, 0x1003)
            .with_nsid(1)
            .with_qword(10, 8)
            .with_dword(12, 7)
            .with_data(DataPointer::InCapsule {
                offset: 0,
                length: 4096,
            });
        let mut wire = [0; 64];
        wire[..8].copy_from_slice(&[0x01, 0x40, 0x03, 0x10, 1, 0, 0, 0]);
        wire[33] = 0x10;
        wire[39] = 0x01;
        wire[40] = 8;
        wire[48] = 7;
        assert_eq!(command.as_bytes(), &wire);
        assert_eq!(command, Command::from_bytes(wire));
        assert_eq!((command.cid(), command.nsid()), (0x1003, 1));
        assert_eq!((command.qword(10), command.dword(12)), (8, 7));
        let data = DataPointer::InCapsule {
            offset: 0,
            length: 4096,
        };
        assert_eq!(command.data_pointer(), data);
    }
}

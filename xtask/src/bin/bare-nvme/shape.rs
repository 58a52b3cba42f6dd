//! The bytes that a command moves, in both directions.

use anyhow::{Result, bail};
use fathom_nvme::{Command, DataPdu, DataPointer, Framing, Opcode, Pdu, ReadyToTransfer};

/// Commands of one kind and size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) kind: Kind,
    /// Bytes of data per command.
    pub(crate) bytes: u32,
}

/// Direction of the data and their way.
///
/// ```text
/// Read       72 ─►            ◄─ 24 + data, with success
/// Capsule    72 + data ─►     ◄─ 24
/// R2t        72 ─►  ◄─ 24     24 + data ─►  ◄─ 24
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Capsule,
    R2t,
}

impl Kind {
    pub(crate) fn parse(word: &str) -> Result<Self> {
        Ok(match word {
            "read" => Self::Read,
            "capsule" => Self::Capsule,
            "r2t" => Self::R2t,
            other => bail!("no shape `{other}`: read, capsule or r2t"),
        })
    }
}

impl Shape {
    /// Returns the header of a command to namespace 1, without its first block.
    pub(crate) fn command(self, cid: u16, block_bytes: u32) -> [u8; COMMAND_BYTES] {
        let length = self.bytes;
        let (opcode, data, in_capsule) = match self.kind {
            Kind::Read => (Opcode::READ, DataPointer::Transport { length }, 0),
            Kind::R2t => (Opcode::WRITE, DataPointer::Transport { length }, 0),
            Kind::Capsule => {
                let data = DataPointer::InCapsule { offset: 0, length };
                (Opcode::WRITE, data, length)
            }
        };
        let command = Command::new(opcode, cid)
            .with_nsid(1)
            .with_data(data)
            .with_dword(12, (length / block_bytes).saturating_sub(1));
        header(&Pdu::Command(command), in_capsule)
    }

    /// Returns the header of the data that answer an R2T.
    pub(crate) fn data(self, cid: u16, ttag: u16) -> [u8; SHORT_BYTES] {
        let data = DataPdu {
            cid,
            ttag,
            offset: 0,
            length: self.bytes,
            is_last: true,
            is_success: false,
        };
        header(&Pdu::H2cData(data), self.bytes)
    }

    /// Returns the header with which a target answers a read.
    pub(crate) fn read_answer(self) -> [u8; SHORT_BYTES] {
        let data = DataPdu {
            length: self.bytes,
            is_last: true,
            is_success: true,
            ..DataPdu::default()
        };
        header(&Pdu::C2hData(data), self.bytes)
    }

    /// Returns the header with which a target asks for data.
    pub(crate) fn request(self) -> [u8; SHORT_BYTES] {
        let request = ReadyToTransfer {
            ttag: 1,
            length: self.bytes,
            ..ReadyToTransfer::default()
        };
        header(&Pdu::R2t(request), 0)
    }
}

/// Encodes a header whose length is known.
pub(crate) fn header<const N: usize>(pdu: &Pdu, data: u32) -> [u8; N] {
    let encoded = pdu.encode(Framing::PLAIN, data);
    let mut bytes = [0; N];
    bytes.copy_from_slice(encoded.as_bytes());
    bytes
}

/// Length of a command's header.
pub(crate) const COMMAND_BYTES: usize = 72;
/// Length of every other header after the connection is initialized.
pub(crate) const SHORT_BYTES: usize = 24;
/// Offset of the CID in headers of data and R2Ts.
pub(crate) const CID: usize = 8;
/// Offset of the transfer tag in an R2T.
pub(crate) const TTAG: usize = 10;
/// Offset of the CID in a command: 2 bytes into the entry, which follows the common header.
pub(crate) const COMMAND_CID: usize = 10;
/// Offset of the first block in a command: dword 10.
pub(crate) const COMMAND_SLBA: usize = 8 + 40;
/// Offset of the CID in a completion.
pub(crate) const RESPONSE_CID: usize = 20;
/// Offset of the status in a completion.
pub(crate) const RESPONSE_STATUS: usize = 22;

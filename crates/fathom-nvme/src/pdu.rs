//! Protocol data units: their headers, typed, and how they are written.
//!
//! ```text
//! 0      1       2      3     4        8               hlen       pdo
//! | type | flags | hlen | pdo | plen   | type-specific | [digest] | [padding] data [digest] |
//! ```

use std::fmt;

use crate::command::Command;
use crate::completion::Completion;
use crate::digest::{DIGEST_BYTES, Digest};
use crate::wire::{put, u16_at, u32_at};

/// One of the two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The end that connects and sends commands.
    Host,
    /// The end that listens and completes commands.
    Controller,
}

/// Type of a PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PduType(pub u8);

impl PduType {
    /// Initialize Connection Request.
    pub const IC_REQ: Self = Self(0x00);
    /// Initialize Connection Response.
    pub const IC_RESP: Self = Self(0x01);
    /// Terminate Connection Request of the host.
    pub const H2C_TERM_REQ: Self = Self(0x02);
    /// Terminate Connection Request of the controller.
    pub const C2H_TERM_REQ: Self = Self(0x03);
    /// Command capsule.
    pub const CAPSULE_CMD: Self = Self(0x04);
    /// Response capsule.
    pub const CAPSULE_RESP: Self = Self(0x05);
    /// Data from the host.
    pub const H2C_DATA: Self = Self(0x06);
    /// Data from the controller.
    pub const C2H_DATA: Self = Self(0x07);
    /// Ready to Transfer.
    pub const R2T: Self = Self(0x09);

    /// Returns the sender; `None` for an unknown type.
    #[must_use]
    pub const fn sender(self) -> Option<Side> {
        match self {
            Self::IC_REQ | Self::H2C_TERM_REQ | Self::CAPSULE_CMD | Self::H2C_DATA => {
                Some(Side::Host)
            }
            Self::IC_RESP
            | Self::C2H_TERM_REQ
            | Self::CAPSULE_RESP
            | Self::C2H_DATA
            | Self::R2T => Some(Side::Controller),
            _ => None,
        }
    }

    /// Returns the length of the header, 0 for an unknown type.
    pub(crate) const fn header_bytes(self) -> usize {
        match self {
            Self::IC_REQ | Self::IC_RESP => 128,
            Self::CAPSULE_CMD => 72,
            Self::H2C_TERM_REQ
            | Self::C2H_TERM_REQ
            | Self::CAPSULE_RESP
            | Self::H2C_DATA
            | Self::C2H_DATA
            | Self::R2T => 24,
            _ => 0,
        }
    }

    /// Returns whether digests protect PDUs of this type: not those that begin or end a connection.
    pub(crate) const fn has_digests(self) -> bool {
        !matches!(
            self,
            Self::IC_REQ | Self::IC_RESP | Self::H2C_TERM_REQ | Self::C2H_TERM_REQ
        )
    }
}

/// Digests in use on a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digests {
    /// A digest follows each header.
    pub header: bool,
    /// A digest follows all data.
    pub data: bool,
}

impl Digests {
    const fn from_bits(bits: u8) -> Self {
        Self {
            header: bits & HEADER_DIGEST != 0,
            data: bits & DATA_DIGEST != 0,
        }
    }

    const fn bits(self) -> u8 {
        (self.header as u8 * HEADER_DIGEST) | (self.data as u8 * DATA_DIGEST)
    }
}

/// Form of the PDUs in one direction of a connection, as negotiated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    digests: Digests,
    /// Alignment of data in a PDU, in bytes: a multiple of 4 up to 128.
    alignment: u8,
}

impl Framing {
    /// Framing without digests and padding, in force until a connection is initialized.
    pub const PLAIN: Self = Self {
        digests: Digests {
            header: false,
            data: false,
        },
        alignment: 4,
    };

    /// Returns the framing of a receiver that requests this alignment, as HPDA and CPDA encode it:
    /// in units of 4 bytes, 0's based. `None` above 31.
    #[must_use]
    pub fn new(digests: Digests, pda: u8) -> Option<Self> {
        let alignment = (pda <= PDA_MAX).then(|| (pda + 1) * 4)?;
        Some(Self { digests, alignment })
    }

    /// Returns the digests.
    #[must_use]
    pub const fn digests(self) -> Digests {
        self.digests
    }

    /// Returns the offset of data after a header of this type.
    pub(crate) fn data_offset(self, kind: PduType) -> usize {
        let header = kind.header_bytes() + self.header_digest_bytes(kind);
        match kind.has_digests() {
            true => header.next_multiple_of(usize::from(self.alignment)),
            false => header,
        }
    }

    pub(crate) const fn alignment(self) -> u8 {
        self.alignment
    }

    pub(crate) const fn header_digest_bytes(self, kind: PduType) -> usize {
        (self.digests.header && kind.has_digests()) as usize * DIGEST_BYTES
    }

    pub(crate) const fn data_digest_bytes(self, kind: PduType) -> usize {
        (self.digests.data && kind.has_digests()) as usize * DIGEST_BYTES
    }
}

/// Header of a PDU, without its lengths and flags, which follow from it and the framing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pdu {
    /// Request to initialize the connection.
    IcReq(IcReq),
    /// Answer to it.
    IcResp(IcResp),
    /// Fatal error, found by the side named; its data are the header at fault.
    TermReq(Side, TermReq),
    /// Command; its data are in-capsule data.
    Command(Command),
    /// Completion.
    Response(Completion),
    /// Data of a write.
    H2cData(DataPdu),
    /// Data of a read.
    C2hData(DataPdu),
    /// Request for the data of a write.
    R2t(ReadyToTransfer),
}

/// Initialize Connection Request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IcReq {
    /// PDU format version; only 0 exists.
    pub version: u16,
    /// Alignment of data sent to the host, in units of 4 bytes, 0's based; at most 31.
    pub hpda: u8,
    /// Digests requested.
    pub digests: Digests,
    /// Number of R2Ts that a command may have outstanding, 0's based.
    pub r2t_max: u32,
}

/// Initialize Connection Response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IcResp {
    /// PDU format version; only 0 exists.
    pub version: u16,
    /// Alignment of data sent to the controller, as [`IcReq::hpda`]. Linux requires 0.
    pub cpda: u8,
    /// Digests in use. Linux requires those that it requested.
    pub digests: Digests,
    /// Bytes of data per H2CData PDU at most: at least 4096, and a multiple of 4.
    pub h2c_data_bytes_max: u32,
}

/// Request to terminate the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TermReq {
    /// Reason.
    pub status: FatalStatus,
    /// Offset of the field at fault, or the digest that was received.
    pub information: u32,
}

/// Reason for the termination of a connection (FES).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FatalStatus(pub u16);

impl FatalStatus {
    /// Header field with an invalid value.
    pub const INVALID_HEADER: Self = Self(1);
    /// PDU that may not come at this point.
    pub const SEQUENCE: Self = Self(2);
    /// Wrong header digest.
    pub const HEADER_DIGEST: Self = Self(3);
    /// Data outside the range that was requested.
    pub const OUT_OF_RANGE: Self = Self(4);
    /// More data or R2Ts than permitted.
    pub const LIMIT_EXCEEDED: Self = Self(5);
    /// Parameter that is not supported.
    pub const UNSUPPORTED_PARAMETER: Self = Self(6);
}

impl fmt::Display for FatalStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match *self {
            Self::INVALID_HEADER => "invalid header field",
            Self::SEQUENCE => "PDU sequence error",
            Self::HEADER_DIGEST => "header digest error",
            Self::OUT_OF_RANGE => "data transfer out of range",
            Self::LIMIT_EXCEEDED => "limit exceeded",
            Self::UNSUPPORTED_PARAMETER => "unsupported parameter",
            Self(other) => return write!(f, "fatal status {other:#x}"),
        };
        f.write_str(text)
    }
}

/// Header of a PDU with data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataPdu {
    /// Command that the data belong to.
    pub cid: u16,
    /// Transfer tag of the R2T that the data answer; 0 from the controller.
    pub ttag: u16,
    /// Offset in the command's data.
    pub offset: u32,
    /// Bytes.
    pub length: u32,
    /// Last PDU of the R2T or of the read.
    pub is_last: bool,
    /// The command succeeded, and no completion follows; from the controller only.
    pub is_success: bool,
}

/// Request for the data of a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadyToTransfer {
    /// Command whose data are requested.
    pub cid: u16,
    /// Transfer tag, which the data repeat.
    pub ttag: u16,
    /// Offset in the command's data.
    pub offset: u32,
    /// Bytes requested.
    pub length: u32,
}

impl Pdu {
    /// Returns the type on the wire.
    #[must_use]
    pub const fn kind(&self) -> PduType {
        match self {
            Self::IcReq(_) => PduType::IC_REQ,
            Self::IcResp(_) => PduType::IC_RESP,
            Self::TermReq(Side::Host, _) => PduType::H2C_TERM_REQ,
            Self::TermReq(Side::Controller, _) => PduType::C2H_TERM_REQ,
            Self::Command(_) => PduType::CAPSULE_CMD,
            Self::Response(_) => PduType::CAPSULE_RESP,
            Self::H2cData(_) => PduType::H2C_DATA,
            Self::C2hData(_) => PduType::C2H_DATA,
            Self::R2t(_) => PduType::R2T,
        }
    }

    /// Encodes everything before the data: header, digest and padding. `data` is the number of
    /// bytes that follow; with data digests the sender appends their [`Digest`].
    #[must_use]
    pub fn encode(&self, framing: Framing, data: u32) -> Encoded {
        let kind = self.kind();
        let header_bytes = kind.header_bytes();
        let mut bytes = [0; Encoded::BYTES_MAX];
        let has_data = data > 0;
        let before_data = match has_data {
            true => framing.data_offset(kind),
            false => header_bytes + framing.header_digest_bytes(kind),
        };
        let digest = if has_data {
            framing.data_digest_bytes(kind)
        } else {
            0
        };
        // Cannot overflow: data are at most 2³² - 1 bytes, but no limit of a connection exceeds
        // half of that; a longer PDU would be refused by its receiver.
        let length = u32::try_from(before_data + digest).unwrap_or(u32::MAX);
        bytes[0] = kind.0;
        bytes[1] = self.flags(framing, has_data);
        bytes[2] = low(header_bytes);
        bytes[3] = if has_data { low(before_data) } else { 0 };
        put(&mut bytes, 4, length.saturating_add(data).to_le_bytes());
        self.put_specific(&mut bytes);
        if framing.header_digest_bytes(kind) > 0 {
            let digest = Digest::of(&bytes[..header_bytes]);
            put(&mut bytes, header_bytes, digest.to_bytes());
        }
        Encoded {
            bytes,
            length: before_data,
        }
    }

    fn flags(&self, framing: Framing, has_data: bool) -> u8 {
        let kind = self.kind();
        let mut flags = 0;
        if framing.header_digest_bytes(kind) > 0 {
            flags |= FLAG_HEADER_DIGEST;
        }
        if has_data && framing.data_digest_bytes(kind) > 0 {
            flags |= FLAG_DATA_DIGEST;
        }
        if let Self::H2cData(data) | Self::C2hData(data) = self {
            flags |= if data.is_last { FLAG_LAST } else { 0 };
        }
        if let Self::C2hData(data) = self {
            flags |= if data.is_success { FLAG_SUCCESS } else { 0 };
        }
        flags
    }

    /// Stores the fields after the common header.
    fn put_specific(&self, bytes: &mut [u8]) {
        match self {
            Self::IcReq(request) => {
                put(bytes, 8, request.version.to_le_bytes());
                bytes[10] = request.hpda;
                bytes[11] = request.digests.bits();
                put(bytes, 12, request.r2t_max.to_le_bytes());
            }
            Self::IcResp(response) => {
                put(bytes, 8, response.version.to_le_bytes());
                bytes[10] = response.cpda;
                bytes[11] = response.digests.bits();
                put(bytes, 12, response.h2c_data_bytes_max.to_le_bytes());
            }
            Self::TermReq(_, request) => {
                put(bytes, 8, request.status.0.to_le_bytes());
                put(bytes, 10, request.information.to_le_bytes());
                // Reserved here: the data follow the header.
                bytes[3] = 0;
            }
            Self::Command(command) => put(bytes, 8, *command.as_bytes()),
            Self::Response(completion) => put(bytes, 8, completion.to_bytes()),
            Self::H2cData(data) | Self::C2hData(data) => {
                put_transfer(bytes, data.cid, data.ttag, data.offset, data.length);
            }
            Self::R2t(ready) => {
                put_transfer(bytes, ready.cid, ready.ttag, ready.offset, ready.length);
            }
        }
    }

    /// Decodes a complete header of a known type. The fields are not checked.
    pub(crate) fn decode(kind: PduType, header: &[u8]) -> Option<Self> {
        let pdu = match kind {
            PduType::IC_REQ => Self::IcReq(IcReq {
                version: u16_at(header, 8),
                hpda: header[10],
                digests: Digests::from_bits(header[11]),
                r2t_max: u32_at(header, 12),
            }),
            PduType::IC_RESP => Self::IcResp(IcResp {
                version: u16_at(header, 8),
                cpda: header[10],
                digests: Digests::from_bits(header[11]),
                h2c_data_bytes_max: u32_at(header, 12),
            }),
            PduType::H2C_TERM_REQ => Self::TermReq(Side::Host, term_req(header)),
            PduType::C2H_TERM_REQ => Self::TermReq(Side::Controller, term_req(header)),
            PduType::CAPSULE_CMD => Self::Command(Command::from_bytes(*header[8..].first_chunk()?)),
            PduType::CAPSULE_RESP => {
                Self::Response(Completion::from_bytes(header[8..].first_chunk()?))
            }
            PduType::H2C_DATA => Self::H2cData(DataPdu {
                is_success: false,
                ..data_pdu(header)
            }),
            PduType::C2H_DATA => Self::C2hData(data_pdu(header)),
            PduType::R2T => {
                let DataPdu {
                    cid,
                    ttag,
                    offset,
                    length,
                    ..
                } = data_pdu(header);
                Self::R2t(ReadyToTransfer {
                    cid,
                    ttag,
                    offset,
                    length,
                })
            }
            _ => return None,
        };
        Some(pdu)
    }
}

/// A PDU up to its data, ready to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Encoded {
    bytes: [u8; Self::BYTES_MAX],
    length: usize,
}

impl Encoded {
    /// Longest header with its padding: the 76 bytes of a command and its digest, at an alignment
    /// of 72. A larger alignment up to 128 pads to less.
    pub const BYTES_MAX: usize = 144;

    /// Returns the bytes to send before the data.
    #[must_use]
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

fn term_req(header: &[u8]) -> TermReq {
    TermReq {
        status: FatalStatus(u16_at(header, 8)),
        information: u32_at(header, 10),
    }
}

fn data_pdu(header: &[u8]) -> DataPdu {
    DataPdu {
        cid: u16_at(header, 8),
        ttag: u16_at(header, 10),
        offset: u32_at(header, 12),
        length: u32_at(header, 16),
        is_last: header[1] & FLAG_LAST != 0,
        is_success: header[1] & FLAG_SUCCESS != 0,
    }
}

fn put_transfer(bytes: &mut [u8], cid: u16, ttag: u16, offset: u32, length: u32) {
    put(bytes, 8, cid.to_le_bytes());
    put(bytes, 10, ttag.to_le_bytes());
    put(bytes, 12, offset.to_le_bytes());
    put(bytes, 16, length.to_le_bytes());
}

/// Returns a length below 256.
fn low(length: usize) -> u8 {
    u8::try_from(length).unwrap_or(u8::MAX)
}

pub(crate) const FLAG_HEADER_DIGEST: u8 = 1;
pub(crate) const FLAG_DATA_DIGEST: u8 = 2;
const FLAG_LAST: u8 = 4;
const FLAG_SUCCESS: u8 = 8;

const HEADER_DIGEST: u8 = 1;
const DATA_DIGEST: u8 = 2;

/// Largest HPDA and CPDA.
const PDA_MAX: u8 = 31;

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: Digests = Digests {
        header: true,
        data: true,
    };

    /// A read of 4 KiB answered in one PDU with both digests, from a trace: plen 4128, pdo 28,
    /// flags 0xf.
    #[test]
    fn read_data_with_digests_is_framed_as_on_the_wire() {
        let framing = Framing::new(BOTH, 0).expect("an alignment");
        let pdu = Pdu::C2hData(DataPdu {
            cid: 0x3005,
            length: 4096,
            is_last: true,
            is_success: true,
            ..DataPdu::default()
        });
        let encoded = pdu.encode(framing, 4096);
        let bytes = encoded.as_bytes();
        assert_eq!(bytes.len(), 28);
        assert_eq!(&bytes[..8], [7, 0xf, 24, 28, 0x20, 0x10, 0, 0]);
        assert_eq!(&bytes[8..20], [5, 0x30, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0]);
        assert_eq!(&bytes[24..], Digest::of(&bytes[..24]).to_bytes());
    }

    /// Traced lengths: Connect with both digests 1104 bytes with its data at 76, a completion with
    /// a header digest 28, a command without data 72.
    #[test]
    fn capsules_have_their_traced_lengths() {
        let command = Pdu::Command(Command::new(crate::Opcode::FABRICS, 0));
        let framing = Framing::new(BOTH, 0).expect("an alignment");
        let encoded = command.encode(framing, 1024);
        assert_eq!(u32_at(encoded.as_bytes(), 4), 1104);
        assert_eq!((encoded.as_bytes()[1], encoded.as_bytes()[3]), (3, 76));
        let response = Pdu::Response(Completion::default()).encode(framing, 0);
        assert_eq!(u32_at(response.as_bytes(), 4), 28);
        assert_eq!(response.as_bytes()[1], 1);
        let plain = command.encode(Framing::PLAIN, 0);
        assert_eq!(plain.as_bytes()[..8], [4, 0, 72, 0, 72, 0, 0, 0]);
        assert_eq!(plain.as_bytes().len(), 72);
    }

    #[test]
    fn data_are_aligned_as_the_receiver_asks() {
        let data = Pdu::H2cData(DataPdu::default());
        for (pda, header, want) in [
            (0, false, 24),
            (0, true, 28),
            (3, true, 32),
            (31, true, 128),
        ] {
            let digests = Digests {
                header,
                data: false,
            };
            let framing = Framing::new(digests, pda).expect("an alignment");
            assert_eq!(data.encode(framing, 512).as_bytes().len(), want);
        }
        assert_eq!(Framing::new(BOTH, 32), None);
    }
}

//! Requests, and their form on the wire.

use crate::wire;

/// Request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Work to do.
    pub command: Command,
    /// Offset in the export; 0 for a flush.
    pub offset: u64,
    /// Bytes, > 0; 0 for a flush.
    pub length: u32,
    /// Complete a change when it is on stable storage.
    pub is_fua: bool,
}

/// Type of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Reads data.
    Read,
    /// Writes data.
    Write,
    /// Makes completed changes durable.
    Flush,
    /// Discards data.
    Trim,
    /// Writes zeroes, which are not transferred.
    WriteZeroes,
}

impl Command {
    const fn number(self) -> u16 {
        match self {
            Self::Read => 0,
            Self::Write => 1,
            Self::Flush => 3,
            Self::Trim => 4,
            Self::WriteZeroes => 6,
        }
    }
}

impl Request {
    /// Returns the bytes on the wire, without data. The cookie comes back in the reply.
    #[must_use]
    #[inline]
    pub(crate) fn encode(&self, cookie: u64) -> [u8; REQUEST_BYTES] {
        let flags = u16::from(self.is_fua);
        encoded(
            flags,
            self.command.number(),
            cookie,
            self.offset,
            self.length,
        )
    }

    /// Returns the bytes of data that follow.
    pub(crate) const fn payload(&self) -> u32 {
        match self.command {
            Command::Write => self.length,
            _ => 0,
        }
    }
}

/// Returns the request that ends a connection, to which there is no reply.
pub(crate) fn disconnect() -> [u8; REQUEST_BYTES] {
    encoded(0, DISCONNECT, 0, 0, 0)
}

#[inline]
fn encoded(flags: u16, command: u16, cookie: u64, offset: u64, length: u32) -> [u8; REQUEST_BYTES] {
    let mut bytes = [0; REQUEST_BYTES];
    bytes[..4].copy_from_slice(&wire::REQUEST.to_be_bytes());
    bytes[4..6].copy_from_slice(&flags.to_be_bytes());
    bytes[6..8].copy_from_slice(&command.to_be_bytes());
    bytes[8..16].copy_from_slice(&cookie.to_be_bytes());
    bytes[16..24].copy_from_slice(&offset.to_be_bytes());
    bytes[24..].copy_from_slice(&length.to_be_bytes());
    bytes
}

/// Bytes of a request without its data.
pub(crate) const REQUEST_BYTES: usize = 28;
const DISCONNECT: u16 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    /// Fields in the order and with the numbers of the protocol's document.
    #[test]
    fn a_request_has_the_form_of_the_protocol() {
        let request = Request {
            command: Command::WriteZeroes,
            offset: 0x0102_0304_0506_0708,
            length: 0x1112_1314,
            is_fua: true,
        };
        let want = [
            0x25, 0x60, 0x95, 0x13, 0, 1, 0, 6, 0, 0, 0, 9, 0, 0, 0, 7, 1, 2, 3, 4, 5, 6, 7, 8,
            0x11, 0x12, 0x13, 0x14,
        ];
        assert_eq!(request.encode(9 << 32 | 7), want);
        assert_eq!(disconnect()[4..8], [0, 0, 0, 2]);
    }
}

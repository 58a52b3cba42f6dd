//! Completion queue entries and their status.

use crate::wire::{put, u16_at, u64_at};

/// Completion queue entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// Result of the command: dwords 0 and 1.
    pub result: u64,
    /// Submission queue head: entries that the controller has consumed, modulo the queue's size.
    pub sq_head: u16,
    /// Submission queue identifier; hosts over fabrics ignore it.
    pub sq_id: u16,
    /// Identifier of the completed command.
    pub cid: u16,
    /// Status.
    pub status: Status,
}

impl Completion {
    /// Length on the wire.
    pub const BYTES: usize = 16;

    /// Decodes an entry, of which any bytes are valid; the phase bit has no meaning over fabrics.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        Self {
            result: u64_at(bytes, 0),
            sq_head: u16_at(bytes, 8),
            sq_id: u16_at(bytes, 10),
            cid: u16_at(bytes, 12),
            status: Status(u16_at(bytes, 14) >> 1),
        }
    }

    /// Encodes the entry, with a phase bit of 0.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        put(&mut bytes, 0, self.result.to_le_bytes());
        put(&mut bytes, 8, self.sq_head.to_le_bytes());
        put(&mut bytes, 10, self.sq_id.to_le_bytes());
        put(&mut bytes, 12, self.cid.to_le_bytes());
        put(&mut bytes, 14, (self.status.0 << 1).to_le_bytes());
        bytes
    }
}

/// Status of a command: 15 bits, the phase bit left out.
///
/// ```text
/// bit 14   13    12 11  10   8 7      0
///    DNR | more | CRD | type  |  code  |
/// ```
///
/// A newtype and no enum: a peer may send any value, and it is printed as it came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status(u16);

impl Status {
    /// Successful completion.
    pub const SUCCESS: Self = Self(0);
    /// Opcode that the controller does not have.
    pub const INVALID_OPCODE: Self = Self::generic(0x01);
    /// Field with a value that is reserved or not supported.
    pub const INVALID_FIELD: Self = Self::generic(0x02);
    /// Identifier of a command in flight.
    pub const CID_CONFLICT: Self = Self::generic(0x03);
    /// Error of the medium or a device, with nothing more to say.
    pub const INTERNAL_ERROR: Self = Self::generic(0x06);
    /// Aborted because its queue was deleted.
    pub const ABORTED_SQ_DELETION: Self = Self::generic(0x08);
    /// Namespace that does not exist.
    pub const INVALID_NAMESPACE: Self = Self::generic(0x0b);
    /// Command in a state of the controller that does not permit it.
    pub const COMMAND_SEQUENCE_ERROR: Self = Self::generic(0x0c);
    /// Length of the SGL that differs from that of the command.
    pub const DATA_SGL_LENGTH_INVALID: Self = Self::generic(0x0f);
    /// Type of SGL descriptor that is not supported.
    pub const SGL_TYPE_INVALID: Self = Self::generic(0x11);
    /// Namespace that is write-protected.
    pub const NAMESPACE_WRITE_PROTECTED: Self = Self::generic(0x20);
    /// Transport error that a retry may cure: a wrong data digest.
    pub const TRANSIENT_TRANSPORT_ERROR: Self = Self::generic(0x22);
    /// Blocks beyond the end of the namespace.
    pub const LBA_OUT_OF_RANGE: Self = Self::generic(0x80);
    /// No space left.
    pub const CAPACITY_EXCEEDED: Self = Self::generic(0x81);
    /// Namespace that is not ready.
    pub const NAMESPACE_NOT_READY: Self = Self::generic(0x82);
    /// Queue identifier that is in use or out of range.
    pub const INVALID_QUEUE_ID: Self = Self::specific(0x01);
    /// More Asynchronous Event Requests than the controller holds.
    pub const ASYNC_EVENT_LIMIT: Self = Self::specific(0x05);
    /// Connect with a record format other than 0.
    pub const CONNECT_INCOMPATIBLE_FORMAT: Self = Self::specific(0x80);
    /// Connect to a controller that is busy.
    pub const CONNECT_CONTROLLER_BUSY: Self = Self::specific(0x81);
    /// Connect with an invalid parameter, which the result names.
    pub const CONNECT_INVALID_PARAMETERS: Self = Self::specific(0x82);
    /// Connect by a host that the subsystem does not allow.
    pub const CONNECT_INVALID_HOST: Self = Self::specific(0x84);
    /// Unrecovered read error.
    pub const UNRECOVERED_READ: Self = Self::media(0x81);
    /// Write fault.
    pub const WRITE_FAULT: Self = Self::media(0x80);
    /// Compare with other data.
    pub const COMPARE_FAILURE: Self = Self::media(0x85);

    /// Creates the status of 15 bits, as a driver reports it; a higher bit is cut.
    #[must_use]
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits & 0x7fff)
    }

    /// Returns the status with "do not retry" set.
    #[must_use]
    pub const fn do_not_retry(self) -> Self {
        Self(self.0 | DNR)
    }

    /// Returns whether the command succeeded.
    #[must_use]
    pub const fn is_success(self) -> bool {
        self.0 & (CODE | TYPE) == 0
    }

    /// Returns whether a retry would fail, too.
    #[must_use]
    pub const fn has_do_not_retry(self) -> bool {
        self.0 & DNR != 0
    }

    /// Returns the status code type and the status code.
    #[must_use]
    pub const fn type_and_code(self) -> (u8, u8) {
        let [code, rest] = self.0.to_le_bytes();
        (rest & 7, code)
    }

    const fn generic(code: u16) -> Self {
        Self(code)
    }

    const fn specific(code: u16) -> Self {
        Self(1 << 8 | code)
    }

    const fn media(code: u16) -> Self {
        Self(2 << 8 | code)
    }
}

const CODE: u16 = 0xff;
const TYPE: u16 = 7 << 8;
const DNR: u16 = 1 << 14;

#[cfg(test)]
mod tests {
    use super::*;

    /// A Connect to an unknown subsystem: the NQN at 256 of the data is at fault.
    #[test]
    fn fields_stand_where_the_specification_has_them() {
        let completion = Completion {
            result: 1 << 16 | 256,
            sq_head: 1,
            sq_id: 0,
            cid: 0x2001,
            status: Status::CONNECT_INVALID_PARAMETERS.do_not_retry(),
        };
        let wire = [0, 1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x01, 0x20, 0x04, 0x83];
        assert_eq!(completion.to_bytes(), wire);
        assert_eq!(Completion::from_bytes(&wire), completion);
        assert_eq!(completion.status.type_and_code(), (1, 0x82));
        assert!(completion.status.has_do_not_retry() && !completion.status.is_success());
        assert!(Status::SUCCESS.do_not_retry().is_success());
    }
}

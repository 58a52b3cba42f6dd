//! Texts of statuses and fatal errors, for messages to users.

use std::fmt;

use crate::completion::Status;
use crate::pdu::{FatalStatus, TermReq};

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, code) = self.type_and_code();
        let row = STATUSES.iter().find(|row| (row.0, row.1) == (kind, code));
        match row {
            Some((.., text)) => write!(f, "{text} (status {kind:x}h/{code:02x}h)"),
            None => write!(f, "status {kind:x}h/{code:02x}h"),
        }
    }
}

impl fmt::Display for TermReq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.status {
            FatalStatus::INVALID_HEADER => {
                return write!(f, "invalid header field at byte {}", self.information);
            }
            FatalStatus::UNSUPPORTED_PARAMETER => {
                return write!(f, "unsupported parameter at byte {}", self.information);
            }
            FatalStatus::SEQUENCE => "PDU out of sequence",
            FatalStatus::HEADER_DIGEST => "wrong header digest",
            FatalStatus::OUT_OF_RANGE => "data transfer out of range",
            FatalStatus::LIMIT_EXCEEDED => "data transfer limit exceeded",
            FatalStatus(other) => return write!(f, "fatal error {other}"),
        };
        f.write_str(text)
    }
}

/// Status code types, status codes, and their texts.
const STATUSES: &[(u8, u8, &str)] = &[
    (0, 0x00, "success"),
    (0, 0x01, "invalid opcode"),
    (0, 0x02, "invalid field"),
    (0, 0x03, "command identifier conflict"),
    (0, 0x04, "data transfer error"),
    (0, 0x05, "aborted by a power loss"),
    (0, 0x06, "internal error"),
    (0, 0x07, "aborted on request"),
    (0, 0x08, "aborted with its queue"),
    (0, 0x0b, "invalid namespace or format"),
    (0, 0x0c, "command sequence error"),
    (0, 0x0f, "invalid SGL length"),
    (0, 0x11, "invalid SGL type"),
    (0, 0x20, "namespace is write-protected"),
    (0, 0x22, "transient transport error"),
    (0, 0x80, "LBA out of range"),
    (0, 0x81, "capacity exceeded"),
    (0, 0x82, "namespace not ready"),
    (0, 0x83, "reservation conflict"),
    (1, 0x01, "invalid queue identifier"),
    (1, 0x02, "invalid queue size"),
    (1, 0x05, "asynchronous event request limit exceeded"),
    (1, 0x80, "incompatible format"),
    (1, 0x81, "controller busy"),
    (1, 0x82, "invalid parameters"),
    (1, 0x83, "restart discovery"),
    (1, 0x84, "host not allowed"),
    (1, 0x91, "authentication required"),
    (1, 0xb6, "invalid operation on a zone"),
    (1, 0xb7, "no random write area is left"),
    (1, 0xb8, "beyond the boundary of a zone"),
    (1, 0xb9, "zone is full"),
    (1, 0xba, "zone is read-only"),
    (1, 0xbb, "zone is offline"),
    (1, 0xbc, "write is not at the zone's write pointer"),
    (1, 0xbd, "too many active zones"),
    (1, 0xbe, "too many open zones"),
    (1, 0xbf, "invalid transition of a zone"),
    (2, 0x80, "write fault"),
    (2, 0x81, "unrecovered read error"),
    (2, 0x82, "guard check error"),
    (2, 0x83, "application tag check error"),
    (2, 0x84, "reference tag check error"),
    (2, 0x85, "compare failure"),
    (2, 0x86, "access denied"),
    (2, 0x87, "unwritten or deallocated block"),
    (3, 0x00, "internal path error"),
    (3, 0x01, "asymmetric access persistent loss"),
    (3, 0x02, "asymmetric access inaccessible"),
    (3, 0x03, "asymmetric access transition"),
    (3, 0x60, "controller path error"),
    (3, 0x70, "host path error"),
    (3, 0x71, "aborted by the host"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_name_the_status() {
        let status = Status::CONNECT_INVALID_HOST.do_not_retry();
        assert_eq!(status.to_string(), "host not allowed (status 1h/84h)");
        let text = "write is not at the zone's write pointer (status 1h/bch)";
        assert_eq!(Status::from_bits(0x1bc).to_string(), text);
        let text = "host path error (status 3h/70h)";
        assert_eq!(Status::from_bits(0x370).to_string(), text);
        let fault = TermReq {
            status: FatalStatus::INVALID_HEADER,
            information: 8,
        };
        assert_eq!(fault.to_string(), "invalid header field at byte 8");
    }
}

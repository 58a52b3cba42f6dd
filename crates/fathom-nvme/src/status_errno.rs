//! Statuses of I/O commands as errnos, mapped as Linux maps them for its block layer.

use fathom_core::Errno;

use crate::completion::Status;

impl Status {
    /// Returns the errno of a failed command.
    #[must_use]
    pub fn errno(self) -> Errno {
        match self.type_and_code() {
            // Invalid opcode.
            (0, 0x01) => Errno::EOPNOTSUPP,
            // Transient transport error: a wrong data digest, at either end.
            (0, 0x22) => Errno::EILSEQ,
            // LBA out of range, namespace not ready, invalid namespace.
            (0, 0x80 | 0x82 | 0x0b) => Errno::EREMOTEIO,
            // Capacity exceeded.
            (0, 0x81) => Errno::ENOSPC,
            // Write-protected; Linux reports a medium error, which says less.
            (0, 0x20) => Errno::EROFS,
            // Too many active zones, too many open zones.
            (1, 0xbd) => Errno::EOVERFLOW,
            (1, 0xbe) => Errno::ETOOMANYREFS,
            // Errors of the medium, as far as they are not of protection information.
            (2, 0x80 | 0x81 | 0x85 | 0x86 | 0x87) => Errno::ENODATA,
            (2, 0x82..=0x84) => Errno::EILSEQ,
            // Errors of the path.
            (3, _) => Errno::ENOLINK,
            _ => Errno::EIO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_medium_range_and_transport_differ() {
        for (status, want) in [
            (Status::UNRECOVERED_READ, Errno::ENODATA),
            (Status::LBA_OUT_OF_RANGE.do_not_retry(), Errno::EREMOTEIO),
            (Status::TRANSIENT_TRANSPORT_ERROR, Errno::EILSEQ),
            (Status::INVALID_OPCODE.do_not_retry(), Errno::EOPNOTSUPP),
            (Status::NAMESPACE_WRITE_PROTECTED, Errno::EROFS),
            (Status::INTERNAL_ERROR, Errno::EIO),
            (Status::from_bits(0x1bc), Errno::EIO),
            (Status::from_bits(0x1be), Errno::ETOOMANYREFS),
            (Status::INVALID_FIELD, Errno::EIO),
        ] {
            assert_eq!(status.errno(), want, "{status}");
        }
    }
}

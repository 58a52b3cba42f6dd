//! Verification errors.

use std::fmt;

use fathom_checksum::Checksum;

use super::Header;

/// Mismatch between data read and data written, with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyError {
    /// Kind of mismatch.
    pub mismatch: Mismatch,
    /// File offset of the block.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
    /// File offset of the op that read it.
    pub request_offset: u64,
    /// Length in bytes.
    pub request_length: u64,
    /// Header of the block, if it has an intact one.
    pub found: Option<Header>,
}

/// Kind of mismatch in a block.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mismatch {
    /// The block was not written for verification.
    Magic {
        /// Value found.
        got: u64,
    },
    /// A field of the header differs.
    Header {
        /// Name of the field.
        what: &'static str,
        /// Value found.
        got: u64,
        /// Expected value.
        want: u64,
    },
    /// The header is damaged.
    HeaderChecksum {
        /// Checksum in the header.
        got: u64,
        /// Checksum of its bytes.
        want: u64,
    },
    /// The payload is damaged.
    Payload {
        /// Kind of checksum.
        checksum: &'static Checksum,
        /// Checksum of the data read.
        got: Box<[u8]>,
        /// Checksum in the header.
        want: Box<[u8]>,
    },
    /// The block is valid, but of a write that a later one has replaced.
    Outdated {
        /// Time in the header.
        time_ns: u64,
        /// Number of the write in its job.
        sequence: u64,
        /// Number of the job.
        thread: u16,
    },
    /// A byte of a trimmed block is not zero.
    NotZero {
        /// Offset in the block.
        at: usize,
        /// Byte found.
        got: u8,
    },
    /// A byte differs from the pattern.
    Pattern {
        /// Offset in the block.
        at: usize,
        /// Byte found.
        got: u8,
        /// Byte of the pattern.
        want: u8,
    },
    /// The device rejected the block in a comparison, but the data read are right.
    Comparison,
}

impl VerifyError {
    /// Returns the place of the block in the buffer of its op.
    pub(super) fn range_in_request(&self) -> std::ops::Range<usize> {
        let from = usize::try_from(self.offset - self.request_offset).unwrap_or(usize::MAX);
        let length = usize::try_from(self.length).unwrap_or(usize::MAX);
        from..from.saturating_add(length)
    }

    /// Returns fio's message, with the file's name: one to three lines.
    #[must_use]
    pub fn describe(&self, file: &str) -> String {
        let place = format!(
            "at file {file} offset {}, length {} (requested block: offset={}, length={})",
            self.offset, self.length, self.request_offset, self.request_length
        );
        match &self.mismatch {
            Mismatch::Payload {
                checksum,
                got,
                want,
            } => format!(
                "{}: verify failed {place}\n       Expected CRC: {}\n       Received CRC: {}",
                checksum.name,
                Hex(want),
                Hex(got)
            ),
            Mismatch::Pattern { at, got, want } => {
                let bits = (got ^ want).count_ones();
                format!(
                    "fio: got pattern '{got:02x}', wanted '{want:02x}'. Bad bits {bits}\n\
                     fio: bad pattern block offset {at}\npattern: verify failed {place}"
                )
            }
            other => format!("{other} {place}"),
        }
    }
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} at offset {}, length {}",
            self.mismatch, self.offset, self.length
        )?;
        if (self.offset, self.length) != (self.request_offset, self.request_length) {
            let (offset, length) = (self.request_offset, self.request_length);
            write!(f, " (requested block: offset={offset}, length={length})")?;
        }
        let Some(found) = self.found else {
            return Ok(());
        };
        write!(
            f,
            "; its header is intact: write {} of job {} at offset {}, {}.{:09} s on its clock",
            found.sequence,
            found.thread,
            found.offset,
            found.time_ns / 1_000_000_000,
            found.time_ns % 1_000_000_000
        )
    }
}

impl std::error::Error for VerifyError {}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic { got } => write!(f, "verify: bad magic header {got:x}, wanted acca"),
            Self::Header { what, got, want } => {
                write!(f, "verify: bad header {what} {got}, wanted {want}")
            }
            Self::HeaderChecksum { got, want } => {
                write!(f, "verify: bad header crc {got:x}, calculated {want:x}")
            }
            Self::Payload {
                checksum,
                got,
                want,
            } => {
                let (name, want, got) = (checksum.name, Hex(want), Hex(got));
                write!(f, "{name}: verify failed (expected {want}, received {got})")
            }
            Self::Outdated {
                sequence, thread, ..
            } => write!(
                f,
                "verify: outdated block: write {sequence} of job {thread}, which a later write \
                 has replaced"
            ),
            Self::NotZero { at, got } => write!(
                f,
                "trim: verify failed (got '{got:02x}', wanted '00', block offset {at})"
            ),
            Self::Pattern { at, got, want } => {
                let bits = (got ^ want).count_ones();
                write!(
                    f,
                    "pattern: verify failed (got '{got:02x}', wanted '{want:02x}', bad bits \
                     {bits}, block offset {at})"
                )
            }
            Self::Comparison => f.write_str(
                "verify: the device rejected the block when it compared it, but the data read back \
                 are right",
            ),
        }
    }
}

/// Bytes, shown in the order in which the block has them.
struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

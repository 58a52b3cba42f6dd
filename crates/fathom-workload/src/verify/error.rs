//! What was read is not what was written.

use std::fmt;

/// What was read is not what was written, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyError {
    /// What is wrong.
    pub mismatch: Mismatch,
    /// The block that is wrong: its first byte in the file.
    pub offset: u64,
    /// Its bytes.
    pub length: u64,
    /// The op that read it: its first byte in the file.
    pub request_offset: u64,
    /// Its bytes.
    pub request_length: u64,
}

/// What is wrong with a block.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mismatch {
    /// Not a block that was written for verification.
    Magic {
        /// What stands there.
        got: u64,
    },
    /// A field of the header.
    Header {
        /// Which.
        what: &'static str,
        /// What it says.
        got: u64,
        /// What it should say.
        want: u64,
    },
    /// The header is damaged.
    HeaderChecksum {
        /// What the header says.
        got: u64,
        /// What its bytes add up to.
        want: u64,
    },
    /// The payload is damaged.
    Payload {
        /// Of what was read.
        got: Checksum,
        /// What the header says.
        want: Checksum,
    },
    /// A byte is not the pattern's.
    Pattern {
        /// Where in the block.
        at: usize,
        /// The byte.
        got: u8,
        /// The pattern's.
        want: u8,
    },
}

/// The checksum of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// CRC-32C without its final inversion, little-endian.
    Crc32c([u8; 4]),
    /// MD5.
    Md5([u8; 16]),
}

impl Checksum {
    /// As in the block.
    #[must_use]
    pub const fn bytes(&self) -> &[u8] {
        match self {
            Self::Crc32c(bytes) => bytes,
            Self::Md5(bytes) => bytes,
        }
    }

    const fn name(&self) -> &'static str {
        match self {
            Self::Crc32c(_) => "crc32c",
            Self::Md5(_) => "md5",
        }
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes()
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl VerifyError {
    /// The message as fio words it, with the file's name.
    #[must_use]
    pub fn describe(&self, file: &str) -> String {
        format!(
            "{} at file {file} offset {}, length {} (requested block: offset={}, length={})",
            self.mismatch, self.offset, self.length, self.request_offset, self.request_length
        )
    }
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} at offset {}, length {} (requested block: offset={}, length={})",
            self.mismatch, self.offset, self.length, self.request_offset, self.request_length
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
            Self::Payload { got, want } => {
                let name = want.name();
                write!(f, "{name}: verify failed (expected {want}, received {got})")
            }
            Self::Pattern { at, got, want } => {
                let bits = (got ^ want).count_ones();
                write!(
                    f,
                    "pattern: verify failed (got '{got:02x}', wanted '{want:02x}', bad bits \
                     {bits}, block offset {at})"
                )
            }
        }
    }
}

/// Blocks too small to carry a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntervalTooSmall {
    /// The longest distance that all block sizes are multiples of, bytes.
    pub interval: u32,
    /// What the header, its checksum and one byte need.
    pub needed: usize,
}

impl fmt::Display for IntervalTooSmall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { interval, needed } = self;
        write!(
            f,
            "verify needs blocks of at least {needed} B, and these come in {interval} B"
        )
    }
}

impl std::error::Error for IntervalTooSmall {}

//! Headers of verified blocks, in both layouts.
//!
//! All numbers are little-endian:
//!
//! ```text
//! field                               fio 3.42   fio 3.33
//! magic 0xacca                               0          0
//! version 0x81                               2          –
//! number of the checksum                     3   2, 2 bytes
//! length of the interval                     4          4
//! seed of the payload                        8          8
//! offset in the file                        16         16
//! seconds and nanoseconds of the write      24         24
//! number of the write in its job            32  34, 2 bytes
//! number of the job                         40         32
//! zero                                      42          –
//! crc32c of all bytes before it             44         36
//! end                                       48         40
//! ```

use fathom_checksum::{HeaderLayout, crc32c};

use super::Mismatch;

/// Header of a verified block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Arrangement of the fields.
    pub layout: HeaderLayout,
    /// Number of the checksum.
    pub checksum: u8,
    /// Bytes from this header to the next.
    pub length: u32,
    /// Seed of a random payload; 0 for a pattern.
    pub seed: u64,
    /// Offset of the block in its file.
    pub offset: u64,
    /// Time of the write, on the clock of its run.
    pub time_ns: u64,
    /// Number of the write in its job; only the low 16 bits in fio 3.33's layout.
    pub sequence: u64,
    /// Number of the job.
    pub thread: u16,
}

impl Header {
    /// Writes the header to the beginning of a block.
    pub(super) fn put(&self, block: &mut [u8]) {
        let end = self.layout.bytes();
        put(block, 0, &MAGIC.to_le_bytes());
        put(block, 4, &self.length.to_le_bytes());
        put(block, 8, &self.seed.to_le_bytes());
        put(block, 16, &self.offset.to_le_bytes());
        let seconds = self.time_ns / 1_000_000_000;
        put(block, 24, &seconds.to_le_bytes()[..4]);
        let nanoseconds = self.time_ns % 1_000_000_000;
        put(block, 28, &nanoseconds.to_le_bytes()[..4]);
        match self.layout {
            HeaderLayout::Fio3_42 => {
                put(block, 2, &[VERSION, self.checksum]);
                put(block, 32, &self.sequence.to_le_bytes());
                put(block, 40, &self.thread.to_le_bytes());
                put(block, 42, &[0, 0]);
            }
            HeaderLayout::Fio3_33 => {
                put(block, 2, &[self.checksum, 0]);
                put(block, 32, &self.thread.to_le_bytes());
                put(block, 34, &self.sequence.to_le_bytes()[..2]);
            }
        }
        let own = crc32c(&block[..end - 4]);
        put(block, end - 4, &own.to_le_bytes());
    }

    /// Reads the header at the beginning of a block; its checksum is not looked at.
    ///
    /// # Errors
    /// There is no header, or one of an unknown version.
    pub(super) fn decode(block: &[u8]) -> Result<Self, Mismatch> {
        let magic = number(block, 0, 2);
        if magic != u64::from(MAGIC) {
            return Err(Mismatch::Magic { got: magic });
        }
        let layout = layout_of(block)?;
        if block.len() < layout.bytes() {
            return Err(Mismatch::unknown_version(block));
        }
        let (checksum, sequence, thread) = match layout {
            HeaderLayout::Fio3_42 => (block[3], number(block, 32, 8), bytes(block, 40)),
            HeaderLayout::Fio3_33 => (block[2], number(block, 34, 2), bytes(block, 32)),
        };
        let seconds = number(block, 24, 4);
        Ok(Self {
            layout,
            checksum,
            length: u32::from_le_bytes(bytes(block, 4)),
            seed: number(block, 8, 8),
            offset: number(block, 16, 8),
            // Cannot overflow: 2³² s are fewer than 2⁶⁴ ns, and 2³² ns are 5 s.
            time_ns: seconds * 1_000_000_000 + number(block, 28, 4),
            sequence,
            thread: u16::from_le_bytes(thread),
        })
    }

    /// Checks the checksum of the header at the beginning of a block.
    ///
    /// # Errors
    /// It differs.
    pub(super) fn check_crc(block: &[u8], layout: HeaderLayout) -> Result<(), Mismatch> {
        let at = layout.bytes() - 4;
        let (got, want) = (number(block, at, 4), u64::from(crc32c(&block[..at])));
        match got == want {
            true => Ok(()),
            false => Err(Mismatch::HeaderChecksum { got, want }),
        }
    }
}

/// Returns the layout of a header. A version of its own came with the longer one; before, there
/// was the number of the checksum in 16 bits, of which none needs more than 5.
fn layout_of(block: &[u8]) -> Result<HeaderLayout, Mismatch> {
    match (block[2], block[3]) {
        (VERSION, _) => Ok(HeaderLayout::Fio3_42),
        (1..=31, 0) => Ok(HeaderLayout::Fio3_33),
        _ => Err(Mismatch::unknown_version(block)),
    }
}

impl Mismatch {
    /// Returns the mismatch of a header whose version is unknown, or too long for its block.
    pub(super) fn unknown_version(header: &[u8]) -> Self {
        Self::Header {
            what: "version",
            got: u64::from(header[2]),
            want: u64::from(VERSION),
        }
    }
}

fn put(block: &mut [u8], at: usize, bytes: &[u8]) {
    block[at..at + bytes.len()].copy_from_slice(bytes);
}

fn bytes<const N: usize>(block: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|index| block[at + index])
}

/// Reads a little-endian number of `count` bytes, at most 8.
fn number(block: &[u8], at: usize, count: usize) -> u64 {
    block[at..at + count]
        .iter()
        .rev()
        .fold(0, |sum, &byte| sum << 8 | u64::from(byte))
}

const MAGIC: u16 = 0xacca;
const VERSION: u8 = 0x81;

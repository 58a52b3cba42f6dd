//! Checksums of verified blocks (`verify=`), one row each.
//!
//! The job language takes names and help texts from the rows, the verifier takes header numbers,
//! sizes and digests, and `--crctest` measures each row. None of them matches on a checksum, so
//! [`CHECKSUMS`] is the one place to add one.
#![forbid(unsafe_code)]

use std::fmt;

use md5::{Digest, Md5};
use twox_hash::XxHash32;

/// Checksum that a block can carry between its header and its payload.
pub struct Checksum {
    /// fio's name for it.
    pub name: &'static str,
    /// Other names that mean it.
    pub aliases: &'static [&'static str],
    /// Its name in the literature, for help texts.
    pub title: &'static str,
    /// fio's number for it in the header.
    pub header_id: u8,
    /// Bytes that it takes in the block, at most [`CHECKSUM_BYTES_MAX`].
    pub bytes: usize,
    /// Writes the checksum of the first slice, as fio stores it, into the second, which has
    /// [`bytes`](Self::bytes) bytes. A function pointer: one indirect call per block costs nothing
    /// beside the pass over its payload.
    pub digest: fn(&[u8], &mut [u8]),
}

impl Checksum {
    /// Returns the checksum with this name or alias.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        CHECKSUMS
            .iter()
            .find(|row| row.names().any(|own| own == name))
    }

    /// Returns its name and aliases.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// Returns the offset of the payload in a block with this checksum.
    #[must_use]
    pub const fn payload_start(&self) -> usize {
        HEADER_BYTES + self.bytes
    }
}

/// Rows are equal if their header numbers are: these are unique, and function pointers cannot be
/// compared reliably.
impl PartialEq for Checksum {
    fn eq(&self, other: &Self) -> bool {
        self.header_id == other.header_id
    }
}

impl Eq for Checksum {}

impl fmt::Debug for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Returns CRC-32C as fio stores it: with the inversion of the initial value, but without the final
/// one. It also protects the header itself.
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    !crc32c::crc32c(bytes)
}

/// Checksums that `verify=` offers, in the order of fio's documentation.
///
/// Numbers and sizes are those of fio's header; the bytes of each digest were compared with blocks
/// that fio 3.33 wrote.
pub static CHECKSUMS: &[Checksum] = &[
    Checksum {
        name: "md5",
        aliases: &[],
        title: "MD5",
        header_id: 2,
        bytes: 16,
        digest: |data, out| out.copy_from_slice(&Md5::digest(data)),
    },
    Checksum {
        name: "crc32c",
        aliases: &["crc32c-intel"],
        title: "CRC-32C",
        header_id: 5,
        bytes: 4,
        digest: |data, out| out.copy_from_slice(&crc32c(data).to_le_bytes()),
    },
    Checksum {
        name: "xxhash",
        aliases: &[],
        title: "XXH32 with seed 1",
        header_id: 15,
        bytes: 4,
        digest: |data, out| out.copy_from_slice(&XxHash32::oneshot(1, data).to_le_bytes()),
    },
];

/// Bytes of the header in front of a checksum.
pub const HEADER_BYTES: usize = 48;

/// Size of a buffer that holds any checksum.
pub const CHECKSUM_BYTES_MAX: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_header_numbers_are_unique() {
        let mut names: Vec<_> = CHECKSUMS.iter().flat_map(Checksum::names).collect();
        let mut numbers: Vec<_> = CHECKSUMS.iter().map(|row| row.header_id).collect();
        let counts = (names.len(), numbers.len());
        names.sort_unstable();
        names.dedup();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!((names.len(), numbers.len()), counts);
    }

    #[test]
    fn every_digest_fills_its_bytes() {
        for row in CHECKSUMS {
            assert!((1..=CHECKSUM_BYTES_MAX).contains(&row.bytes), "{row:?}");
            let mut buffers = [[0; CHECKSUM_BYTES_MAX], [0xff; CHECKSUM_BYTES_MAX]];
            for buffer in &mut buffers {
                (row.digest)(b"fathom", &mut buffer[..row.bytes]);
            }
            assert_eq!(buffers[0][..row.bytes], buffers[1][..row.bytes], "{row:?}");
        }
    }

    /// fio 3.33 wrote blocks of 512 bytes with `verify_pattern=0xdeadbeef`: a header of 40 bytes in
    /// that version, the checksum, and the rest of the pattern, which begins with the block.
    #[track_caller]
    fn check_as_fio(name: &str, want: &str) {
        let row = Checksum::find(name).expect(name);
        let block: Vec<u8> = [0xde, 0xad, 0xbe, 0xef].repeat(128);
        let mut got = vec![0; row.bytes];
        (row.digest)(&block[40 + row.bytes..], &mut got);
        let hex: String = got.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, want, "{name}");
    }

    #[test]
    fn digests_are_those_of_fio() {
        check_as_fio("md5", "800984f493774970cfcd67c099adbcc7");
        check_as_fio("crc32c", "3df95b2d");
        check_as_fio("crc32c-intel", "3df95b2d");
        check_as_fio("xxhash", "4863ccd8");
    }

    #[test]
    fn the_checksum_is_not_inverted_at_the_end() {
        // The check value of CRC-32C is 0xe3069283 for the digits 1 to 9.
        assert_eq!(crc32c(b"123456789"), !0xe306_9283);
    }
}

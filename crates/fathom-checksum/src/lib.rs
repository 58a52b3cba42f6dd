//! Checksums of verified blocks (`verify=`), one row each.
//!
//! The job language takes names and help texts from the rows, the verifier takes header numbers,
//! sizes and digests, and `--crctest` measures each row. None of them matches on a checksum, so
//! [`CHECKSUMS`] is the one place to add one.
#![forbid(unsafe_code)]

mod fio_forms;
mod layout;
mod table;

use std::fmt;

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
    /// Bytes that it takes in the block, at most [`CHECKSUM_BYTES_MAX`]; 0: the header alone is
    /// protected.
    pub bytes: usize,
    /// Writes the checksum of the first slice, as fio stores it, into the second, which has
    /// [`bytes`](Self::bytes) bytes. A function pointer: one indirect call per block costs nothing
    /// beside the pass over its payload.
    pub digest: Digest,
    /// The bytes under the header of fio 3.33, where they are others.
    pub digest_fio_3_33: Option<Digest>,
    /// Other forms that are accepted under the larger header.
    pub accepted: &'static [Digest],
}

/// Function from a payload to the stored bytes of a checksum.
pub type Digest = fn(&[u8], &mut [u8]);

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

    /// Returns the bytes that the header and this checksum take in a block.
    #[must_use]
    pub const fn payload_start(&self, layout: HeaderLayout) -> usize {
        layout.bytes() + self.bytes
    }

    /// Returns the function that computes the stored bytes under a header of this layout.
    #[must_use]
    pub fn digest_under(&self, layout: HeaderLayout) -> Digest {
        match layout {
            HeaderLayout::Fio3_42 => self.digest,
            HeaderLayout::Fio3_33 => self.digest_fio_3_33.unwrap_or(self.digest),
        }
    }

    /// Returns whether the stored bytes are those of the payload, in a form that is accepted under
    /// this header: a damaged payload matches none.
    #[must_use]
    pub fn matches(&self, layout: HeaderLayout, payload: &[u8], stored: &[u8]) -> bool {
        let mut buffer = [0; CHECKSUM_BYTES_MAX];
        let mut same = |digest: Digest| {
            let got = &mut buffer[..self.bytes];
            got.fill(0);
            digest(payload, got);
            got == stored
        };
        same(self.digest_under(layout))
            || (layout == HeaderLayout::Fio3_42 && self.accepted.iter().any(|&other| same(other)))
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
    !crc_fast::crc32_iscsi(bytes)
}

/// Size of a buffer that holds any checksum.
pub const CHECKSUM_BYTES_MAX: usize = 128;

pub use layout::HeaderLayout;
pub use table::{CHECKSUMS, META, PATTERN_HEADER};

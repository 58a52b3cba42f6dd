//! Format of a namespace's blocks: their data, their metadata and protection information.

use crate::identify::Page;
use crate::protection::{Guard, Protection, ProtectionType};
use crate::wire::{u16_at, u32_at, u64_at};

/// Format in which a namespace stores its blocks, and its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockFormat {
    /// Size in blocks.
    pub blocks: u64,
    /// Bytes of a block's data as a power of two, 9 to 16.
    pub block_shift: u8,
    /// Bytes of a block's metadata; 0: none.
    pub metadata_bytes: u16,
    /// Metadata follow the data of their block in the same buffer (extended LBAs), instead of being
    /// transferred in a buffer of their own.
    pub is_extended: bool,
    /// Protection information in the metadata.
    pub protection: Option<Protection>,
}

impl BlockFormat {
    /// Decodes Identify Namespace (CNS 00h), and its extension by the NVM command set (CNS 05h) if
    /// the controller has it; `None` for what no host can use: a block size below 512 bytes or
    /// above 64 KiB, as in the zeroed page of an inactive namespace, a size of 8 EiB or above, or
    /// protection information that the metadata have no room for.
    #[must_use]
    pub fn decode(page: &Page, nvm: Option<&Page>) -> Option<Self> {
        let index = format_index(page);
        let format = LBAF0 + 4 * index;
        let (metadata_bytes, block_shift) = (u16_at(page, format), page[format + 2]);
        let blocks = u64_at(page, NSZE);
        let is_usable = (9..=16).contains(&block_shift)
            && blocks <= i64::MAX.unsigned_abs() >> (block_shift + 1);
        let guard = nvm.map_or(Some(Guard::Crc16), |nvm| {
            guard(u32_at(nvm, ELBAF0 + 4 * index))
        });
        let protection = match ProtectionType::of(page[DPS] & 0x7) {
            None => None,
            Some(kind) => Some(Protection {
                kind,
                guard: guard?,
                is_first: page[DPS] & DPS_FIRST != 0,
            }),
        };
        let has_room =
            protection.is_none_or(|own| usize::from(metadata_bytes) >= own.guard.tuple_bytes());
        (is_usable && has_room).then_some(Self {
            blocks,
            block_shift,
            metadata_bytes,
            is_extended: metadata_bytes > 0 && page[FLBAS] & FLBAS_EXTENDED != 0,
            protection,
        })
    }

    /// Returns the bytes of a block's data.
    #[must_use]
    pub const fn block_bytes(&self) -> u32 {
        1 << self.block_shift
    }
}

/// Returns the number of the LBA format in use, 0 to 63, from Identify Namespace.
pub(crate) fn format_index(page: &Page) -> usize {
    let flbas = page[FLBAS];
    // Bits 6:5 extend the index beyond 16 formats.
    usize::from(flbas & 0xf) | usize::from(flbas >> 5 & 0x3) << 4
}

/// Returns the kind of guard that an extended LBA format has; `None` for those without a tuple
/// defined here.
const fn guard(format: u32) -> Option<Guard> {
    let storage_tag_bits = format & 0x7f;
    match (format >> 7 & 0x3, storage_tag_bits) {
        (0, 0) => Some(Guard::Crc16),
        (2, 0) => Some(Guard::Crc64),
        _ => None,
    }
}

// Identify Namespace.
const NSZE: usize = 0;
const FLBAS: usize = 26;
const FLBAS_EXTENDED: u8 = 1 << 4;
const DPS: usize = 29;
/// Protection information are the first bytes of the metadata, not the last.
const DPS_FIRST: u8 = 1 << 3;
const LBAF0: usize = 128;
// Its extension by the NVM command set.
const ELBAF0: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identify::IDENTIFY_BYTES;
    use crate::wire::put;

    /// A page in which format 3 has these metadata and block size.
    fn page(flbas: u8, dps: u8, metadata_bytes: u16, shift: u8) -> Page {
        let mut page = [0; IDENTIFY_BYTES];
        put(&mut page, NSZE, 1000_u64.to_le_bytes());
        page[FLBAS] = flbas;
        page[DPS] = dps;
        put(&mut page, LBAF0 + 12, metadata_bytes.to_le_bytes());
        page[LBAF0 + 14] = shift;
        page
    }

    #[test]
    fn the_format_in_use_is_decoded() {
        let plain = BlockFormat::decode(&page(3, 0, 0, 12), None).expect("a format");
        assert_eq!((plain.block_bytes(), plain.blocks), (4096, 1000));
        assert_eq!((plain.metadata_bytes, plain.is_extended), (0, false));
        assert_eq!(plain.protection, None);
        let extended = BlockFormat::decode(&page(0x13, 0x9, 8, 9), None).expect("a format");
        assert!(extended.is_extended);
        let want = Protection {
            kind: ProtectionType::One,
            guard: Guard::Crc16,
            is_first: true,
        };
        assert_eq!(extended.protection, Some(want));
    }

    #[test]
    fn the_guard_is_that_of_the_extension() {
        let with = |elbaf: u32, metadata| {
            let mut nvm = [0; IDENTIFY_BYTES];
            put(&mut nvm, ELBAF0 + 12, elbaf.to_le_bytes());
            let format = BlockFormat::decode(&page(3, 1, metadata, 12), Some(&nvm))?;
            format.protection.map(|own| own.guard)
        };
        assert_eq!(with(0, 8), Some(Guard::Crc16));
        assert_eq!(with(2 << 7, 16), Some(Guard::Crc64));
        assert_eq!(with(2 << 7, 8), None, "no room");
        assert_eq!(with(1 << 7, 16), None, "a guard of 32 bits");
        assert_eq!(with(2 << 7 | 16, 16), None, "a storage tag");
    }

    #[test]
    fn unusable_formats_are_none() {
        for page in [
            [0; IDENTIFY_BYTES],
            page(3, 0, 0, 8),
            page(3, 0, 0, 17),
            page(3, 1, 4, 12),
        ] {
            assert_eq!(BlockFormat::decode(&page, None), None);
        }
    }
}

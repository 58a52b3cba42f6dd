//! Command descriptor blocks, as in SBC-4 and SPC-5. Numbers are big-endian.

use fathom_sys::scsi::Cdb;

/// Blocks that a command names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) first: u64,
    pub(crate) blocks: u32,
}

/// Data that a command compares with those on the medium (BYTCHK).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compare {
    /// None: the medium is read.
    Nothing = 0b00,
    /// Those transferred.
    Blocks = 0b01,
    /// The one block transferred, with each.
    OneBlock = 0b11,
}

pub(crate) fn read(extent: Extent, fua: bool) -> Cdb {
    ten_or_sixteen([0x28, 0x88], fua_bit(fua), extent)
}

pub(crate) fn write(extent: Extent, fua: bool) -> Cdb {
    ten_or_sixteen([0x2a, 0x8a], fua_bit(fua), extent)
}

/// Returns READ(16), whatever the blocks.
pub(crate) fn read_16(extent: Extent) -> Cdb {
    sixteen(0x88, 0, extent)
}

/// Returns WRITE(16), whatever the blocks.
pub(crate) fn write_16(extent: Extent, fua: bool) -> Cdb {
    sixteen(0x8a, fua_bit(fua), extent)
}

/// Returns WRITE AND VERIFY without comparison.
pub(crate) fn write_and_verify(extent: Extent) -> Cdb {
    ten_or_sixteen([0x2e, 0x8e], 0, extent)
}

pub(crate) fn verify(extent: Extent, compare: Compare) -> Cdb {
    ten_or_sixteen([0x2f, 0x8f], (compare as u8) << 1, extent)
}

pub(crate) fn write_same(extent: Extent) -> Cdb {
    ten_or_sixteen([0x41, 0x93], 0, extent)
}

/// Returns WRITE SAME(16) without a data-out buffer (NDOB): the device writes zeros, or a pattern
/// of its own. The form of 10 bytes has no such bit.
pub(crate) fn write_same_without_data(extent: Extent) -> Cdb {
    sixteen(0x93, 1, extent)
}

/// Returns WRITE STREAM(16); `None` for more blocks than its 16 bits hold.
pub(crate) fn write_stream(extent: Extent, fua: bool, stream: u16) -> Option<Cdb> {
    let blocks = u16::try_from(extent.blocks).ok()?;
    let mut block = [0; 16];
    (block[0], block[1]) = (0x9a, fua_bit(fua));
    block[2..10].copy_from_slice(&extent.first.to_be_bytes());
    block[10..12].copy_from_slice(&stream.to_be_bytes());
    block[12..14].copy_from_slice(&blocks.to_be_bytes());
    Some(Cdb::new(block))
}

/// Returns UNMAP with a parameter list of so many ranges; see [`write_unmap_list`].
pub(crate) fn unmap(ranges: u16) -> Cdb {
    let mut block = [0; 10];
    block[0] = 0x42;
    block[7..9].copy_from_slice(&unmap_list_bytes(ranges).to_be_bytes());
    Cdb::new(block)
}

/// Returns the length of the parameter list of UNMAP for so many ranges, at most
/// [`UNMAP_RANGES_MAX`].
pub(crate) const fn unmap_list_bytes(ranges: u16) -> u16 {
    UNMAP_HEADER_BYTES + ranges * UNMAP_RANGE_BYTES
}

/// Writes the parameter list of UNMAP into the first bytes of `list`.
///
/// # Panics
/// If `list` is shorter than [`unmap_list_bytes`].
pub(crate) fn write_unmap_list(extents: &[Extent], list: &mut [u8]) {
    let (header, ranges) = list.split_at_mut(UNMAP_HEADER_BYTES.into());
    let (ranges, _rest) = ranges.as_chunks_mut::<{ UNMAP_RANGE_BYTES as usize }>();
    for (extent, range) in extents.iter().zip(&mut ranges[..extents.len()]) {
        range[..8].copy_from_slice(&extent.first.to_be_bytes());
        range[8..12].copy_from_slice(&extent.blocks.to_be_bytes());
        range[12..].fill(0);
    }
    let bytes = extents.len() * usize::from(UNMAP_RANGE_BYTES);
    // Cannot be cut: a list has 16 bits of bytes.
    let [high, low] = u16::try_from(bytes).unwrap_or(u16::MAX).to_be_bytes();
    let [whole_high, whole_low] = u16::try_from(bytes + 6).unwrap_or(u16::MAX).to_be_bytes();
    header.copy_from_slice(&[whole_high, whole_low, high, low, 0, 0, 0, 0]);
}

/// Returns SYNCHRONIZE CACHE(10) of all blocks.
pub(crate) const fn synchronize_cache() -> Cdb {
    Cdb::new([0x35, 0, 0, 0, 0, 0, 0, 0, 0, 0])
}

/// Returns READ CAPACITY(10), whose answer has 8 bytes.
pub(crate) const fn read_capacity_10() -> Cdb {
    Cdb::new([0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0])
}

/// Returns READ CAPACITY(16), with an answer of 32 bytes.
pub(crate) const fn read_capacity_16() -> Cdb {
    Cdb::new([0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0])
}

/// Returns INQUIRY, with an answer of up to `bytes` bytes.
pub(crate) const fn inquiry(bytes: u8) -> Cdb {
    Cdb::new([0x12, 0, 0, 0, bytes, 0])
}

/// Returns INQUIRY of a page of vital product data, with an answer of up to `bytes` bytes.
pub(crate) const fn inquiry_page(page: u8, bytes: u8) -> Cdb {
    Cdb::new([0x12, 1, page, 0, bytes, 0])
}

/// Returns MODE SENSE(6) of all pages without block descriptors, with an answer of up to `bytes`
/// bytes.
pub(crate) const fn mode_sense(bytes: u8) -> Cdb {
    Cdb::new([0x1a, 0x08, 0x3f, 0, bytes, 0])
}

/// Returns STREAM CONTROL that opens a stream, with an answer of 8 bytes.
pub(crate) const fn open_stream() -> Cdb {
    Cdb::new([0x9e, 0x34, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0])
}

/// Returns STREAM CONTROL that closes a stream.
pub(crate) const fn close_stream(stream: u16) -> Cdb {
    let [high, low] = stream.to_be_bytes();
    Cdb::new([0x9e, 0x54, 0, 0, high, low, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
}

/// Returns the form of 10 bytes where the blocks fit in it, as all devices have it.
fn ten_or_sixteen(opcodes: [u8; 2], flags: u8, extent: Extent) -> Cdb {
    let (first, blocks) = (u32::try_from(extent.first), u16::try_from(extent.blocks));
    let (Ok(first), Ok(blocks)) = (first, blocks) else {
        return sixteen(opcodes[1], flags, extent);
    };
    let mut block = [0; 10];
    (block[0], block[1]) = (opcodes[0], flags);
    block[2..6].copy_from_slice(&first.to_be_bytes());
    block[7..9].copy_from_slice(&blocks.to_be_bytes());
    Cdb::new(block)
}

fn sixteen(opcode: u8, flags: u8, extent: Extent) -> Cdb {
    let mut block = [0; 16];
    (block[0], block[1]) = (opcode, flags);
    block[2..10].copy_from_slice(&extent.first.to_be_bytes());
    block[10..14].copy_from_slice(&extent.blocks.to_be_bytes());
    Cdb::new(block)
}

const fn fua_bit(fua: bool) -> u8 {
    (fua as u8) << 3
}

const UNMAP_HEADER_BYTES: u16 = 8;
const UNMAP_RANGE_BYTES: u16 = 16;

/// Most ranges of one UNMAP: its list fits in a page.
pub(crate) const UNMAP_RANGES_MAX: u16 = 255;

#[cfg(test)]
mod tests {
    use super::*;

    const LOW: Extent = Extent {
        first: 0x0102_0304,
        blocks: 0x0506,
    };
    /// Beyond 32 bits.
    const FAR: Extent = Extent {
        first: 0x0102_0304_0506_0708,
        blocks: 9,
    };
    /// Beyond 16 bits.
    const LONG: Extent = Extent {
        first: 1,
        blocks: 0x1_0000,
    };

    #[track_caller]
    fn check(cdb: Cdb, want: &[u8]) {
        assert_eq!(cdb.as_bytes(), want, "{cdb:02x?}");
    }

    #[test]
    fn blocks_that_fit_take_the_short_form() {
        check(read(LOW, false), &[0x28, 0, 1, 2, 3, 4, 0, 5, 6, 0]);
        check(read(LOW, true), &[0x28, 8, 1, 2, 3, 4, 0, 5, 6, 0]);
        check(write(LOW, true), &[0x2a, 8, 1, 2, 3, 4, 0, 5, 6, 0]);
        check(write_and_verify(LOW), &[0x2e, 0, 1, 2, 3, 4, 0, 5, 6, 0]);
        check(write_same(LOW), &[0x41, 0, 1, 2, 3, 4, 0, 5, 6, 0]);
        for (compare, bits) in [
            (Compare::Nothing, 0),
            (Compare::Blocks, 2),
            (Compare::OneBlock, 6),
        ] {
            check(verify(LOW, compare), &[0x2f, bits, 1, 2, 3, 4, 0, 5, 6, 0]);
        }
    }

    #[test]
    fn others_take_the_long_form() {
        let far = |opcode, flags| {
            let block = [opcode, flags, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 9, 0, 0];
            block.to_vec()
        };
        check(read(FAR, true), &far(0x88, 8));
        check(write(FAR, false), &far(0x8a, 0));
        check(write_and_verify(FAR), &far(0x8e, 0));
        check(verify(FAR, Compare::OneBlock), &far(0x8f, 6));
        check(write_same(FAR), &far(0x93, 0));
        check(write_same_without_data(FAR), &far(0x93, 1));
        check(
            read(LONG, false),
            &[0x88, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0],
        );
    }

    #[test]
    fn commands_of_16_bytes_take_any_block() {
        let low = |opcode, flags| [opcode, flags, 0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 5, 6, 0, 0];
        check(read_16(LOW), &low(0x88, 0));
        check(write_16(LOW, false), &low(0x8a, 0));
        check(write_16(LOW, true), &low(0x8a, 8));
    }

    #[test]
    fn streams_have_a_number_and_16_bits_of_blocks() {
        let want = [0x9a, 8, 0, 0, 0, 0, 1, 2, 3, 4, 0xab, 0xcd, 5, 6, 0, 0];
        check(write_stream(LOW, true, 0xabcd).unwrap(), &want);
        assert_eq!(write_stream(LONG, false, 1), None);
        check(
            open_stream(),
            &[0x9e, 0x34, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0],
        );
        check(
            close_stream(0x0102),
            &[0x9e, 0x54, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        );
    }

    #[test]
    fn an_unmap_has_a_list_of_ranges() {
        check(unmap(1), &[0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0]);
        check(unmap(255), &[0x42, 0, 0, 0, 0, 0, 0, 0xf, 0xf8, 0]);
        let mut list = [0xff; 42];
        write_unmap_list(&[FAR, LOW], &mut list);
        let want = [
            [0, 38, 0, 32, 0, 0, 0, 0].as_slice(),
            &[1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 9, 0, 0, 0, 0],
            &[0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 5, 6, 0, 0, 0, 0],
            &[0xff, 0xff],
        ];
        assert_eq!(list, want.concat()[..]);
        let mut list = [0; 8 + 255 * 16];
        write_unmap_list(&[LOW; 255], &mut list);
        assert_eq!(list[..4], [0xf, 0xf6, 0xf, 0xf0]);
        assert_eq!(usize::from(unmap_list_bytes(255)), list.len());
    }

    #[test]
    fn commands_without_blocks() {
        check(inquiry(36), &[0x12, 0, 0, 0, 36, 0]);
        check(inquiry_page(0xb2, 64), &[0x12, 1, 0xb2, 0, 64, 0]);
        check(mode_sense(192), &[0x1a, 8, 0x3f, 0, 192, 0]);
        check(synchronize_cache(), &[0x35, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        check(read_capacity_10(), &[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        check(
            read_capacity_16(),
            &[0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0],
        );
    }
}

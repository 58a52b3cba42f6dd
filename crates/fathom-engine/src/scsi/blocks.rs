//! Blocks of a disk: their number, their size, and those of an op.

use fathom_core::{EngineError, EngineStep, Op};

use super::cdb::Extent;

/// Capacity of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Capacity {
    pub(crate) blocks: u64,
    /// Logical block size.
    pub(crate) block_bytes: u32,
}

impl Capacity {
    /// Checks what a disk has answered; `path` names it.
    pub(crate) fn new(path: &str, last: u64, block_bytes: u32) -> Result<Self, EngineError> {
        match (last.checked_add(1), block_bytes) {
            (Some(blocks), BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX) => Ok(Self {
                blocks,
                block_bytes,
            }),
            _ => Err(EngineError {
                step: EngineStep::Call("READ CAPACITY"),
                target: format!("{path}: last block {last}, {block_bytes} B per block"),
                errno: None,
                hint: "blocks of 256 B to 1 MiB are supported: format the disk".into(),
            }),
        }
    }

    /// Returns the size in bytes.
    pub(crate) fn bytes(self) -> u64 {
        self.blocks.saturating_mul(self.block_bytes.into())
    }
}

/// Decodes READ CAPACITY(10) as last block and block size; `None` if the number of blocks does not
/// fit.
pub(crate) fn decode_short(answer: [u8; 8]) -> Option<(u64, u32)> {
    let [last, block_bytes] = words(answer);
    (last != u32::MAX).then_some((last.into(), block_bytes))
}

/// Decodes READ CAPACITY(16) as last block and block size.
pub(crate) fn decode_long(answer: &[u8; 32]) -> (u64, u32) {
    let (last, rest) = answer.split_first_chunk().unwrap_or((&[0; 8], &[]));
    let block_bytes = rest.first_chunk().copied().unwrap_or_default();
    (u64::from_be_bytes(*last), u32::from_be_bytes(block_bytes))
}

/// Returns the blocks of an op, if it is in whole ones. No block at all would mean all to some
/// commands.
pub(crate) fn extent(op: &Op, block_bytes: u32) -> Option<Extent> {
    let bytes = block_bytes;
    let (offset_rest, length_rest) = (op.offset % u64::from(bytes), op.length % bytes);
    (op.length > 0 && offset_rest == 0 && length_rest == 0).then(|| Extent {
        first: op.offset / u64::from(bytes),
        blocks: op.length / bytes,
    })
}

fn words(bytes: [u8; 8]) -> [u32; 2] {
    let both = u64::from_be_bytes(bytes);
    // Cannot be cut: the halves of 64 bits.
    [both >> 32, both & 0xffff_ffff].map(|half| u32::try_from(half).unwrap_or(0))
}

const BLOCK_BYTES_MIN: u32 = 256;
const BLOCK_BYTES_MAX: u32 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacities_are_decoded() {
        let short = [0, 0, 0xff, 0xff, 0, 0, 2, 0];
        assert_eq!(decode_short(short), Some((0xffff, 512)));
        assert_eq!(decode_short([0xff, 0xff, 0xff, 0xff, 0, 0, 2, 0]), None);
        let mut long = [0; 32];
        long[..12].copy_from_slice(&[0, 0, 0, 1, 2, 3, 4, 5, 0, 0, 0x10, 0]);
        assert_eq!(decode_long(&long), (0x01_0203_0405, 4096));
    }

    #[test]
    fn sizes_are_those_of_disks() {
        assert_eq!(Capacity::new("x", 7, 512).unwrap().bytes(), 4096);
        for (last, block_bytes) in [(7, 0), (7, 128), (7, 2 << 20), (u64::MAX, 512)] {
            let error = Capacity::new("x", last, block_bytes).unwrap_err();
            assert!(error.hint.contains("format the disk"), "{error}");
        }
    }
}

//! Mismatches of a job: all are counted, the first ones kept.

use fathom_core::{FileIndex, Xoshiro256};

use super::{Expected, Mismatch, Verifier, VerifyError};

/// Mismatches that a job found.
///
/// Nothing is allocated before the first one. Kept are the texts of [`KEPT`](Self::KEPT), and with
/// `verify_dump` blocks of [`DUMP_BYTES_MAX`](Self::DUMP_BYTES_MAX) together.
#[derive(Clone, Debug, Default)]
pub struct Mismatches {
    /// Number of reads with a mismatch.
    pub total: u64,
    /// Blocks checked.
    pub checked: CheckedBlocks,
    /// The first ones.
    pub kept: Vec<FoundMismatch>,
    /// Blocks to save.
    pub dumps: Vec<DumpedBlock>,
    /// Number of blocks that were not kept, for lack of room.
    pub not_dumped: u64,
    dump_bytes: usize,
}

/// Number of blocks that a job read to check them, up to a read's first mismatch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckedBlocks {
    /// Compared with what must be in them.
    pub compared: u64,
    /// Not compared, as they may hold anything: not written, written by a job that does not
    /// verify, or with writes in flight beside the read.
    pub unknown: u64,
}

impl CheckedBlocks {
    /// Counts a block.
    #[inline]
    pub(crate) fn add(&mut self, expected: &Expected) {
        match expected {
            Expected::Anything => self.unknown += 1,
            _ => self.compared += 1,
        }
    }
}

/// Mismatch and its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundMismatch {
    /// File of the block.
    pub file: FileIndex,
    /// Kind and place.
    pub error: VerifyError,
}

/// Block with a mismatch, to be saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpedBlock {
    /// File of the block.
    pub file: FileIndex,
    /// Offset in the file.
    pub offset: u64,
    /// The header is not the expected one, so that the right content of its block is unknown.
    pub is_header: bool,
    /// Content that was read.
    pub received: Vec<u8>,
    /// Content that was written, if it can be generated again.
    pub expected: Option<Vec<u8>>,
}

impl Mismatches {
    /// Number of mismatches whose texts are kept.
    pub const KEPT: usize = 16;
    /// Bytes of blocks kept for `verify_dump`.
    pub const DUMP_BYTES_MAX: usize = 16 << 20;

    /// Counts a mismatch.
    #[cold]
    pub(crate) fn add(&mut self, file: FileIndex, error: &VerifyError) {
        self.total += 1;
        if self.kept.len() < Self::KEPT {
            let error = error.clone();
            self.kept.push(FoundMismatch { file, error });
        }
    }

    /// Keeps the block of a mismatch, and what `verifier` wrote there.
    #[cold]
    pub(crate) fn dump(
        &mut self,
        verifier: &Verifier,
        file: FileIndex,
        error: &VerifyError,
        buffer: &[u8],
    ) {
        let block = error.range_in_request();
        let Some(received) = buffer.get(block) else {
            return;
        };
        if self.dump_bytes + 2 * received.len() > Self::DUMP_BYTES_MAX {
            self.not_dumped += 1;
            return;
        }
        self.dump_bytes += 2 * received.len();
        self.dumps.push(DumpedBlock {
            file,
            offset: error.offset,
            is_header: error.mismatch.is_in_header(),
            received: received.to_vec(),
            expected: verifier.generate_again(received, error),
        });
    }
}

impl Verifier {
    /// Returns the block that was written where `received` was read; `None` if its header does not
    /// tell, or if another program generated it.
    fn generate_again(&self, received: &[u8], error: &VerifyError) -> Option<Vec<u8>> {
        match error.mismatch {
            Mismatch::NotZero { .. } => return Some(vec![0; received.len()]),
            Mismatch::Payload { .. } | Mismatch::Pattern { .. } => {}
            _ => return None,
        }
        let mut block = vec![0; received.len()];
        let unit = u64::from(self.layout.unit);
        let phase = (error.offset - error.request_offset) % unit;
        match (self.pattern.is_empty(), error.found) {
            (false, _) => {
                // Cannot be cut: less than the length of an op.
                let phase = usize::try_from(phase).ok()?;
                let mut whole = vec![0; phase + block.len()];
                self.fill_pattern(error.offset - phase as u64, &mut whole);
                block.copy_from_slice(&whole[phase..]);
            }
            (true, found) => Xoshiro256::new(found?.seed).fill(&mut block),
        }
        let Some(checksum) = self.checksum else {
            return Some(block);
        };
        let layout = error.found?.layout;
        let start = checksum.payload_start(layout);
        let place = self.layout.offset as usize;
        block[..start].copy_from_slice(&received[place..place + start]);
        let (head, payload) = block.split_at(start);
        if !checksum.matches(layout, payload, &head[layout.bytes()..]) {
            return None;
        }
        self.layout.swap(&mut block, start);
        Some(block)
    }
}

impl Mismatch {
    /// Returns whether the header, not the payload, differs.
    #[must_use]
    pub const fn is_in_header(&self) -> bool {
        !matches!(
            self,
            Self::Payload { .. } | Self::Pattern { .. } | Self::NotZero { .. }
        )
    }
}

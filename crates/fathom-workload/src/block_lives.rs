//! Lives of blocks: the trims that each survived before a write or trim of it failed
//! (`block_error_percentiles`).

use std::collections::BTreeMap;

use fathom_core::{Direction, FileIndex, NoMemory, OpKind};

use crate::config::FileRange;
use crate::slots::SlotState;

/// State of each block of a job's files, in units of its trims.
///
/// An entry is a word of 32 bits: three of state, the rest the number of trims. A block whose write
/// or trim has failed keeps its entry for the rest of the run.
#[derive(Debug)]
pub(crate) struct BlockLives {
    block_bytes: u64,
    /// First byte of each file's range, and index of its first entry.
    files: Box<[(u64, usize)]>,
    blocks: Box<[u32]>,
}

/// States of blocks, as fio names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum Life {
    Unwritten = 0,
    Trimmed = 1,
    Written = 2,
    TrimFailed = 3,
    WriteFailed = 4,
}

impl BlockLives {
    /// Reserves the entries of blocks of `block_bytes` in these ranges.
    ///
    /// # Errors
    /// Not enough memory.
    pub(crate) fn new(block_bytes: u32, ranges: &[FileRange]) -> Result<Self, NoMemory> {
        let block_bytes = u64::from(block_bytes.max(1));
        let mut count: u64 = 0;
        let mut files = Vec::with_capacity(ranges.len());
        for range in ranges {
            files.push((range.offset, usize::try_from(count).unwrap_or(usize::MAX)));
            count = count.saturating_add(range.length.div_ceil(block_bytes));
        }
        let refused = NoMemory {
            bytes: count.saturating_mul(4),
        };
        let places = usize::try_from(count).map_err(|_| refused)?;
        Vec::<u32>::new()
            .try_reserve_exact(places)
            .map_err(|_| refused)?;
        Ok(Self {
            block_bytes,
            files: files.into_boxed_slice(),
            // Zeroed by the system: pages of blocks that are never touched stay unused.
            blocks: vec![0; places].into_boxed_slice(),
        })
    }

    /// Notes that an op has completed, or has failed (`done` false).
    pub(crate) fn end(&mut self, op: &SlotState, done: bool) {
        let direction = match op.op.kind {
            OpKind::Data(direction @ (Direction::Write | Direction::Trim)) => direction,
            OpKind::Data(Direction::Read) | OpKind::Sync(_) => return,
        };
        let offset = op.op.offset - u64::from(op.op.buffer_offset);
        for block in self.touched(op.op.file, offset, op.total_length()) {
            let (life, trims) = split(*block);
            if matches!(life, Life::TrimFailed | Life::WriteFailed) {
                continue;
            }
            *block = match (direction, done) {
                (Direction::Trim, true) => join(Life::Trimmed, (trims + 1).min(TRIMS_MAX)),
                (Direction::Trim, false) => join(Life::TrimFailed, trims),
                (_, true) => join(Life::Written, trims),
                (_, false) => join(Life::WriteFailed, trims),
            };
        }
    }

    fn touched(&mut self, file: FileIndex, offset: u64, length: u32) -> &mut [u32] {
        let index = file.index();
        let Some(&(start, first)) = self.files.get(index) else {
            return &mut [];
        };
        let end = self.files.get(index + 1).map_or(self.blocks.len(), |f| f.1);
        let blocks = self.blocks.get_mut(first..end).unwrap_or_default();
        let count = blocks.len();
        let place = |block: u64| usize::try_from(block).map_or(count, |at| at.min(count));
        let from = offset.saturating_sub(start);
        let to = (offset + u64::from(length)).saturating_sub(start);
        &mut blocks[place(from / self.block_bytes)..place(to.div_ceil(self.block_bytes))]
    }

    /// Returns the states of all blocks.
    pub(crate) fn results(&self) -> BlockLifetimes {
        let mut lifetimes = BlockLifetimes::default();
        let mut failed = BTreeMap::new();
        for &block in &self.blocks {
            let (life, trims) = split(block);
            lifetimes.states[life as usize] += 1;
            if matches!(life, Life::TrimFailed | Life::WriteFailed) {
                *failed.entry(trims).or_insert(0) += 1;
            }
        }
        lifetimes.failed_after_trims = failed.into_iter().collect();
        lifetimes
    }
}

/// Blocks of a job's files by their states, and the lives of those that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockLifetimes {
    /// Numbers of blocks: unwritten, trimmed, written, and those whose trim or write failed.
    pub states: [u64; 5],
    /// Numbers of trims before a failure, ascending, each with its number of blocks.
    pub failed_after_trims: Vec<(u32, u64)>,
}

const fn join(life: Life, trims: u32) -> u32 {
    (life as u32) << TRIM_BITS | trims
}

const fn split(block: u32) -> (Life, u32) {
    let life = match block >> TRIM_BITS {
        1 => Life::Trimmed,
        2 => Life::Written,
        3 => Life::TrimFailed,
        4 => Life::WriteFailed,
        _ => Life::Unwritten,
    };
    (life, block & TRIMS_MAX)
}

const TRIM_BITS: u32 = 29;
const TRIMS_MAX: u32 = (1 << TRIM_BITS) - 1;

#[cfg(test)]
mod tests {
    use fathom_core::Tick;

    use super::*;
    use crate::pattern::OpTarget;
    use crate::slots::Slots;

    fn op(direction: Direction, file: u32, offset: u64, length: u32) -> SlotState {
        let target = OpTarget {
            direction,
            file: FileIndex::new(file),
            offset,
            length,
        };
        let mut slots = Slots::new(1, &target);
        let slot = slots.take().unwrap();
        let state = slots.state(slot);
        state.start_op(&target, Tick::ZERO, Tick::ZERO, 0);
        *state
    }

    #[test]
    fn a_block_lives_until_its_first_failure() {
        let range = |offset, length| FileRange {
            offset,
            length,
            file: offset + length,
        };
        let mut lives = BlockLives::new(4096, &[range(8192, 16384), range(0, 5000)]).unwrap();
        let (write, trim) = (Direction::Write, Direction::Trim);
        for _ in 0..3 {
            lives.end(&op(write, 0, 8192, 8192), true);
            lives.end(&op(trim, 0, 8192, 4096), true);
        }
        lives.end(&op(write, 0, 8192, 4096), false);
        lives.end(&op(trim, 0, 8192, 4096), true);
        lives.end(&op(trim, 0, 16384, 4096), false);
        lives.end(&op(trim, 1, 4096, 904), true);
        lives.end(&op(Direction::Read, 1, 0, 5000), false);
        let want = BlockLifetimes {
            states: [2, 1, 1, 1, 1],
            failed_after_trims: vec![(0, 1), (3, 1)],
        };
        assert_eq!(lives.results(), want);
    }
}

//! Set of visited blocks that finds the next free block in a few steps, however full it is.
//!
//! ```text
//! level 2                    [0…………]                one bit per full word of level 1
//! level 1          [01……]             [00……]        one bit per full word of level 0
//! level 0   [0110…] [1111…] … [1010…] …             one bit per block, set = taken
//! ```
//!
//! Memory is one bit per block plus 1/63. It is allocated zeroed, so untouched pages cost nothing
//! and a map of 2²⁸ blocks is created in microseconds.

use std::fmt;

/// Set of visited blocks among 0..n.
///
/// Used for random I/O without repetition. Insertion and search take a bounded number of steps, one
/// or two per level. Allocation is the only operation that can fail.
#[derive(Clone, Debug)]
pub struct BlockMap {
    blocks: u64,
    taken: u64,
    /// One bit per block; bits past the last block are set.
    words: Vec<u64>,
    /// Each level has one bit per word of the level below, set when that word is full; bits past
    /// the last word are set. The last level is one word. Empty when `words` is one word.
    levels: Vec<Vec<u64>>,
}

impl BlockMap {
    /// Creates a map of `blocks` free blocks.
    ///
    /// # Errors
    /// Not enough memory.
    pub fn new(blocks: u64) -> Result<Self, NoMemory> {
        let mut map = Self {
            blocks,
            taken: 0,
            words: zeroed(blocks)?,
            levels: Vec::new(),
        };
        let mut words = map.words.len() as u64;
        while words > 1 {
            let level = zeroed(words)?;
            words = level.len() as u64;
            map.levels.push(level);
        }
        map.mark_ends();
        Ok(map)
    }

    /// Returns the number of blocks, free or taken.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.blocks
    }

    /// Returns whether there are no blocks at all.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.blocks == 0
    }

    /// Returns the number of taken blocks.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.taken
    }

    /// Returns whether `block` is taken.
    ///
    /// # Panics
    /// `block` is not below [`BlockMap::len`].
    #[must_use]
    #[inline]
    pub fn test(&self, block: u64) -> bool {
        assert!(block < self.blocks);
        self.words[word_of(block)] & bit_of(block) != 0
    }

    /// Marks `block` as taken and returns whether it was free.
    ///
    /// # Panics
    /// `block` is not below [`BlockMap::len`].
    #[inline]
    pub fn set(&mut self, block: u64) -> bool {
        assert!(block < self.blocks);
        let index = word_of(block);
        let word = self.words[index];
        if word & bit_of(block) != 0 {
            return false;
        }
        self.put(index, word | bit_of(block));
        true
    }

    /// Takes the first free block at or above `start`, else the first of all; `None` if all are
    /// taken. This is fio's rule for a random block that was drawn before.
    ///
    /// # Panics
    /// `start` is not below [`BlockMap::len`] and that is not 0.
    #[inline]
    pub fn take(&mut self, start: u64) -> Option<u64> {
        let index = word_of(start);
        let word = self.words.get(index).copied().unwrap_or(u64::MAX);
        // One path for a free block and for one a little further up: whether a drawn block is free
        // is unpredictable for the branch predictor. Bits past the end are set, so any clear bit is
        // a block.
        let clear = !word & (u64::MAX << (start & 63));
        if clear == 0 {
            return self.take_further(start);
        }
        self.put(index, word | (clear & clear.wrapping_neg()));
        Some((start & !63) + u64::from(clear.trailing_zeros()))
    }

    #[cold]
    fn take_further(&mut self, start: u64) -> Option<u64> {
        let block = self.next_free(start)?;
        self.set(block);
        Some(block)
    }

    /// Returns the first free block at or above `start`, else the first of all; `None` if all are
    /// taken.
    ///
    /// # Panics
    /// `start` is not below [`BlockMap::len`] and that is not 0.
    #[must_use]
    pub fn next_free(&self, start: u64) -> Option<u64> {
        if self.taken == self.blocks {
            return None;
        }
        assert!(start < self.blocks);
        self.free_from(start).or_else(|| self.free_from(0))
    }

    /// Returns the length of the run of free blocks from `start` on, at most `limit`.
    #[must_use]
    pub fn free_run(&self, start: u64, limit: u64) -> u64 {
        let limit = limit.min(self.blocks.saturating_sub(start));
        let mut run = 0;
        while run < limit {
            let block = start + run;
            // Zeros are shifted in from above, so at most the rest of the word counts.
            let free = u64::from((self.words[word_of(block)] >> (block & 63)).trailing_zeros());
            let left = 64 - (block & 63);
            run += free.min(left);
            if free < left {
                break;
            }
        }
        run.min(limit)
    }

    /// Frees all blocks.
    pub fn clear(&mut self) {
        self.taken = 0;
        self.words.fill(0);
        for level in &mut self.levels {
            level.fill(0);
        }
        self.mark_ends();
    }

    /// Stores a word with one more bit set.
    #[inline]
    fn put(&mut self, index: usize, word: u64) {
        self.words[index] = word;
        self.taken += 1;
        if word == u64::MAX {
            self.mark_full(index);
        }
    }

    /// Propagates upwards that the word at `index` of level 0 is full.
    #[cold]
    fn mark_full(&mut self, index: usize) {
        let mut index = index as u64;
        for level in &mut self.levels {
            let word = &mut level[word_of(index)];
            *word |= bit_of(index);
            if *word != u64::MAX {
                return;
            }
            index >>= 6;
        }
    }

    /// Sets the bits past the end of each level.
    fn mark_ends(&mut self) {
        let mut bits = self.blocks;
        for level in std::iter::once(&mut self.words).chain(&mut self.levels) {
            if let Some(last) = level.last_mut()
                && !bits.is_multiple_of(64)
            {
                *last |= u64::MAX << (bits % 64);
            }
            bits = level.len() as u64;
        }
    }

    /// Returns the first free block at or above `start`, without wrapping.
    fn free_from(&self, start: u64) -> Option<u64> {
        if let Some(block) = first_clear(&self.words, start) {
            return Some(block);
        }
        // Up: to the first level that has a word, after ours, that is not full.
        let mut index = start >> 6;
        for (height, level) in self.levels.iter().enumerate() {
            if let Some(found) = first_clear(level, index + 1) {
                return self.descend(height, found);
            }
            index >>= 6;
        }
        None
    }

    /// Returns the first free block under bit `bit` of the level `height` (0: directly above
    /// blocks).
    fn descend(&self, height: usize, bit: u64) -> Option<u64> {
        let mut bit = bit;
        for level in self.levels[..height].iter().rev() {
            bit = first_clear(level, bit << 6)?;
        }
        first_clear(&self.words, bit << 6)
    }
}

/// Not enough memory for a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoMemory {
    /// Requested bytes.
    pub bytes: u64,
}

impl fmt::Display for NoMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no memory for a map of {} bytes", self.bytes)
    }
}

impl std::error::Error for NoMemory {}

/// Returns the first clear bit at or above `start` in the word that holds `start`.
#[inline]
fn first_clear(level: &[u64], start: u64) -> Option<u64> {
    let word = *level.get(word_of(start))?;
    let clear = !word & (u64::MAX << (start & 63));
    (clear != 0).then(|| (start & !63) + u64::from(clear.trailing_zeros()))
}

/// Allocates zeroed, untouched words for `bits` bits.
///
/// `vec![0; n]` allocates lazily zeroed memory, but aborts if there is none; `try_reserve` reports
/// the failure, but its memory would have to be written. So the latter probes, frees its memory,
/// and the former allocates.
fn zeroed(bits: u64) -> Result<Vec<u64>, NoMemory> {
    let words = bits.div_ceil(64);
    let refused = NoMemory {
        bytes: words.saturating_mul(8),
    };
    let words = usize::try_from(words).map_err(|_| refused)?;
    Vec::<u64>::new()
        .try_reserve_exact(words)
        .map_err(|_| refused)?;
    Ok(vec![0; words])
}

/// Returns the index of the word that holds a bit.
#[inline]
const fn word_of(bit: u64) -> usize {
    (bit >> 6) as usize
}

/// Returns the bit's mask within its word.
#[inline]
const fn bit_of(bit: u64) -> u64 {
    1 << (bit & 63)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_draw_takes_the_next_free_block_upward_and_goes_round() {
        let mut map = BlockMap::new(200).unwrap();
        assert_eq!(map.take(198), Some(198));
        assert_eq!(map.take(198), Some(199));
        assert_eq!(map.take(198), Some(0));
        assert_eq!(map.take(198), Some(1));
        assert_eq!(map.count(), 4);
    }

    #[test]
    fn the_last_free_block_is_found_over_all_levels() {
        // Four levels: 64³ blocks and a few more.
        let blocks = 64 * 64 * 64 + 77;
        let mut map = BlockMap::new(blocks).unwrap();
        for hole in [0, 63, 64, 4095, 4096, 262_143, 262_144, blocks - 1] {
            for block in (0..blocks).filter(|&block| block != hole) {
                map.set(block);
            }
            for start in [0, 1, hole, blocks / 2, blocks - 1] {
                assert_eq!(map.next_free(start), Some(hole), "from {start}");
            }
            assert_eq!(map.take(5), Some(hole));
            assert_eq!(map.take(5), None);
            map.clear();
            assert_eq!(map.count(), 0);
        }
    }

    #[test]
    fn a_map_of_nothing_is_full() {
        let mut map = BlockMap::new(0).unwrap();
        assert_eq!(
            (map.next_free(0), map.take(0), map.free_run(0, 9)),
            (None, None, 0)
        );
    }

    #[test]
    fn memory_that_cannot_be_had_is_an_error_and_not_an_abort() {
        let refused = BlockMap::new(1 << 62).unwrap_err();
        assert_eq!(refused.bytes, 1 << 59);
    }
}

//! Fast patterns: one file, one size, no rare option.
//!
//! Their ops differ only in the block, and in the direction if a job has several.

use fathom_core::{BlockMap, Direction, FileIndex};

use crate::config::PatternConfig;

use super::check::Checked;
use super::draw::{Ahead, Draw};
use super::grid::{blocks_of, map_of};
use super::spread::{Shapes, Spread};
use super::{OpTarget, PatternError, Source, fill_with};

/// Blocks of the file.
#[derive(Debug)]
pub(super) struct Row {
    start: u64,
    size: u32,
    blocks: u64,
}

impl Row {
    fn new(config: &PatternConfig, checked: &Checked) -> Self {
        let range = config.files[0];
        let size = checked.largest;
        Self {
            start: range.offset,
            size,
            blocks: blocks_of(range, size, u64::from(size)),
        }
    }

    #[inline]
    fn offset(&self, block: u64) -> u64 {
        // Cannot overflow: the block lies inside the range, whose end was checked.
        self.start + block * u64::from(self.size)
    }
}

/// Source of blocks of one file.
pub(super) trait Blocks {
    fn row(&self) -> &Row;

    /// Returns the next block; `None` when the pass is exhausted.
    fn next_block(&mut self) -> Option<u64>;

    /// Fills `out` with offsets; fewer when the pass is exhausted.
    #[inline]
    fn fill_offsets(&mut self, out: &mut [u64]) -> usize {
        fill_with(out, || {
            let block = self.next_block()?;
            Some(self.row().offset(block))
        })
    }
}

impl<B: Blocks> Source for B {
    #[inline]
    fn next(&mut self, direction: Direction) -> Option<OpTarget> {
        let block = self.next_block()?;
        let row = self.row();
        Some(OpTarget {
            direction,
            file: FileIndex::new(0),
            offset: row.offset(block),
            length: row.size,
        })
    }
}

/// Random blocks, repeats allowed.
#[derive(Debug)]
pub(super) struct Uniform {
    row: Row,
    draw: Draw,
}

impl Uniform {
    pub(super) fn new(config: &PatternConfig, checked: &Checked) -> Self {
        let row = Row::new(config, checked);
        let draw = Draw::new(config.generator, row.blocks, config.seed);
        Self { row, draw }
    }
}

impl Blocks for Uniform {
    fn row(&self) -> &Row {
        &self.row
    }

    #[inline]
    fn next_block(&mut self) -> Option<u64> {
        Some(self.draw.below(self.row.blocks))
    }

    fn fill_offsets(&mut self, out: &mut [u64]) -> usize {
        let row = &self.row;
        self.draw.each_below(row.blocks, out, |place, block| {
            *place = row.offset(block);
        });
        out.len()
    }
}

/// Random blocks from a skewed distribution.
#[derive(Debug)]
pub(super) struct Skewed {
    row: Row,
    spread: Spread,
}

impl Skewed {
    /// Returns the source; `None` for the uniform distribution.
    pub(super) fn new(config: &PatternConfig, checked: &Checked) -> Option<Self> {
        let row = Row::new(config, checked);
        let shape = Shapes::new(config.distribution, config.seed).of(row.blocks)?;
        let spread = Spread::new(shape, config.seed);
        Some(Self { row, spread })
    }
}

impl Blocks for Skewed {
    fn row(&self) -> &Row {
        &self.row
    }

    #[inline]
    fn next_block(&mut self) -> Option<u64> {
        Some(self.spread.next())
    }
}

/// Random blocks, each once per pass.
#[derive(Debug)]
pub(super) struct Mapped {
    row: Row,
    ahead: Ahead,
    map: BlockMap,
}

impl Mapped {
    /// Returns the source; `None` without a map.
    pub(super) fn new(
        config: &PatternConfig,
        checked: &Checked,
    ) -> Result<Option<Self>, PatternError> {
        let row = Row::new(config, checked);
        let ahead = Ahead::new(config.generator, row.blocks, config.seed);
        let map = map_of(checked.map, row.blocks)?;
        Ok(map.map(|map| Self { row, ahead, map }))
    }

    pub(super) fn restart(&mut self) {
        self.map.clear();
    }
}

impl Blocks for Mapped {
    fn row(&self) -> &Row {
        &self.row
    }

    #[inline]
    fn next_block(&mut self) -> Option<u64> {
        // Each block drawn ahead is looked up early: for a map larger than the caches, the CPU then
        // fetches the words in parallel instead of one after the other.
        let drawn = self.ahead.next(|block| self.map.test(block));
        self.map.take(drawn)
    }
}

/// Sequential blocks.
#[derive(Debug)]
pub(super) struct Sequential {
    row: Row,
    block: u64,
}

impl Sequential {
    pub(super) fn new(config: &PatternConfig, checked: &Checked) -> Self {
        let mut row = Row::new(config, checked);
        let range = config.files[0];
        let size = u64::from(row.size);
        // The last one may end after the range, but not after the file.
        let whole = range.file.saturating_sub(range.offset) / size;
        row.blocks = row.blocks.max(range.length.div_ceil(size).min(whole));
        Self { row, block: 0 }
    }

    pub(super) const fn restart(&mut self) {
        self.block = 0;
    }
}

impl Blocks for Sequential {
    fn row(&self) -> &Row {
        &self.row
    }

    #[inline]
    fn next_block(&mut self) -> Option<u64> {
        if self.block == self.row.blocks {
            return None;
        }
        self.block += 1;
        Some(self.block - 1)
    }
}

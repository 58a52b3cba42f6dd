//! The patterns that speed matters most for: one file, one size, nothing rare.

use fathom_core::{BlockMap, Direction, FileIndex};

use crate::config::PatternConfig;

use super::check::Checked;
use super::draw::{Ahead, Draw};
use super::grid::{blocks_of, map_of};
use super::spread::{Shapes, Spread};
use super::{PatternError, Source, Target};

/// The blocks of the one file.
#[derive(Debug)]
struct Row {
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
    fn target(&self, direction: Direction, block: u64) -> Target {
        // Cannot overflow: the block lies inside the range, whose end was checked.
        let offset = self.start + block * u64::from(self.size);
        Target {
            direction,
            file: FileIndex::new(0),
            offset,
            length: self.size,
        }
    }
}

/// Random blocks, any number of times each.
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

impl Source for Uniform {
    #[inline]
    fn next(&mut self, direction: Direction) -> Option<Target> {
        let block = self.draw.below(self.row.blocks);
        Some(self.row.target(direction, block))
    }

    fn fill(&mut self, direction: Direction, out: &mut [Target]) -> usize {
        let row = &self.row;
        self.draw.each_below(row.blocks, out, |place, block| {
            *place = row.target(direction, block);
        });
        out.len()
    }
}

/// Random blocks, some more often than others.
#[derive(Debug)]
pub(super) struct Skewed {
    row: Row,
    spread: Spread,
}

impl Skewed {
    /// `None` where all blocks are alike.
    pub(super) fn new(config: &PatternConfig, checked: &Checked) -> Option<Self> {
        let row = Row::new(config, checked);
        let shape = Shapes::new(config.distribution, config.seed).of(row.blocks)?;
        let spread = Spread::new(shape, config.seed);
        Some(Self { row, spread })
    }
}

impl Source for Skewed {
    #[inline]
    fn next(&mut self, direction: Direction) -> Option<Target> {
        let block = self.spread.next();
        Some(self.row.target(direction, block))
    }
}

/// Random blocks, each once in a pass.
#[derive(Debug)]
pub(super) struct Mapped {
    row: Row,
    ahead: Ahead,
    map: BlockMap,
}

impl Mapped {
    /// `None` where there is to be no map.
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

impl Source for Mapped {
    #[inline]
    fn next(&mut self, direction: Direction) -> Option<Target> {
        // Each block drawn ahead is looked up at once: where the map is larger than the caches,
        // the processor fetches all their words at the same time and not one after the other.
        let drawn = self.ahead.next(|block| self.map.test(block));
        let block = self.map.take(drawn)?;
        Some(self.row.target(direction, block))
    }
}

/// One block after the other.
#[derive(Debug)]
pub(super) struct Sequential {
    row: Row,
    block: u64,
}

impl Sequential {
    pub(super) fn new(config: &PatternConfig, checked: &Checked) -> Self {
        Self {
            row: Row::new(config, checked),
            block: 0,
        }
    }

    pub(super) const fn restart(&mut self) {
        self.block = 0;
    }
}

impl Source for Sequential {
    #[inline]
    fn next(&mut self, direction: Direction) -> Option<Target> {
        if self.block == self.row.blocks {
            return None;
        }
        let target = self.row.target(direction, self.block);
        self.block += 1;
        Some(target)
    }
}

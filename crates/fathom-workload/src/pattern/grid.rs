//! Blocks of one file, and the choice among them.

use fathom_core::{BlockMap, Direction, PerDirection};

use crate::config::{FileRange, MapMode, PatternConfig, RandomGenerator};

use super::PatternError;
use super::check::Checked;
use super::draw::Draw;
use super::lfsr::Lfsr;
use super::spread::{Shapes, Spread};

/// Offsets at which ops of some directions may start in one file. Directions with the same smallest
/// size and alignment share a grid, and its map, unless all directions share one.
#[derive(Debug)]
pub(super) struct Grid {
    /// Distance between offsets, bytes.
    align: u64,
    blocks: u64,
    pick: Pick,
    /// Ops keep their sizes where they reach into visited blocks.
    keeps_sizes: bool,
}

#[derive(Debug)]
enum Pick {
    /// Any block, repeats allowed.
    Any,
    /// Each block once.
    Mapped(BlockMap),
    /// Each block once, without memory of it; the second register covers a zone that the end of the
    /// file cuts.
    Shifted(Lfsr, Option<Lfsr>),
    /// Blocks from a skewed distribution.
    Spread(Spread),
}

impl Grid {
    /// Draws the next block; returns it with its offset from the start of the range.
    #[inline]
    pub(super) fn draw(&mut self, draw: &mut Draw) -> Option<(u64, u64)> {
        if self.blocks == 0 {
            return None;
        }
        let block = match &mut self.pick {
            Pick::Any => draw.below(self.blocks),
            Pick::Mapped(map) => map.take(draw.below(self.blocks))?,
            Pick::Shifted(lfsr, _) => lfsr.next()?,
            Pick::Spread(spread) => spread.next(),
        };
        Some((block, block * self.align))
    }

    /// Draws a block among `count` from `first` on, if blocks may repeat; returns it with its
    /// offset from the start of the range.
    pub(super) fn draw_from(
        &mut self,
        draw: &mut Draw,
        (first, count): (u64, u64),
    ) -> Option<(u64, u64)> {
        if count == 0 || first >= self.blocks {
            return None;
        }
        let block = first + draw.below(count.min(self.blocks - first));
        Some((block, block * self.align))
    }

    /// Draws a block that leaves `min` bytes within the first `room` bytes; where each comes once,
    /// all start over when the last has come. Returns it with its offset from the start of the
    /// range.
    pub(super) fn draw_within(
        &mut self,
        draw: &mut Draw,
        room: u64,
        min: u64,
    ) -> Option<(u64, u64)> {
        let fitting = (room.checked_sub(min)? / self.align + 1).min(self.blocks);
        match &mut self.pick {
            Pick::Any => return self.draw_from(draw, (0, fitting)),
            // Drawing until a block fits could take for ever: a distribution may have its mass
            // elsewhere. Its shape shrinks to the room instead.
            Pick::Spread(spread) => {
                let scaled = u128::from(spread.next()) * u128::from(fitting);
                // Cannot fail: below `fitting`.
                let block = u64::try_from(scaled / u128::from(self.blocks.max(1))).unwrap_or(0);
                return Some((block, block * self.align));
            }
            Pick::Mapped(_) | Pick::Shifted(..) => {}
        }
        let block = self.draw_once_below(draw, fitting);
        let block = block.or_else(|| {
            self.restart();
            self.draw_once_below(draw, fitting)
        })?;
        Some((block, block * self.align))
    }

    /// Draws a block below `fitting`; `None` when each has come once.
    ///
    /// Not drawn among all blocks until one fits: in a zone with few of many blocks left that could
    /// take minutes, deaf to signals.
    fn draw_once_below(&mut self, draw: &mut Draw, fitting: u64) -> Option<u64> {
        if fitting >= self.blocks {
            return self.draw(draw).map(|(block, _)| block);
        }
        match &mut self.pick {
            Pick::Mapped(map) => {
                let start = draw.below(fitting);
                let free = |from| map.next_free(from).filter(|block| *block < fitting);
                let block = free(start).or_else(|| free(0))?;
                map.set(block);
                Some(block)
            }
            Pick::Shifted(whole, short) => {
                let fits = short
                    .as_ref()
                    .is_some_and(|short| short.blocks() == fitting);
                if !fits {
                    *short = Some(whole.shortened(fitting));
                }
                short.as_mut()?.next()
            }
            // Unreachable: these may repeat.
            Pick::Any | Pick::Spread(_) => None,
        }
    }

    /// Returns the number of blocks.
    pub(super) const fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Returns the distance between blocks, bytes.
    pub(super) const fn align(&self) -> u64 {
        self.align
    }

    /// Marks the blocks after `block` that `length` bytes reach into, and returns how many bytes
    /// may be used: less than `length` where a block is taken, unless ops keep their sizes, or the
    /// blocks end.
    #[inline]
    pub(super) fn claim(&mut self, block: u64, length: u32) -> u32 {
        match &mut self.pick {
            // With a map, offsets are as far apart as the smallest op is long.
            Pick::Mapped(map) if self.keeps_sizes => {
                mark(map, (block, self.blocks), length, self.align)
            }
            Pick::Mapped(map) => claim_more(map, block, length, self.align),
            _ => length,
        }
    }

    pub(super) fn restart(&mut self) {
        match &mut self.pick {
            Pick::Any | Pick::Spread(_) => {}
            Pick::Mapped(map) => map.clear(),
            Pick::Shifted(lfsr, short) => {
                lfsr.restart();
                if let Some(short) = short {
                    short.restart();
                }
            }
        }
    }
}

/// Marks the free blocks after `block` that `length` bytes reach into.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "no more than `length`")]
fn claim_more(map: &mut BlockMap, block: u64, length: u32, align: u64) -> u32 {
    if u64::from(length) <= align {
        return length;
    }
    let wanted = u64::from(length).div_ceil(align) - 1;
    let free = map.free_run(block + 1, wanted);
    for next in block + 1..=block + free {
        map.set(next);
    }
    if free == wanted {
        length
    } else {
        ((free + 1) * align) as u32
    }
}

/// Marks the blocks after `block` that `length` bytes reach into, up to `end`; returns `length`.
fn mark(map: &mut BlockMap, (block, end): (u64, u64), length: u32, align: u64) -> u32 {
    let reach = block + u64::from(length).div_ceil(align);
    for next in block + 1..reach.min(end) {
        map.set(next);
    }
    length
}

/// Grids of all files.
///
/// If the smallest sizes of two directions differ, unused ones included, all directions of a file
/// share one map with a bit for each of the smallest blocks, and each sets the bit with the number
/// of its own block, as in fio:
///
/// ```text
/// reads, 4 KiB    0 1 2 3 4 5 6 7          own blocks of a file of 32 KiB
/// writes, 8 KiB   0 1 2 3
/// map             0 1 0 1 1 0 1 0          block 3 is taken for both
///                       └─┴ a write that draws 3 finds 5, which it does not have: its pass ends
/// ```
#[derive(Debug)]
pub(super) struct Grids {
    grids: Box<[Grid]>,
    /// Map of each file; empty if each grid has its own.
    shared: Box<[BlockMap]>,
    /// Index of a direction's grid within a file.
    group: PerDirection<u8>,
    groups: usize,
}

impl Grids {
    /// Creates the grids; returns them with the number of blocks of the largest.
    pub(super) fn new(
        config: &PatternConfig,
        checked: &Checked,
    ) -> Result<(Self, u64), PatternError> {
        let mut kinds: Vec<(u32, u64)> = Vec::new();
        let group = PerDirection::from_fn(|direction| {
            if !checked.placed[direction] {
                return 0;
            }
            let kind = (checked.sizes[direction].min, config.align[direction]);
            kinds
                .iter()
                .position(|&known| known == kind)
                .unwrap_or_else(|| {
                    kinds.push(kind);
                    kinds.len() - 1
                })
        });
        let mut shapes = Shapes::new(config.distribution, config.seed);
        let mut grids = Vec::with_capacity(config.files.len() * kinds.len());
        let mut most = 0;
        let shared = shared_maps(config, checked)?;
        let own_map = match checked.shared_unit {
            None => checked.map,
            Some(_) => MapMode::Off,
        };
        for (index, range) in config.files.iter().enumerate() {
            for &(min, align) in &kinds {
                let blocks = blocks_of(zone_of(*range, config), min, align);
                most = most.max(blocks);
                let seed = config.seed.wrapping_add(index as u64);
                let pick = if let Some(shape) = shapes.of(blocks) {
                    Pick::Spread(Spread::new(shape, seed))
                } else if config.generator == RandomGenerator::Lfsr {
                    Pick::Shifted(Lfsr::new(blocks, seed), None)
                } else {
                    map_of(own_map, blocks)?.map_or(Pick::Any, Pick::Mapped)
                };
                grids.push(Grid {
                    align,
                    blocks,
                    pick,
                    keeps_sizes: config.keeps_sizes,
                });
            }
        }
        Ok((
            Self {
                grids: grids.into(),
                shared: shared.into(),
                // Cannot fail: there are three directions.
                group: group.map(|index| u8::try_from(index).unwrap_or(0)),
                groups: kinds.len(),
            },
            most,
        ))
    }

    /// Returns the grid of a file for a direction.
    #[inline]
    pub(super) fn of(&mut self, file: usize, direction: Direction) -> &mut Grid {
        &mut self.grids[file * self.groups + usize::from(self.group[direction])]
    }

    /// Draws the next block of a direction in a file; returns it with its offset in the range.
    #[inline]
    pub(super) fn draw(
        &mut self,
        draw: &mut Draw,
        file: usize,
        direction: Direction,
    ) -> Option<(u64, u64)> {
        let grid = &mut self.grids[file * self.groups + usize::from(self.group[direction])];
        let Some(map) = self.shared.get_mut(file) else {
            return grid.draw(draw);
        };
        if grid.blocks == 0 {
            return None;
        }
        let block = map.next_free(draw.below(grid.blocks))?;
        if block >= grid.blocks {
            return None; // no search from the start: fio gives up here
        }
        map.set(block);
        Some((block, block * grid.align))
    }

    /// Performs [`Grid::claim`] in the file's map.
    #[inline]
    pub(super) fn claim(
        &mut self,
        file: usize,
        direction: Direction,
        block: u64,
        length: u32,
    ) -> u32 {
        let grid = &mut self.grids[file * self.groups + usize::from(self.group[direction])];
        match self.shared.get_mut(file) {
            Some(map) if grid.keeps_sizes => mark(map, (block, grid.blocks), length, grid.align),
            Some(map) => claim_more(map, block, length, grid.align),
            None => grid.claim(block, length),
        }
    }

    /// Returns whether all directions share the map of a file.
    pub(super) const fn share_maps(&self) -> bool {
        !self.shared.is_empty()
    }

    /// Forgets what was drawn in one file in a direction, or in all that share its map.
    pub(super) fn restart_in(&mut self, file: usize, direction: Direction) {
        match self.shared.get_mut(file) {
            Some(map) => map.clear(),
            None => self.of(file, direction).restart(),
        }
    }

    /// Forgets what was drawn in one file.
    pub(super) fn restart_of(&mut self, file: usize) {
        let first = file * self.groups;
        self.grids[first..first + self.groups]
            .iter_mut()
            .for_each(Grid::restart);
        if let Some(map) = self.shared.get_mut(file) {
            map.clear();
        }
    }

    pub(super) fn restart(&mut self) {
        self.grids.iter_mut().for_each(Grid::restart);
        self.shared.iter_mut().for_each(BlockMap::clear);
    }
}

/// Creates the map of each file if directions share it.
fn shared_maps(config: &PatternConfig, checked: &Checked) -> Result<Vec<BlockMap>, PatternError> {
    let Some(unit) = checked.shared_unit else {
        return Ok(Vec::new());
    };
    let mut maps = Vec::with_capacity(config.files.len());
    for range in &config.files {
        match map_of(checked.map, range.length.div_ceil(unit.into()))? {
            Some(map) => maps.push(map),
            // Without memory for one of them, a soft map is omitted for all files.
            None => return Ok(Vec::new()),
        }
    }
    Ok(maps)
}

/// Creates a map of `blocks` blocks, if maps are used.
pub(super) fn map_of(mode: MapMode, blocks: u64) -> Result<Option<BlockMap>, PatternError> {
    match (
        mode,
        BlockMap::new(if mode == MapMode::Off { 0 } else { blocks }),
    ) {
        (MapMode::Off, _) | (MapMode::Soft, Err(_)) => Ok(None),
        (_, Ok(map)) => Ok(Some(map)),
        (MapMode::On, Err(refused)) => Err(PatternError::NoMemory {
            bytes: refused.bytes,
        }),
    }
}

/// Returns the part of the range in which offsets are drawn: all of it, or one zone.
fn zone_of(range: FileRange, config: &PatternConfig) -> FileRange {
    let zone = config.zones.map_or(u64::MAX, |zones| zones.range);
    FileRange {
        length: range.length.min(zone),
        ..range
    }
}

/// Returns the number of multiples of `align` that leave `min` bytes.
pub(super) fn blocks_of(range: FileRange, min: u32, align: u64) -> u64 {
    range
        .length
        .checked_sub(u64::from(min))
        .map_or(0, |rest| rest / align + 1)
}

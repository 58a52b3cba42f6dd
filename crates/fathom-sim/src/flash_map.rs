//! Translation map of a flash drive: the block of each unit, and the next block to clean.
//!
//! A unit is 4 KiB, the granularity of the map. Unwritten units take no memory. A worn drive starts
//! as if overwritten at random for long: a block of relative age `x` in 0…1 is `u^x` full, with `u`
//! such that all data fit.

/// Geometry of a drive's flash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlashLayout {
    pub(crate) dies: u32,
    pub(crate) units_per_block: u32,
    /// Units visible to the host.
    pub(crate) units: u64,
    /// Blocks per die.
    pub(crate) blocks_per_die: u32,
    pub(crate) worn: bool,
}

/// Blocks and their valid units.
#[derive(Debug)]
pub(crate) struct FlashMap {
    layout: FlashLayout,
    written: Written,
    blocks: Vec<Block>,
    /// Per die: erased blocks, and the open one.
    free: Vec<Vec<u32>>,
    open: Vec<Option<u32>>,
    /// Per die: valid units.
    valid: Vec<u64>,
    /// Worn drive: first scattered unit of each block's initial contents.
    first: Vec<u64>,
    scatter: Scatter,
}

/// Block of each unit written or discarded since the start: a two-level table whose pieces are
/// allocated on first use.
#[derive(Debug)]
struct Written {
    /// First level: empty, or `PIECE` pieces.
    shelves: Vec<Vec<Option<Piece>>>,
}

/// Second level: `PIECE` units.
type Piece = Box<[u32; PIECE]>;

#[derive(Clone, Debug, Default)]
struct Block {
    valid: u32,
    /// Units written to it, valid or not; empty for a block in its initial state.
    held: Vec<u64>,
    /// The block is in its initial state.
    original: bool,
}

impl FlashMap {
    pub(crate) fn new(layout: FlashLayout) -> Self {
        let count = layout.dies * layout.blocks_per_die;
        let mut map = Self {
            layout,
            written: Written::new(layout.units),
            blocks: vec![Block::default(); count as usize],
            free: vec![Vec::new(); layout.dies as usize],
            open: vec![None; layout.dies as usize],
            valid: vec![0; layout.dies as usize],
            first: Vec::new(),
            scatter: Scatter::of(layout.units),
        };
        if layout.worn {
            map.fill();
        }
        for block in (0..count).rev() {
            let die = map.die_of(block) as usize;
            map.valid[die] += u64::from(map.blocks[block as usize].valid);
            if !map.blocks[block as usize].original {
                map.free[die].push(block);
            }
        }
        map
    }

    /// Returns the die of a block; neighbouring blocks are on different dies.
    pub(crate) const fn die_of(&self, block: u32) -> u32 {
        block % self.layout.dies
    }

    /// Returns the number of erased blocks of a die.
    pub(crate) fn free_blocks(&self, die: u32) -> usize {
        self.free[die as usize].len()
    }

    /// Returns whether a die can hold this many units more: cleaning keeps its last blocks free.
    pub(crate) fn has_room(&self, die: u32, units: u64) -> bool {
        let blocks = u64::from(self.layout.blocks_per_die.saturating_sub(FREE_BLOCKS_MIN));
        let room = blocks * u64::from(self.layout.units_per_block);
        self.valid[die as usize] + units <= room
    }

    /// Returns the block that holds a unit, if any.
    pub(crate) fn block_of(&self, unit: u64) -> Option<u32> {
        match self.written.at(unit) {
            NOWHERE => None,
            UNTOUCHED => self.original(unit),
            block => Some(block),
        }
    }

    /// Discards a unit.
    pub(crate) fn discard(&mut self, unit: u64) {
        if let Some(block) = self.block_of(unit) {
            self.forget(block);
            self.written.set(unit, NOWHERE);
        }
    }

    /// Counts a unit of a block as no longer valid.
    fn forget(&mut self, block: u32) {
        self.blocks[block as usize].valid -= 1;
        let die = self.die_of(block) as usize;
        self.valid[die] -= 1;
    }

    /// Writes a unit to the open block of a die; false if there is no space.
    pub(crate) fn write(&mut self, unit: u64, die: u32) -> bool {
        // Units past the end are not mapped.
        if unit >= self.layout.units {
            return true;
        }
        let Some(block) = self.open_block(die) else {
            return false;
        };
        if let Some(before) = self.block_of(unit) {
            self.forget(before);
        }
        self.written.set(unit, block);
        self.valid[die as usize] += 1;
        let into = &mut self.blocks[block as usize];
        into.valid += 1;
        into.held.push(unit);
        true
    }

    fn open_block(&mut self, die: u32) -> Option<u32> {
        let open = self.open[die as usize].filter(|&block| {
            self.blocks[block as usize].held.len() < self.layout.units_per_block as usize
        });
        let block = match open {
            Some(block) => block,
            None => self.free[die as usize].pop()?,
        };
        self.open[die as usize] = Some(block);
        Some(block)
    }

    /// Returns the block of a die that is cheapest to clean, with its valid units; `None` if no
    /// block would free space.
    pub(crate) fn victim(&self, die: u32) -> Option<(u32, Vec<u64>)> {
        let own = (0..self.layout.blocks_per_die).map(|number| number * self.layout.dies + die);
        let closed = own.filter(|&block| {
            let state = &self.blocks[block as usize];
            self.open[die as usize] != Some(block)
                && (state.original || !state.held.is_empty())
                && state.valid < self.layout.units_per_block
        });
        let block = closed.min_by_key(|&block| (self.blocks[block as usize].valid, block))?;
        Some((block, self.valid_in(block)))
    }

    fn valid_in(&self, block: u32) -> Vec<u64> {
        let state = &self.blocks[block as usize];
        let is_here = |unit: &u64| self.block_of(*unit) == Some(block);
        if state.original {
            let scattered = self.first[block as usize]..self.first[block as usize + 1];
            let units = scattered.map(|number| self.scatter.back(number));
            return units.filter(is_here).collect();
        }
        let mut units: Vec<u64> = state.held.iter().copied().filter(is_here).collect();
        units.sort_unstable();
        units.dedup();
        units
    }

    /// Erases a block without valid units.
    pub(crate) fn erase(&mut self, block: u32) {
        debug_assert_eq!(self.blocks[block as usize].valid, 0);
        self.blocks[block as usize] = Block::default();
        let die = self.die_of(block) as usize;
        self.free[die].push(block);
    }

    fn original(&self, unit: u64) -> Option<u32> {
        if !self.layout.worn || unit >= self.layout.units {
            return None;
        }
        let number = self.scatter.to(unit);
        let block = self.first.partition_point(|&first| first <= number) - 1;
        u32::try_from(block).ok()
    }

    /// Distributes all units over blocks as long use would.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "units of a block, and units of a drive, are far below 2^53"
    )]
    fn fill(&mut self) {
        let ages = self.layout.blocks_per_die - FREE_BLOCKS_MIN;
        let slots = u64::from(ages) * u64::from(self.layout.dies);
        let room = slots * u64::from(self.layout.units_per_block);
        let oldest = oldest_share(self.layout.units as f64 / room as f64);
        let mut left = self.layout.units;
        let mut next = 0;
        for block in 0..self.blocks.len() {
            self.first.push(next);
            let age = u32::try_from(block).unwrap_or(u32::MAX) / self.layout.dies;
            if age >= ages {
                continue;
            }
            let share = libm::pow(oldest, f64::from(age) / f64::from(ages));
            let full = f64::from(self.layout.units_per_block);
            let valid = ((share * full).round() as u64).min(left);
            left -= valid;
            next += valid;
            self.blocks[block].original = true;
            self.blocks[block].valid = valid as u32;
        }
        // Units left over by rounding go where there is space.
        self.spread(left);
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "no more than is missing in a block"
    )]
    fn spread(&mut self, mut left: u64) {
        let full = self.layout.units_per_block;
        for block in self.blocks.iter_mut().filter(|block| block.original) {
            let more = u64::from(full - block.valid).min(left);
            block.valid += more as u32;
            left -= more;
        }
        let mut next = 0;
        for (first, block) in self.first.iter_mut().zip(&self.blocks) {
            *first = next;
            next += u64::from(block.valid);
        }
        self.first.push(next);
    }
}

impl Written {
    fn new(units: u64) -> Self {
        let pieces = usize::try_from(units).unwrap_or(usize::MAX).div_ceil(PIECE);
        Self {
            shelves: vec![Vec::new(); pieces.div_ceil(PIECE)],
        }
    }

    /// Returns the block of a unit, `NOWHERE`, or `UNTOUCHED`.
    fn at(&self, unit: u64) -> u32 {
        let (piece, within) = index_of(unit);
        let shelf = self.shelves.get(piece / PIECE);
        let piece = shelf.and_then(|shelf| shelf.get(piece % PIECE)?.as_ref());
        piece.map_or(UNTOUCHED, |piece| piece[within])
    }

    fn set(&mut self, unit: u64, place: u32) {
        let (piece, within) = index_of(unit);
        let shelf = &mut self.shelves[piece / PIECE];
        if shelf.is_empty() {
            shelf.resize(PIECE, None);
        }
        let piece = shelf[piece % PIECE].get_or_insert_with(|| Box::new([UNTOUCHED; PIECE]));
        piece[within] = place;
    }
}

/// Returns the piece of a unit and its index within.
fn index_of(unit: u64) -> (usize, usize) {
    let unit = usize::try_from(unit).unwrap_or(usize::MAX);
    (unit / PIECE, unit % PIECE)
}

/// Returns how full the oldest block is if blocks are `share` full on average: the `u` with
/// `(u − 1) / ln u = share`.
fn oldest_share(share: f64) -> f64 {
    let (mut low, mut high) = (1e-9, 1.0 - 1e-9);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if (middle - 1.0) / libm::log(middle) < share {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// Fixed permutation of the units, so that neighbours are in different blocks.
#[derive(Clone, Copy, Debug)]
struct Scatter {
    units: u64,
    factor: u64,
    inverse: u64,
}

impl Scatter {
    fn of(units: u64) -> Self {
        let mut factor = 2_654_435_761 % units.max(2);
        while gcd(factor, units) != 1 {
            factor += 1;
        }
        Self {
            units,
            factor,
            inverse: inverse(factor, units),
        }
    }

    fn to(self, unit: u64) -> u64 {
        self.times(unit, self.factor)
    }

    fn back(self, number: u64) -> u64 {
        self.times(number, self.inverse)
    }

    fn times(self, left: u64, right: u64) -> u64 {
        let product = u128::from(left) * u128::from(right) % u128::from(self.units);
        u64::try_from(product).unwrap_or(u64::MAX)
    }
}

const fn gcd(mut left: u64, mut right: u64) -> u64 {
    while right > 0 {
        (left, right) = (right, left % right);
    }
    left
}

/// Returns the inverse of `factor` modulo `units`.
fn inverse(factor: u64, units: u64) -> u64 {
    let units = i128::from(units);
    let (mut old, mut new) = ((i128::from(factor), 1), (units, 0));
    while new.0 != 0 {
        let quotient = old.0 / new.0;
        (old, new) = (new, (old.0 - quotient * new.0, old.1 - quotient * new.1));
    }
    u64::try_from(old.1.rem_euclid(units)).unwrap_or(u64::MAX)
}

/// In place of a block: a discarded unit.
const NOWHERE: u32 = u32::MAX;

/// In place of a block: a unit in its initial state.
const UNTOUCHED: u32 = u32::MAX - 1;

/// Units per piece of the map (4 KiB of memory, 4 MiB of the drive), and pieces per first level.
const PIECE: usize = 1024;

/// Blocks per die that are erased at the start: one to write, one to clean into.
pub(crate) const FREE_BLOCKS_MIN: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(worn: bool) -> FlashLayout {
        FlashLayout {
            dies: 4,
            units_per_block: 64,
            units: 6400,
            blocks_per_die: 32,
            worn,
        }
    }

    /// Everything is somewhere, and blocks hold what they say.
    fn check(map: &FlashMap) {
        let of_dies = map.blocks.chunks_exact(map.layout.dies as usize);
        let mut by_die = vec![0; map.layout.dies as usize];
        for blocks in of_dies {
            for (count, block) in by_die.iter_mut().zip(blocks) {
                *count += u64::from(block.valid);
            }
        }
        assert_eq!(by_die, map.valid);
        let mut counted = vec![0; map.blocks.len()];
        for block in (0..map.layout.units).filter_map(|unit| map.block_of(unit)) {
            counted[block as usize] += 1;
        }
        let valid: Vec<u32> = map.blocks.iter().map(|block| block.valid).collect();
        assert_eq!(counted, valid);
    }

    #[test]
    fn a_worn_drive_holds_every_unit_once() {
        let map = FlashMap::new(layout(true));
        check(&map);
        assert!((0..6400).all(|unit| map.block_of(unit).is_some()));
        assert!((0..4).all(|die| map.free_blocks(die) == 2));
    }

    #[test]
    fn cleaning_loses_nothing() {
        let mut map = FlashMap::new(layout(true));
        let mut random = fathom_core::Xoshiro256::new(3);
        for _ in 0..20_000 {
            let die = u32::try_from(random.below(4)).expect("small");
            assert!(map.write(random.below(6400), die), "there is room");
            while map.free_blocks(die) < 2 {
                let (block, units) = map.victim(die).expect("something to clean");
                assert!(units.iter().all(|&unit| map.write(unit, die)));
                map.erase(block);
            }
        }
        check(&map);
        assert!((0..6400).all(|unit| map.block_of(unit).is_some()));
    }

    #[test]
    fn discarded_units_have_no_block() {
        let mut map = FlashMap::new(layout(true));
        map.discard(17);
        map.discard(17);
        assert_eq!(map.block_of(17), None);
        check(&map);
    }
}

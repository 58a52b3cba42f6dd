//! Where the data of a flash drive are: which block holds what, and which one to clean next.
//!
//! A unit is 4 KiB, the smallest thing that is mapped. What was never written takes no memory. A
//! worn drive begins as one that was overwritten at random for long: blocks are the emptier the
//! older they are, `u^x` full for age `x` in 0…1, with `u` such that all of the data fit.

/// What a drive's flash is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlashLayout {
    pub(crate) dies: u32,
    pub(crate) units_per_block: u32,
    /// Units that hosts see.
    pub(crate) units: u64,
    /// Blocks of each die.
    pub(crate) blocks_per_die: u32,
    pub(crate) worn: bool,
}

/// Blocks and what is valid in them.
#[derive(Debug)]
pub(crate) struct FlashMap {
    layout: FlashLayout,
    written: Written,
    blocks: Vec<Block>,
    /// Of each die: erased blocks, and the one that is written.
    free: Vec<Vec<u32>>,
    open: Vec<Option<u32>>,
    /// For a worn drive: the first of the scattered units that each block began with.
    first: Vec<u64>,
    scatter: Scatter,
}

/// The block of each unit that was written or let go since the beginning, in pieces, and shelves
/// of pieces, that take memory only when one of their units was.
#[derive(Debug)]
struct Written {
    /// Each empty, or of `PIECE` pieces.
    shelves: Vec<Vec<Option<Piece>>>,
}

/// Of `PIECE` units.
type Piece = Box<[u32; PIECE]>;

#[derive(Clone, Debug, Default)]
struct Block {
    valid: u32,
    /// What was written to it, valid or not; of one that is as it was at the beginning: nothing.
    held: Vec<u64>,
    /// It is as it was at the beginning.
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
            first: Vec::new(),
            scatter: Scatter::of(layout.units),
        };
        if layout.worn {
            map.fill();
        }
        for block in (0..count).rev() {
            if !map.blocks[block as usize].original {
                let die = map.die_of(block) as usize;
                map.free[die].push(block);
            }
        }
        map
    }

    /// The die of a block: neighbours are on different ones.
    pub(crate) const fn die_of(&self, block: u32) -> u32 {
        block % self.layout.dies
    }

    /// Erased blocks of a die.
    pub(crate) fn free_blocks(&self, die: u32) -> usize {
        self.free[die as usize].len()
    }

    /// The block that holds a unit; `None` if none does.
    pub(crate) fn block_of(&self, unit: u64) -> Option<u32> {
        match self.written.at(unit) {
            NOWHERE => None,
            UNTOUCHED => self.original(unit),
            block => Some(block),
        }
    }

    /// A unit is no longer needed.
    pub(crate) fn discard(&mut self, unit: u64) {
        if let Some(block) = self.block_of(unit) {
            self.blocks[block as usize].valid -= 1;
            self.written.set(unit, NOWHERE);
        }
    }

    /// A unit is written to the block of a die that is open. False if there is no room.
    pub(crate) fn write(&mut self, unit: u64, die: u32) -> bool {
        // Past the end there is nothing to keep.
        if unit >= self.layout.units {
            return true;
        }
        let Some(block) = self.open_block(die) else {
            return false;
        };
        if let Some(before) = self.block_of(unit) {
            self.blocks[before as usize].valid -= 1;
        }
        self.written.set(unit, block);
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

    /// The block of a die that is the cheapest to clean, and what is valid in it; `None` if nothing
    /// would be won.
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

    /// A block of which nothing is valid is erased.
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

    /// Puts all units into blocks, as long use would.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "units of a block, and units of a drive, are far below 2^53"
    )]
    fn fill(&mut self) {
        let ages = self.layout.blocks_per_die - KEPT_FREE;
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
        // What rounding left over goes where there is room.
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

    /// Where a unit is: a block, `NOWHERE`, or `UNTOUCHED`.
    fn at(&self, unit: u64) -> u32 {
        let (piece, within) = place_of(unit);
        let shelf = self.shelves.get(piece / PIECE);
        let piece = shelf.and_then(|shelf| shelf.get(piece % PIECE)?.as_ref());
        piece.map_or(UNTOUCHED, |piece| piece[within])
    }

    fn set(&mut self, unit: u64, place: u32) {
        let (piece, within) = place_of(unit);
        let shelf = &mut self.shelves[piece / PIECE];
        if shelf.is_empty() {
            shelf.resize(PIECE, None);
        }
        let piece = shelf[piece % PIECE].get_or_insert_with(|| Box::new([UNTOUCHED; PIECE]));
        piece[within] = place;
    }
}

/// The piece of a unit, and its place within.
fn place_of(unit: u64) -> (usize, usize) {
    let unit = usize::try_from(unit).unwrap_or(usize::MAX);
    (unit / PIECE, unit % PIECE)
}

/// How full the oldest block is, where blocks are `share` full on average: the `u` with
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

/// A fixed permutation of the units, so that neighbours are in different blocks.
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

/// The number whose product with `factor` leaves 1 when divided by `units`.
fn inverse(factor: u64, units: u64) -> u64 {
    let units = i128::from(units);
    let (mut old, mut new) = ((i128::from(factor), 1), (units, 0));
    while new.0 != 0 {
        let quotient = old.0 / new.0;
        (old, new) = (new, (old.0 - quotient * new.0, old.1 - quotient * new.1));
    }
    u64::try_from(old.1.rem_euclid(units)).unwrap_or(u64::MAX)
}

/// In place of a block, for what was let go.
const NOWHERE: u32 = u32::MAX;

/// In place of a block, for what is as it was at the beginning.
const UNTOUCHED: u32 = u32::MAX - 1;

/// Units of a piece of the map: 4 KiB of it, so 4 MiB of the drive. And pieces of a shelf.
const PIECE: usize = 1024;

/// Blocks of a die that are erased at the beginning: one to write, one to clean into.
pub(crate) const KEPT_FREE: u32 = 2;

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
    fn what_is_discarded_is_nowhere() {
        let mut map = FlashMap::new(layout(true));
        map.discard(17);
        map.discard(17);
        assert_eq!(map.block_of(17), None);
        check(&map);
    }
}

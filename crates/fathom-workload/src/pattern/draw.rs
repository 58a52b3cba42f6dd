//! Random block numbers.

use fathom_core::{Taus88x4, Taus258};

use crate::config::RandomGenerator;

use super::{Stream, seed_of};

/// The generator of block numbers that a job uses.
#[derive(Debug)]
pub(super) enum Draw {
    Narrow(Taus88x4),
    Wide(Taus258),
}

impl Draw {
    /// The generator for a job whose largest file has `blocks` blocks.
    pub(super) fn new(generator: RandomGenerator, blocks: u64, seed: u64) -> Self {
        let seed = seed_of(seed, Stream::Offset);
        let wide = match generator {
            RandomGenerator::Tausworthe { explicit } => blocks > 1 << 32 && !explicit,
            RandomGenerator::Tausworthe64 => true,
            // Not drawn from; see `lfsr`.
            RandomGenerator::Lfsr => false,
        };
        if wide {
            Self::Wide(Taus258::new(seed))
        } else {
            Self::Narrow(Taus88x4::new(seed))
        }
    }

    /// A block number below `blocks`, which is not 0.
    #[inline]
    pub(super) fn below(&mut self, blocks: u64) -> u64 {
        match self {
            Self::Narrow(random) => random.below(blocks),
            Self::Wide(random) => random.below(blocks),
        }
    }

    /// Draws a block number below `blocks` for each place.
    #[inline(always)]
    pub(super) fn each_below<T>(
        &mut self,
        blocks: u64,
        places: &mut [T],
        mut put: impl FnMut(&mut T, u64),
    ) {
        match (self, u32::try_from(blocks)) {
            (Self::Narrow(random), Ok(blocks)) => {
                let mut numbers = [0; AT_ONCE];
                for places in places.chunks_mut(AT_ONCE) {
                    let numbers = &mut numbers[..places.len()];
                    random.fill(numbers);
                    for (place, &mut number) in places.iter_mut().zip(numbers) {
                        // 32 bits times 32 bits, which a processor does for several at a time.
                        put(place, (u64::from(number) * u64::from(blocks)) >> 32);
                    }
                }
            }
            (Self::Narrow(random), Err(_)) => {
                for place in places {
                    put(place, random.below(blocks));
                }
            }
            (Self::Wide(random), _) => {
                // A copy, or each step would be written back.
                let mut own = random.clone();
                for place in places {
                    put(place, own.below(blocks));
                }
                *random = own;
            }
        }
    }
}

/// Block numbers of one file, drawn some ahead: in a loop of their own the generator's state stays
/// in registers.
#[derive(Debug)]
pub(super) struct Ahead {
    draw: Draw,
    /// ≥ 1.
    blocks: u64,
    drawn: [u64; LOOKAHEAD_OPS],
    /// Those of `drawn` that were given out.
    used: usize,
}

impl Ahead {
    pub(super) fn new(generator: RandomGenerator, blocks: u64, seed: u64) -> Self {
        let draw = Draw::new(generator, blocks, seed);
        Self {
            draw,
            blocks,
            drawn: [0; LOOKAHEAD_OPS],
            used: LOOKAHEAD_OPS,
        }
    }

    /// The next block number; `look` sees each one long before it is given out, and what it
    /// returns does not matter.
    #[inline]
    pub(super) fn next(&mut self, look: impl FnMut(u64) -> bool) -> u64 {
        if self.used >= LOOKAHEAD_OPS {
            self.refill(look);
        }
        let block = self.drawn[self.used];
        self.used += 1;
        block
    }

    #[inline(never)]
    fn refill(&mut self, mut look: impl FnMut(u64) -> bool) {
        let blocks = self.blocks;
        let mut seen = false;
        self.draw
            .each_below(blocks, &mut self.drawn, |place, block| {
                *place = block;
                seen ^= look(block);
            });
        // Else the compiler would leave the look away.
        std::hint::black_box(seen);
        self.used = 0;
    }
}

/// How many are drawn ahead: about as many cache misses as a core can have under way at once.
const LOOKAHEAD_OPS: usize = 16;

/// As many as are drawn ahead at most.
const AT_ONCE: usize = 32;

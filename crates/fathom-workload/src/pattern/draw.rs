//! Random block numbers.

use fathom_core::{Taus88x4, Taus258};

use crate::config::RandomGenerator;

use super::{RandomStream, seed_of};

/// Generator of a job's block numbers.
#[derive(Debug)]
pub(super) enum Draw {
    Narrow(Taus88x4),
    Wide(Taus258),
}

impl Draw {
    /// Creates the generator of a job whose largest file has `blocks` blocks.
    pub(super) fn new(generator: RandomGenerator, blocks: u64, seed: u64) -> Self {
        let seed = seed_of(seed, RandomStream::Offset);
        let wide = match generator {
            RandomGenerator::Tausworthe { explicit } => blocks > 1 << 32 && !explicit,
            RandomGenerator::Tausworthe64 => true,
            // Unused; see `lfsr`.
            RandomGenerator::Lfsr => false,
        };
        if wide {
            Self::Wide(Taus258::new(seed))
        } else {
            Self::Narrow(Taus88x4::new(seed))
        }
    }

    /// Draws a block number below `blocks`, which is not 0.
    #[inline]
    pub(super) fn below(&mut self, blocks: u64) -> u64 {
        match self {
            Self::Narrow(random) => random.below(blocks),
            Self::Wide(random) => random.below(blocks),
        }
    }

    /// Fills a slice with block numbers below `blocks`.
    #[inline(always)]
    pub(super) fn each_below<T>(
        &mut self,
        blocks: u64,
        places: &mut [T],
        mut put: impl FnMut(&mut T, u64),
    ) {
        match (self, u32::try_from(blocks)) {
            (Self::Narrow(random), Ok(blocks)) => {
                let mut numbers = [0; BATCH_BLOCKS];
                for places in places.chunks_mut(BATCH_BLOCKS) {
                    let numbers = &mut numbers[..places.len()];
                    random.fill(numbers);
                    for (place, &mut number) in places.iter_mut().zip(numbers) {
                        // 32 × 32 bits, which the compiler vectorises.
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
                // A local copy: otherwise each step would be written back.
                let mut own = random.clone();
                for place in places {
                    put(place, own.below(blocks));
                }
                *random = own;
            }
        }
    }
}

/// Block numbers of one file, drawn ahead: in a separate loop the generator's state stays in
/// registers.
#[derive(Debug)]
pub(super) struct Ahead {
    draw: Draw,
    /// ≥ 1.
    blocks: u64,
    drawn: [u64; LOOKAHEAD_OPS],
    /// Number of `drawn` already returned.
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

    /// Returns the next block number. `look` is called for each one long before, to prefetch; its
    /// result does not matter.
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
        // Keeps the compiler from removing the call.
        std::hint::black_box(seen);
        self.used = 0;
    }
}

/// Numbers drawn ahead: about as many as a core can have cache misses in flight.
const LOOKAHEAD_OPS: usize = 16;

/// Capacity for numbers drawn ahead.
const BATCH_BLOCKS: usize = 32;

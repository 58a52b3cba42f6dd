//! Random block numbers.

use fathom_core::{Taus88, Taus258};

use crate::config::RandomGenerator;

use super::{Stream, seed_of};

/// The generator of block numbers that a job uses.
#[derive(Debug)]
pub(super) enum Draw {
    Narrow(Taus88),
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
            Self::Narrow(Taus88::new(seed))
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
}

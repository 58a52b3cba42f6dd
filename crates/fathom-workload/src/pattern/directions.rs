//! Draws of directions.

use fathom_core::{Direction, Taus88};

use crate::config::Mix;

use super::{RandomStream, seed_of};

/// Generator of directions.
#[derive(Debug)]
pub(super) enum Directions {
    /// Always the same direction.
    Only(Direction),
    /// A read if the next number is below the share, otherwise a write.
    Mixed { random: Taus88, share: u64 },
    /// A trim, then its write.
    TrimWrite { trimmed: bool },
}

impl Directions {
    pub(super) fn new(mix: Mix, seed: u64) -> Self {
        match mix {
            Mix::Read => Self::Only(Direction::Read),
            Mix::Write => Self::Only(Direction::Write),
            Mix::Trim => Self::Only(Direction::Trim),
            Mix::ReadWrite { read } => Self::Mixed {
                random: Taus88::new(seed_of(seed, RandomStream::Direction)),
                share: share_of(u32::from(read)),
            },
            Mix::TrimWrite => Self::TrimWrite { trimmed: false },
        }
    }

    #[inline]
    pub(super) fn draw(&mut self) -> Direction {
        match self {
            Self::Only(direction) => *direction,
            Self::Mixed { random, share } => {
                if u64::from(random.next_u32()) < *share {
                    Direction::Read
                } else {
                    Direction::Write
                }
            }
            Self::TrimWrite { trimmed: false } => Direction::Trim,
            Self::TrimWrite { trimmed: true } => Direction::Write,
        }
    }

    /// Notes that a target of this direction was drawn.
    #[inline]
    pub(super) fn given(&mut self, direction: Direction) {
        if let Self::TrimWrite { trimmed } = self {
            *trimmed = direction == Direction::Trim;
        }
    }

    pub(super) fn restart(&mut self) {
        self.given(Direction::Write);
    }
}

/// Returns the number of draws out of 2³² that make up `percent`.
pub(super) fn share_of(percent: u32) -> u64 {
    (u64::from(percent) << 32) / 100
}

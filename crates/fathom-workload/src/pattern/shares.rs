//! Parts of the range with their shares of the random ops.

use fathom_core::{Direction, PerDirection, Taus88};

use crate::config::{AccessShare, PartLength};

use super::directions::share_of;
use super::{RandomStream, seed_of};

/// Generator of the part that an op goes to.
#[derive(Debug)]
pub(super) struct Shares {
    parts: PerDirection<Box<[Part]>>,
    random: Taus88,
}

/// Part of the range.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// Number of draws out of 2³² that select it or an earlier part.
    below: u64,
    from: Border,
    to: Border,
}

/// Position in the range: a percentage of it plus a number of bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Border {
    percent: u64,
    bytes: u64,
}

impl Shares {
    pub(super) fn new(shares: &PerDirection<Vec<AccessShare>>, seed: u64) -> Self {
        Self {
            parts: PerDirection::from_fn(|direction| parts(&shares[direction])),
            random: Taus88::new(seed_of(seed, RandomStream::Share)),
        }
    }

    /// Draws a part; returns its first block and its number of blocks, at least one.
    pub(super) fn part(&mut self, direction: Direction, blocks: u64, align: u64) -> (u64, u64) {
        let drawn = u64::from(self.random.next_u32());
        let parts = &self.parts[direction];
        let part = parts.iter().find(|part| drawn < part.below);
        let Some(part) = part.or(parts.last()) else {
            return (0, blocks);
        };
        let block = |border: Border| {
            let part = u128::from(blocks) * u128::from(border.percent) / 100;
            let part = u64::try_from(part).unwrap_or(blocks);
            part.saturating_add(border.bytes / align).min(blocks)
        };
        let first = block(part.from).min(blocks.saturating_sub(1));
        (first, block(part.to).saturating_sub(first).max(1))
    }
}

fn parts(shares: &[AccessShare]) -> Box<[Part]> {
    let (mut percent, mut border) = (0, Border::default());
    let part = |share: &AccessShare| {
        let from = border;
        percent += u32::from(share.percent);
        match share.part {
            PartLength::Percent(percent) => border.percent += u64::from(percent),
            PartLength::Bytes(bytes) => border.bytes = border.bytes.saturating_add(bytes),
        }
        Part {
            below: share_of(percent),
            from,
            to: border,
        }
    };
    // A part without ops only shifts the later ones: no draw selects it.
    shares.iter().map(part).collect()
}

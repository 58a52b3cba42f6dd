//! Writes that leave an SSD as a long random workload would (`sprandom`).
//!
//! In the steady state of uniform random writes, the share of outdated blocks in a piece of flash
//! grows with its age. This pattern reaches that distribution by writing the physical capacity
//! once instead of the logical one many times: it divides the writes into regions, in the order in
//! which the drive stores them, and writes as many blocks of each region again in the next one as
//! are to be outdated.
//!
//! ```text
//!  region:        0          1          2        …    last
//!  new blocks:    all        some       more          most
//!  written again:            ▲ many     ▲ fewer       ▲ few
//!  outdated:      many ──────┘ fewer ───┘      few ───┘ none
//! ```
//!
//! The new blocks of all regions together are the blocks of the range, each once. Blocks come again
//! in the order in which they were first written, so about one region later.

use std::collections::VecDeque;

use fathom_core::{Direction, FileIndex, Taus88};

use crate::config::{PatternConfig, Preconditioning};

use super::check::Checked;
use super::grid::blocks_of;
use super::lfsr::Lfsr;
use super::{OpTarget, PatternError, RandomStream, Source, seed_of};

/// Pattern of one file and one op size.
///
/// Memory: 24 bytes per region, and 8 for each block that two adjacent regions write again.
#[derive(Debug)]
pub(super) struct Precondition {
    start: u64,
    size: u32,
    new: Lfsr,
    regions: Box<[Region]>,
    /// Index of the next region.
    next: usize,
    /// Writes left in the current region.
    left: Region,
    /// Blocks to write again, in the order in which they were written.
    again: VecDeque<u64>,
    choose_again: Taus88,
    choose_outdated: Taus88,
}

impl Precondition {
    /// Creates the pattern, if the configuration has one of this kind.
    ///
    /// # Errors
    /// Not enough memory.
    pub(super) fn new(
        config: &PatternConfig,
        checked: &Checked,
    ) -> Result<Option<Self>, PatternError> {
        let Some(asked) = config.preconditioning else {
            return Ok(None);
        };
        let (range, size) = (config.files[0], checked.largest);
        let blocks = blocks_of(range, size, u64::from(size));
        let regions = plan(blocks, asked);
        let kept = regions
            .iter()
            .map(|region| region.again + region.outdated)
            .max();
        let kept = kept.unwrap_or(0);
        let mut again = VecDeque::new();
        again
            .try_reserve_exact(usize::try_from(kept).unwrap_or(usize::MAX))
            .map_err(|_| PatternError::NoMemory {
                bytes: kept.saturating_mul(8),
            })?;
        Ok(Some(Self {
            start: range.offset,
            size,
            new: Lfsr::new(blocks, config.seed),
            regions,
            next: 0,
            left: Region::default(),
            again,
            choose_again: Taus88::new(seed_of(config.seed, RandomStream::Again)),
            choose_outdated: Taus88::new(seed_of(config.seed, RandomStream::Outdated)),
        }))
    }

    pub(super) fn restart(&mut self) {
        self.new.restart();
        self.again.clear();
        self.next = 0;
        self.left = Region::default();
    }

    fn next_block(&mut self) -> Option<u64> {
        while self.left.writes == 0 {
            self.left = *self.regions.get(self.next)?;
            self.next += 1;
        }
        let left = &mut self.left;
        // Of the writes left, each is as likely to be one of those: all of them come.
        let block = if self.choose_again.below(left.writes) < left.again {
            left.again -= 1;
            self.again.pop_front()?
        } else {
            self.new.next()?
        };
        if self.choose_outdated.below(left.writes) < left.outdated {
            left.outdated -= 1;
            self.again.push_back(block);
        }
        left.writes -= 1;
        Some(block)
    }
}

impl Source for Precondition {
    fn next(&mut self, direction: Direction) -> Option<OpTarget> {
        let block = self.next_block()?;
        Some(OpTarget {
            direction,
            file: FileIndex::new(0),
            // Cannot overflow: the block lies inside the range, whose end was checked.
            offset: self.start + block * u64::from(self.size),
            length: self.size,
        })
    }
}

impl Preconditioning {
    /// Returns the number of writes in a pass over `blocks` blocks.
    #[must_use]
    pub fn writes(self, blocks: u64) -> u64 {
        plan(blocks, self).iter().map(|region| region.writes).sum()
    }

    /// Returns the number of writes between two writes of a block, about.
    #[must_use]
    pub fn distance(self, blocks: u64) -> u64 {
        plan(blocks, self)[0].writes
    }
}

/// Numbers of writes in a region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Region {
    writes: u64,
    /// Writes among them that repeat blocks of the previous region.
    again: u64,
    /// Writes among them whose blocks the next region repeats.
    outdated: u64,
}

/// Returns the regions in the order of writing: at least two, equally long but for the rounding.
fn plan(blocks: u64, asked: Preconditioning) -> Box<[Region]> {
    let share = asked.over_provisioning.clamp(0.0, 1.0);
    let extra = scaled(blocks, share);
    let count = u64::from(asked.regions).min(blocks).max(2);
    let decline = decline(1.0 + share);
    let age = |region: u64| (count - 1 - region) as f64 / count as f64;
    let weight = |region| 1.0 - libm::exp(-decline * age(region));
    let all: f64 = (0..count).map(weight).sum();
    let end = |region: u64| part(blocks + extra, region, count);
    // Two adjacent regions must have room for them.
    let most = (blocks + extra) / count;
    let (mut sum, mut planned, mut again) = (0.0, 0, 0);
    let regions = (0..count).map(|region| {
        sum += weight(region);
        let due = match all > 0.0 {
            true => scaled(extra, sum / all),
            false => 0,
        };
        let outdated = due.saturating_sub(planned).min(most);
        planned += outdated;
        Region {
            writes: end(region + 1) - end(region),
            again: std::mem::replace(&mut again, outdated),
            outdated,
        }
    });
    let mut regions: Box<[Region]> = regions.collect();
    if let Some(last) = regions.last_mut() {
        // What found no room is not written, so that no block is new twice.
        let short = extra.saturating_sub(planned);
        last.writes = last.writes.saturating_sub(short).max(last.again);
    }
    regions
}

/// Returns a share of a whole, 0–1, rounded down.
fn scaled(whole: u64, share: f64) -> u64 {
    #[allow(
        clippy::cast_possible_truncation,
        reason = "at most the whole, which fits; the rounding to 53 bits is that of the shares"
    )]
    let part = (whole as f64 * share) as u64;
    part.min(whole)
}

/// Returns `whole * number / count`, rounded down; `number` is at most `count`.
fn part(whole: u64, number: u64, count: u64) -> u64 {
    let product = u128::from(whole) * u128::from(number) / u128::from(count.max(1));
    u64::try_from(product).unwrap_or(u64::MAX)
}

/// Returns the decline of the valid share of blocks from the newest flash to the oldest, as a
/// natural logarithm, in the steady state of uniform random writes to a drive that collects its
/// oldest flash first; `physical` is its capacity per logical capacity.
///
/// A fraction `u` of what is collected is valid and is written again, so that filling the drive
/// once takes `physical · (1 − u)` host writes per block; each leaves a block valid with the
/// probability `exp(−1)` per logical capacity: `u = exp(−d)` with `d = physical · (1 − u)`.
fn decline(physical: f64) -> f64 {
    let grows = |d: f64| physical * (1.0 - libm::exp(-d)) > d;
    // Below ln(physical) the right side grows faster; the root other than 0 is above it.
    let (mut low, mut high) = (libm::log(physical), physical);
    for _ in 0..BISECTIONS {
        let middle = (low + high) / 2.0;
        if grows(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// Bits of a double's fraction: more do not change the result.
const BISECTIONS: u32 = 53;

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(regions: u32, over_provisioning: f64) -> Preconditioning {
        Preconditioning {
            regions,
            over_provisioning,
        }
    }

    #[test]
    fn the_decline_is_the_fixed_point() {
        for physical in [1.07, 1.15, 1.28, 2.0] {
            let d = decline(physical);
            assert!((physical * (1.0 - libm::exp(-d)) - d).abs() < 1e-9);
            // The valid blocks of all ages are the logical capacity.
            assert!(((1.0 - libm::exp(-d)) / d - 1.0 / physical).abs() < 1e-9);
        }
        assert!(decline(1.0) < 1e-6);
    }

    #[test]
    fn plans_write_the_physical_capacity_once() {
        for (blocks, regions, share) in [
            (1_000_000, 100, 0.15),
            (100_000, 100, 0.07),
            (4096, 2, 1.0),
            (1000, 1000, 0.28),
            (10, 100, 0.5),
            (1, 1, 0.15),
        ] {
            let regions = plan(blocks, asked(regions, share));
            let sum = |field: fn(&Region) -> u64| regions.iter().map(field).sum::<u64>();
            let extra = sum(|region| region.outdated);
            assert_eq!(sum(|region| region.again), extra);
            assert_eq!(sum(|region| region.writes), blocks + extra);
            assert!(extra <= scaled(blocks, share));
            assert!(regions.iter().all(|r| r.again.max(r.outdated) <= r.writes));
            let falls = regions
                .windows(2)
                .all(|w| w[0].outdated + 1 >= w[1].outdated);
            assert!(falls, "{regions:?}");
        }
        let large = asked(100, 0.15);
        assert_eq!(large.writes(1_000_000), 1_150_000);
        assert_eq!(large.distance(1_000_000), 11_500);
    }

    /// Returns the last region that wrote each block, and the regions' numbers of outdated writes.
    fn written(pattern: &mut Precondition, blocks: usize) -> (Vec<usize>, Vec<u64>) {
        let mut last = vec![usize::MAX; blocks];
        let mut outdated = vec![0; pattern.regions.len()];
        while let Some(block) = pattern.next_block() {
            let region = pattern.next - 1;
            let before = &mut last[usize::try_from(block).unwrap()];
            if *before != usize::MAX {
                assert_eq!(*before + 1, region, "one region later");
                outdated[*before] += 1;
            }
            *before = region;
        }
        (last, outdated)
    }

    #[test]
    fn each_pass_outdates_the_planned_share_of_each_region() {
        const BLOCKS: usize = 20_000;
        let config = PatternConfig {
            preconditioning: Some(asked(20, 0.15)),
            ..crate::fixture::pattern(crate::config::Mix::Write, true, 4096, BLOCKS as u64 * 4096)
        };
        let checked = Checked::new(&config).unwrap();
        let mut pattern = Precondition::new(&config, &checked).unwrap().unwrap();
        let capacity = pattern.again.capacity();
        for _ in 0..2 {
            let (last, outdated) = written(&mut pattern, BLOCKS);
            assert!(last.iter().all(|&region| region != usize::MAX));
            let planned: Vec<u64> = pattern.regions.iter().map(|r| r.outdated).collect();
            assert_eq!(outdated, planned);
            pattern.restart();
        }
        assert_eq!(pattern.again.capacity(), capacity, "nothing is allocated");
    }
}

//! Extent and granularity of generation maps.

use std::ops::Range;

use fathom_core::Direction;

use super::dry_run_map::DryRunMap;
use super::generation_map::GenerationMap;
use super::layout::common_divisor;
use crate::config::{PatternConfig, Sequencer, SizeChoice};
use crate::source::used_directions;

/// Part of a file that a map covers, and its granularity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapLayout {
    /// First byte.
    pub start: u64,
    /// Offset after the last byte.
    pub end: u64,
    /// Bytes per entry, ≥ 1. Ops whose ends are not multiples of it, counted from `start`, leave
    /// the entries at their ends unknown.
    pub block_bytes: u32,
}

/// Returns the map that the writes and trims of a pattern to one of its files need, if they are
/// stamped every `interval` bytes; 0 if they are not.
///
/// # Panics
/// The pattern has no such file.
#[must_use]
pub fn map_layout(pattern: &PatternConfig, file: usize, interval: u32) -> MapLayout {
    let range = pattern.files[file];
    let used = used_directions(pattern.mix);
    let mut block = u64::from(interval);
    let mut largest = 0;
    for direction in [Direction::Write, Direction::Trim] {
        if used[direction] {
            let sizes = &pattern.sizes[direction];
            block = gcd(block, common_divisor(sizes).into());
            largest = largest.max(sizes.largest());
            if pattern.random {
                block = gcd(block, pattern.align[direction]);
            }
        }
    }
    if let Sequencer::Skip(gap) = pattern.sequencer {
        block = refined(block, gap.unsigned_abs());
    }
    if let Some(zones) = &pattern.zones {
        block = refined(refined(block, zones.range), zones.skip);
    }
    let end = range.offset.saturating_add(range.length);
    MapLayout {
        start: range.offset,
        // A sequential op of fixed size may end after its range.
        end: range.file.min(end.saturating_add(largest.into())).max(end),
        block_bytes: u32::try_from(refined(block, range.length)).unwrap_or(u32::MAX),
    }
}

impl MapLayout {
    /// Returns the number of entries.
    #[must_use]
    pub const fn blocks(&self) -> u64 {
        let bytes = self.end.saturating_sub(self.start);
        bytes.div_ceil(self.block_bytes as u64)
    }

    /// Returns the memory that the map takes, in bytes.
    #[must_use]
    pub const fn memory_bytes(&self) -> u64 {
        self.blocks().saturating_mul(GenerationMap::BYTES_PER_BLOCK)
    }

    /// Returns the memory of a dry run's map, in bytes.
    #[must_use]
    pub const fn dry_run_bytes(&self) -> u64 {
        self.blocks().saturating_mul(DryRunMap::BYTES_PER_BLOCK)
    }

    /// Returns the layout that suits both jobs on a file.
    #[must_use]
    pub fn merged(&self, other: &Self) -> Self {
        let apart = self.start.abs_diff(other.start);
        let blocks = gcd(self.block_bytes.into(), other.block_bytes.into());
        let block_bytes = u32::try_from(gcd(blocks, apart)).unwrap_or(u32::MAX);
        Self {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
            block_bytes,
        }
    }

    /// Returns the indices of the entries that a range touches, of a map of `count` entries.
    #[inline]
    pub(super) fn touched(&self, count: usize, offset: u64, length: u32) -> Range<usize> {
        let block = u64::from(self.block_bytes);
        let index = |blocks: u64| usize::try_from(blocks).map_or(count, |at| at.min(count));
        let from = offset.saturating_sub(self.start);
        let to = (offset + u64::from(length)).saturating_sub(self.start);
        index(from / block)..index(to.div_ceil(block))
    }

    /// Returns whether a range begins and ends with an entry, all of which are covered.
    pub(super) fn is_whole(&self, offset: u64, length: u32) -> bool {
        let block = u64::from(self.block_bytes);
        let end = offset + u64::from(length);
        let begins = offset >= self.start && (offset - self.start).is_multiple_of(block);
        begins && end <= self.end && (end - self.start).is_multiple_of(block)
    }
}

impl SizeChoice {
    /// Returns the smallest size.
    pub(crate) fn smallest(&self) -> u32 {
        match self {
            Self::Fixed(size) => *size,
            Self::Range { min, .. } | Self::Unaligned { min, .. } => *min,
            Self::Split(sizes) => sizes.iter().map(|(size, _)| *size).min().unwrap_or(0),
        }
    }

    /// Returns the largest size.
    pub(crate) fn largest(&self) -> u32 {
        match self {
            Self::Fixed(size) => *size,
            Self::Range { max, .. } | Self::Unaligned { max, .. } => *max,
            Self::Split(sizes) => sizes.iter().map(|(size, _)| *size).max().unwrap_or(0),
        }
    }
}

/// Returns a divisor of the block that suits this distance too, unless it would be tiny: then ops
/// at such a distance leave the blocks at their ends unknown.
const fn refined(block: u64, distance: u64) -> u64 {
    match gcd(block, distance) {
        common if common < SMALLEST_REFINED => block,
        common => common,
    }
}

const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// A sector: no device writes less.
const SMALLEST_REFINED: u64 = 512;

//! Extent and granularity of generation maps.

use std::ops::Range;

use fathom_core::Direction;

use super::dry_run_map::DryRunMap;
use super::generation_map::GenerationMap;
use super::layout::common_divisor;
use crate::config::{PatternConfig, Sequencer, SizeChoice};
use crate::source::used_directions;
use crate::zones::ZoneSet;

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
    /// Bytes from the header of one verified block to the next; 0 without verification.
    pub interval: u32,
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
            for sizes in sizes_of(pattern, direction) {
                block = gcd(block, common_divisor(sizes).into());
                largest = largest.max(sizes.largest());
            }
            if pattern.random {
                block = gcd(block, pattern.align[direction]);
            }
        }
    }
    for distance in distances(pattern, range.length) {
        block = gcd(block, distance);
    }
    let end = range.offset.saturating_add(range.length);
    MapLayout {
        start: range.offset,
        // A sequential op of fixed size may end after its range.
        end: range.file.min(end.saturating_add(largest.into())).max(end),
        block_bytes: u32::try_from(block).unwrap_or(u32::MAX),
        interval,
    }
}

/// Returns the sizes of a direction's ops.
fn sizes_of(
    pattern: &PatternConfig,
    direction: Direction,
) -> impl Iterator<Item = &SizeChoice> + use<'_> {
    let sizes = &pattern.sizes;
    let (own, other) = match pattern.sizes_by_order {
        true => (&sizes.write, Some(&sizes.read)),
        false => (&sizes[direction], None),
    };
    std::iter::once(own).chain(other)
}

/// Returns the distances, beside the lengths of ops, of which those between two ops of a range of
/// `length` bytes are made up. However small they are, blocks suit them: an op that covers blocks
/// in part leaves them unknown, and would not be read back.
fn distances(pattern: &PatternConfig, length: u64) -> impl Iterator<Item = u64> + use<> {
    let gap = match pattern.sequencer {
        Sequencer::Skip(gap) => gap,
        _ => 0,
    };
    // A gap that leads before the start counts from the end.
    let from_end = (gap < 0).then_some(length);
    let zones = pattern.zones.as_ref();
    let zone = zones.and_then(|zones| zones.range.checked_add(zones.skip));
    // Beyond the range, the first zone follows.
    let zone = zone.filter(|&zone| zone < length);
    let gap = Some(gap.unsigned_abs());
    [gap, from_end, zone].into_iter().flatten()
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

    /// Returns the layout for writes that begin with the zones of a device and follow each other
    /// there; the last one in a zone ends with it.
    #[must_use]
    pub(crate) fn in_zones(self, zones: &ZoneSet) -> Self {
        let block = zones
            .distances_from(self.start)
            .into_iter()
            .fold(self.block_bytes.into(), gcd);
        Self {
            block_bytes: u32::try_from(block).unwrap_or(u32::MAX),
            ..self
        }
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
            interval: match (self.interval, other.interval) {
                (one, 0) | (0, one) => one,
                // The blocks of jobs that differ are never known.
                (one, other) => one.min(other),
            },
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

const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Mix, Zones};
    use crate::fixture;
    use crate::pattern::Pattern;

    /// Checks the size of a pattern's blocks, of a range of `length` bytes, and that each of its
    /// ops, all of them writes, begins and ends with a block.
    #[track_caller]
    fn check(random: bool, length: u64, change: impl FnOnce(&mut PatternConfig), want: u32) {
        let mut config = fixture::pattern(Mix::Write, random, 4096, length);
        change(&mut config);
        let layout = map_layout(&config, 0, 4096);
        assert_eq!(layout.block_bytes, want);
        let mut pattern = Pattern::new(config).expect("a pattern");
        let mut count = 0;
        while let Some(op) = pattern.next(Direction::Write).filter(|_| count < 1000) {
            assert!(layout.is_whole(op.offset, op.length), "{op:?}");
            count += 1;
        }
        assert!(count > 1, "{count} ops");
    }

    fn skip(gap: i64) -> impl FnOnce(&mut PatternConfig) {
        move |config| config.sequencer = Sequencer::Skip(gap)
    }

    fn zones(size: u64, range: u64, skip: u64) -> impl FnOnce(&mut PatternConfig) {
        move |config| config.zones = Some(Zones { size, range, skip })
    }

    #[test]
    fn every_op_begins_and_ends_with_a_block() {
        check(false, 1 << 20, |_| {}, 4096);
        check(false, (1 << 20) + 100, |_| {}, 4096);
        check(false, 1 << 20, skip(4096), 4096);
        check(false, 1 << 20, skip(512), 512);
        check(false, 1 << 20, skip(100), 4);
        check(false, 1 << 20, skip(1000), 8);
        check(false, (1 << 20) + 100, skip(8192), 4096);
        check(false, 1 << 20, skip(-12_288), 4096);
        check(false, (1 << 20) + 1000, skip(-12_288), 8);
        check(false, 1 << 20, zones(1 << 16, 1 << 16, 100), 4);
        check(false, 1 << 20, zones(5000, 5000, 0), 8);
        check(true, 1 << 20, zones(5000, 5000, 0), 8);
        check(true, 1 << 20, zones(8192, 5000, 3192), 4096);
        check(false, 1 << 20, zones(1 << 20, 1 << 20, 100), 4096);
    }

    #[test]
    fn writes_follow_each_other_in_zones() {
        let of = |capacity| {
            let config = fixture::pattern(Mix::Write, true, 12 << 10, 48 << 20);
            let zones = ZoneSet::emulated(48 << 20, 4 << 20, capacity);
            map_layout(&config, 0, 12 << 10)
                .in_zones(&zones)
                .block_bytes
        };
        assert_eq!(of(4 << 20), 4096);
        assert_eq!(of((3 << 20) + 1024), 1024);
    }

    #[test]
    fn sizes_by_order_are_all_those_of_writes() {
        let by_order = |config: &mut PatternConfig| {
            config.sizes_by_order = true;
            config.sizes.read = SizeChoice::Fixed(6144);
            config.percentage_random.write = 50;
        };
        check(true, 1 << 20, by_order, 2048);
    }
}

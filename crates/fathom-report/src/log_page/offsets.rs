//! Offsets of ops: where they were over time, and how far they lie apart.

use fathom_record::SeekDistances;

use super::columns::{Merge, TimeColumns};

/// Offsets of the ops of one log.
#[derive(Clone, Debug)]
pub(super) struct Offsets {
    places: TimeColumns<Places>,
    /// log₂ of the height of a row, bytes.
    level: u32,
    seeks: Seeks,
}

/// Counts of ops by rows of offsets, in a column of time.
#[derive(Clone, Debug, Default)]
struct Places {
    /// log₂ of the height of a row of `counts`, bytes.
    level: u32,
    counts: Vec<u64>,
}

/// Distances between ops that follow each other in the log.
#[derive(Clone, Debug, Default)]
pub(super) struct Seeks {
    /// End of the op before.
    end: Option<u64>,
    pub(super) ops: u64,
    /// Ops that began where the one before ended.
    pub(super) sequential: u64,
    /// Ops further on than the one before.
    pub(super) forward: u64,
    /// Ops by log₂ of their distance in KiB, rounded up.
    distances: Vec<u64>,
}

/// Ops by time and offset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OffsetMap {
    pub(super) start_ms: u64,
    pub(super) width_ms: u64,
    /// Height of a row, bytes; the first begins at offset 0.
    pub(super) height: u64,
    /// Counts of each column, from the lowest row on; the rest is 0.
    pub(super) columns: Vec<Vec<u64>>,
}

impl Offsets {
    pub(super) const fn new() -> Self {
        Self {
            places: TimeColumns::new(COLUMNS_MAX),
            level: 0,
            seeks: Seeks {
                end: None,
                ops: 0,
                sequential: 0,
                forward: 0,
                distances: Vec::new(),
            },
        }
    }

    /// Adds an op.
    #[inline]
    pub(super) fn add(&mut self, time_ms: u64, offset: u64, bytes: u64) {
        while offset >> self.level >= ROWS_MAX {
            self.level += 1;
        }
        let level = self.level;
        let places = self.places.at(time_ms);
        places.rise_to(level);
        places.count(offset >> level, 1);
        self.seeks.add(offset, bytes);
    }

    pub(super) const fn seeks(&self) -> &Seeks {
        &self.seeks
    }

    /// Returns the ops by time and offset; with those of `more`.
    pub(super) fn map<'a>(all: impl Iterator<Item = &'a Self>) -> OffsetMap {
        let mut merged = Self::new();
        for one in all {
            merged.level = merged.level.max(one.level);
            for (start, places) in one.places.iter() {
                merged.places.at(start).merge(places.clone());
            }
        }
        let columns = merged.places.iter().map(|(_, places)| {
            let mut places = places.clone();
            places.rise_to(merged.level);
            places.counts
        });
        OffsetMap {
            start_ms: merged.places.iter().next().map_or(0, |(start, _)| start),
            width_ms: merged.places.width_ms(),
            height: 1 << merged.level,
            columns: columns.collect(),
        }
    }
}

impl Places {
    #[inline]
    fn count(&mut self, row: u64, ops: u64) {
        // Below `ROWS_MAX`.
        let row = usize::try_from(row).unwrap_or(0);
        if row >= self.counts.len() {
            self.counts.resize(row + 1, 0);
        }
        self.counts[row] += ops;
    }

    /// Merges rows until they have a height.
    #[inline]
    fn rise_to(&mut self, level: u32) {
        if self.level < level {
            self.rise(level);
        }
    }

    #[cold]
    fn rise(&mut self, level: u32) {
        let by = level - self.level;
        self.level = level;
        for (row, ops) in (0_u64..).zip(std::mem::take(&mut self.counts)) {
            if ops > 0 {
                self.count(row >> by, ops);
            }
        }
    }
}

impl Merge for Places {
    fn merge(&mut self, mut other: Self) {
        let level = self.level.max(other.level);
        self.rise_to(level);
        other.rise_to(level);
        for (row, ops) in (0_u64..).zip(other.counts) {
            if ops > 0 {
                self.count(row, ops);
            }
        }
    }
}

impl Seeks {
    #[inline]
    fn add(&mut self, offset: u64, bytes: u64) {
        self.ops += 1;
        if let Some(end) = self.end {
            if offset == end {
                self.sequential += 1;
            } else {
                self.forward += u64::from(offset > end);
                let kib = offset.abs_diff(end).div_ceil(1024);
                let bucket = (u64::BITS - (kib - 1).leading_zeros()) as usize;
                if bucket >= self.distances.len() {
                    self.distances.resize(bucket + 1, 0);
                }
                self.distances[bucket] += 1;
            }
        }
        self.end = Some(offset.saturating_add(bytes));
    }

    /// Adds those of another log; no distance from one log to the other counts.
    pub(super) fn merge(&mut self, other: &Self) {
        self.ops += other.ops;
        self.sequential += other.sequential;
        self.forward += other.forward;
        if self.distances.len() < other.distances.len() {
            self.distances.resize(other.distances.len(), 0);
        }
        for (own, add) in self.distances.iter_mut().zip(&other.distances) {
            *own += add;
        }
    }

    /// Returns the number of ops away from the one before.
    pub(super) fn away(&self) -> u64 {
        self.distances.iter().sum()
    }

    /// Returns the distances in ranges of powers of two.
    pub(super) fn distances(&self) -> SeekDistances {
        let rows = self.distances.iter().enumerate();
        rows.map(|(bucket, ops)| {
            let from = if bucket == 0 { 0 } else { 1 << (bucket - 1) };
            (from, 1 << bucket, *ops)
        })
        .collect()
    }
}

/// Columns of the map: what a figure of some 600 pixels shows.
const COLUMNS_MAX: usize = 256;
/// Rows of the map.
const ROWS_MAX: u64 = 192;

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(ops: &[(u64, u64, u64)]) -> Offsets {
        let mut offsets = Offsets::new();
        for &(time, offset, bytes) in ops {
            offsets.add(time, offset, bytes);
        }
        offsets
    }

    #[test]
    fn distances_are_from_end_to_start() {
        let offsets = filled(&[
            (0, 0, 4096),
            (0, 4096, 4096),
            (0, 8193, 4096),
            (0, 0, 4096),
            (0, 4096 + 1025, 512),
        ]);
        let seeks = offsets.seeks();
        assert_eq!(
            (seeks.ops, seeks.sequential, seeks.forward, seeks.away()),
            (5, 1, 2, 3)
        );
        let rows: Vec<_> = seeks.distances().rows().collect();
        assert_eq!(
            rows,
            [(0, 1, 1), (1, 2, 1), (2, 4, 0), (4, 8, 0), (8, 16, 1)]
        );
    }

    #[test]
    fn the_farthest_distance_has_a_place() {
        let offsets = filled(&[(0, 0, 0), (0, u64::MAX, u64::MAX), (0, 0, 1)]);
        assert_eq!(offsets.seeks().away(), 2);
        let last = offsets.seeks().distances().rows().last();
        assert_eq!(last, Some((1 << 53, 1 << 54, 2)));
    }

    #[test]
    fn every_op_is_on_the_map() {
        let far = (0..1000_u64).map(|at| (at * 7, (1 << (at % 60)) - 1, 512));
        let far: Vec<_> = far.collect();
        let near: Vec<_> = (0..500).map(|at| (at, at * 4096, 4096)).collect();
        let (far, near) = (filled(&far), filled(&near));
        let map = Offsets::map([&near, &far].into_iter());
        let total: u64 = map.columns.iter().flatten().sum();
        assert_eq!(total, 1500);
        assert!(map.columns.len() <= COLUMNS_MAX);
        let highest = map.columns.iter().map(Vec::len).max();
        assert!(highest.is_some_and(|rows| rows as u64 <= ROWS_MAX));
        let near = Offsets::map([&near].into_iter());
        assert_eq!(near.height, 16 << 10, "499 × 4 KiB in at most 192 rows");
    }
}

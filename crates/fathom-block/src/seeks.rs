//! Seek statistics of a disk: requests, sequential requests, and the distances between the others.

use fathom_core::{Direction, OpKind};

/// Returns whether seeks are counted for this kind: reads and writes; trims and syncs move no arm.
#[must_use]
pub const fn moves_data(kind: OpKind) -> bool {
    matches!(kind, OpKind::Data(Direction::Read | Direction::Write))
}

/// Counts of dispatched requests and of the distances between them.
///
/// A distance is measured from the end of one request to the start of the next, in either
/// direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeekCounts {
    dispatched: u64,
    merged: u64,
    sequential: u64,
    /// End of the last request, in bytes.
    end: Option<u64>,
    distances: [u64; SEEK_BUCKETS],
}

/// Number of seeks in a range of distances: more than `from_kib`, at most `to_kib`; the first
/// bucket holds requests that followed without a seek too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeekBucket {
    /// Lower bound, KiB.
    pub from_kib: u64,
    /// Upper bound, KiB.
    pub to_kib: u64,
    /// Seeks in this range.
    pub count: u64,
}

impl SeekCounts {
    /// Creates empty statistics.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            dispatched: 0,
            merged: 0,
            sequential: 0,
            end: None,
            distances: [0; SEEK_BUCKETS],
        }
    }

    /// Counts a dispatched request; offset and length in bytes.
    #[inline]
    pub const fn dispatch(&mut self, offset: u64, length: u64) {
        self.dispatched += 1;
        if let Some(end) = self.end {
            let distance = end.abs_diff(offset);
            self.sequential += (distance == 0) as u64;
            self.distances[bucket_of(distance)] += 1;
        }
        self.end = Some(offset.saturating_add(length));
    }

    /// Counts a merged request.
    #[inline]
    pub const fn merge(&mut self) {
        self.merged += 1;
    }

    /// Resets the counts at the end of a ramp, but keeps the position of the last request.
    pub const fn restart(&mut self) {
        let end = self.end;
        *self = Self::new();
        self.end = end;
    }

    /// Returns the number of dispatched requests.
    #[must_use]
    pub const fn dispatched(&self) -> u64 {
        self.dispatched
    }

    /// Returns the number of merged requests.
    #[must_use]
    pub const fn merged(&self) -> u64 {
        self.merged
    }

    /// Returns the number of requests that began at the end of their predecessor.
    #[must_use]
    pub const fn sequential(&self) -> u64 {
        self.sequential
    }

    /// Returns their share of the requests that have a predecessor; `None` without any.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a share for people")]
    pub fn sequential_ratio(&self) -> Option<f64> {
        let followers: u64 = self.distances.iter().sum();
        (followers > 0).then(|| self.sequential as f64 / followers as f64)
    }

    /// Returns the histogram without the empty buckets at its upper end.
    pub fn buckets(&self) -> impl Iterator<Item = SeekBucket> + '_ {
        let used = self.distances.iter().rposition(|&count| count > 0);
        let used = &self.distances[..used.map_or(0, |last| last + 1)];
        used.iter().enumerate().map(|(bucket, &count)| SeekBucket {
            from_kib: if bucket == 0 { 0 } else { 1 << (bucket - 1) },
            to_kib: 1 << bucket,
            count,
        })
    }
}

impl Default for SeekCounts {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the exponent of the smallest power of two, in KiB, that is at least the distance.
const fn bucket_of(bytes: u64) -> usize {
    let kib = bytes.div_ceil(KIB);
    (u64::BITS - kib.saturating_sub(1).leading_zeros()) as usize
}

const KIB: u64 = 1024;
/// Number of buckets: one for each power of two up to 2⁵⁴ KiB, the largest distance that 64 bits of
/// bytes hold.
const SEEK_BUCKETS: usize = 55;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(distance: u64, from_kib: u64, to_kib: u64) {
        let mut seen = SeekCounts::new();
        seen.dispatch(0, 4096);
        seen.dispatch(4096_u64.saturating_add(distance), 1);
        let bucket = seen.buckets().last();
        let want = SeekBucket {
            from_kib,
            to_kib,
            count: 1,
        };
        assert_eq!(bucket, Some(want), "{distance} bytes");
    }

    #[test]
    fn distances_fall_between_powers_of_two() {
        check(0, 0, 1);
        check(1024, 0, 1);
        check(1025, 1, 2);
        check(128 * 1024, 64, 128);
        check(128 * 1024 + 1, 128, 256);
        check(u64::MAX - 4096, 1 << 53, 1 << 54);
    }

    #[test]
    fn a_request_at_the_end_of_the_last_needs_no_seek() {
        let mut seen = SeekCounts::new();
        assert_eq!(seen.sequential_ratio(), None);
        for (offset, length) in [(0, 8), (8, 8), (16, 8), (0, 8), (9, 1)] {
            seen.dispatch(offset, length);
        }
        assert_eq!((seen.dispatched(), seen.sequential()), (5, 2));
        assert_eq!(seen.sequential_ratio(), Some(0.5));
        assert_eq!(seen.buckets().map(|bucket| bucket.count).sum::<u64>(), 4);
    }

    #[test]
    fn after_a_ramp_the_first_still_has_one_before() {
        let mut seen = SeekCounts::new();
        seen.dispatch(0, 8);
        seen.merge();
        seen.restart();
        seen.dispatch(8, 8);
        let counts = (seen.dispatched(), seen.merged(), seen.sequential());
        assert_eq!(counts, (1, 0, 1));
    }
}

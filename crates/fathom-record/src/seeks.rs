//! Seek statistics of a disk.

use serde::{Deserialize, Serialize};

/// Requests dispatched to a disk, real or modelled, and the distances between them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SeekRecord {
    /// Requests dispatched to the device.
    pub dispatched: u64,
    /// Requests merged into others before dispatch.
    pub merged: u64,
    /// Requests that began where the previous one ended.
    pub sequential: u64,
    /// Share of sequential requests among those with a predecessor, 0 to 1.
    pub sequential_ratio: Option<f64>,
    /// Distances of the other requests from their predecessors.
    pub distances: SeekDistances,
}

/// Histogram of the distances from the end of a request to the start of the next, as columns of
/// equal length.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeekDistances {
    /// Lower end of each bucket, exclusive, except that 0 is in the first.
    pub from_kib: Vec<u64>,
    /// Upper end of each bucket, inclusive.
    pub to_kib: Vec<u64>,
    /// Number of distances in each bucket.
    pub count: Vec<u64>,
}

impl FromIterator<(u64, u64, u64)> for SeekDistances {
    /// Collects lower end, upper end and count of each bucket.
    fn from_iter<I: IntoIterator<Item = (u64, u64, u64)>>(buckets: I) -> Self {
        let mut distances = Self::default();
        for (from_kib, to_kib, count) in buckets {
            distances.from_kib.push(from_kib);
            distances.to_kib.push(to_kib);
            distances.count.push(count);
        }
        distances
    }
}

impl SeekDistances {
    /// Returns lower end, upper end and count of each bucket.
    pub fn rows(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        let ends = self.from_kib.iter().zip(&self.to_kib);
        ends.zip(&self.count)
            .map(|((&from, &to), &count)| (from, to, count))
    }
}

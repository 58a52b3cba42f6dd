//! What a disk saw: how many requests, and how far apart.

use serde::{Deserialize, Serialize};

/// The requests that a disk was given, a modelled one or a real one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SeekRecord {
    /// Requests that were given to the device.
    pub dispatched: u64,
    /// Requests that had become part of others before.
    pub merged: u64,
    /// Requests that began where the one before had ended.
    pub sequential: u64,
    /// Their share of those that had one before, 0 to 1; none if there were none.
    pub sequential_ratio: Option<f64>,
    /// How far apart the others were.
    pub distances: SeekDistances,
}

/// A histogram of the distances from the end of a request to the beginning of the next, as
/// columns of equal length.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeekDistances {
    /// The lower end of each bucket, itself not in it; 0 is in the first.
    pub from_kib: Vec<u64>,
    /// The upper end of each, in it.
    pub to_kib: Vec<u64>,
    /// How many distances fell into it.
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
    /// Lower end, upper end and count of each bucket.
    pub fn rows(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        let ends = self.from_kib.iter().zip(&self.to_kib);
        ends.zip(&self.count)
            .map(|((&from, &to), &count)| (from, to, count))
    }
}

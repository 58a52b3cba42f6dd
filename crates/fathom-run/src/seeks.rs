//! What a disk saw, as it stands in a record.

use fathom_block::SeekCounts;
use fathom_record::{SeekDistances, SeekRecord};

/// The counts of a modelled disk, or of a real one that was traced.
#[must_use]
pub fn seek_record(counts: &SeekCounts) -> SeekRecord {
    let mut distances = SeekDistances::default();
    for bucket in counts.buckets() {
        distances.from_kib.push(bucket.from_kib);
        distances.to_kib.push(bucket.to_kib);
        distances.count.push(bucket.count);
    }
    SeekRecord {
        dispatched: counts.dispatched(),
        merged: counts.merged(),
        sequential: counts.sequential(),
        sequential_ratio: counts.sequential_ratio(),
        distances,
    }
}

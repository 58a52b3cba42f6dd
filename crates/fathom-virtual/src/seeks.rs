//! Seeks of a modelled disk, for the record.

use fathom_block::SeekCounts;
use fathom_record::SeekRecord;

/// Converts a modelled disk's counts.
pub(crate) fn seek_record(counts: &SeekCounts) -> SeekRecord {
    SeekRecord {
        dispatched: counts.dispatched(),
        merged: counts.merged(),
        sequential: counts.sequential(),
        sequential_ratio: counts.sequential_ratio(),
        distances: counts
            .buckets()
            .map(|bucket| (bucket.from_kib, bucket.to_kib, bucket.count))
            .collect(),
    }
}

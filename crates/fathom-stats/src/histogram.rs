//! Latency histogram in fio's bucket layout, without its 17-second ceiling.

use serde::{Deserialize, Serialize};

/// Counts of nanosecond values in buckets no wider than 1/64 of their value.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Histogram {
    counts: Vec<u64>,
}

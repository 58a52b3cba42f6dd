//! Statistics over periodic samples (bandwidth, IOPS).

use serde::{Deserialize, Serialize};

/// Running statistics of a sampled value.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct SampleStats {
    count: u64,
}

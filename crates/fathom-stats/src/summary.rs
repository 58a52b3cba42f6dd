//! Count, smallest, largest, mean and standard deviation, in integers until printed.

use serde::{Deserialize, Serialize};

/// Exact running sums of nanosecond values.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Summary {
    count: u64,
}

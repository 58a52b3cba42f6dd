//! One kind of latency: its summary and, where asked for, its histogram.

use serde::{Deserialize, Serialize};

use crate::{Histogram, Summary};

/// One kind of latency.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Latency {
    /// Count, bounds, mean.
    pub summary: Summary,
    /// Distribution, where it is kept.
    pub histogram: Option<Histogram>,
}

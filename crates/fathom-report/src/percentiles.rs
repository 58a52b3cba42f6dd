//! Percentiles shown of a distribution.

use fathom_record::Display;
use fathom_stats::Histogram;

/// Returns the requested percentiles with their values.
pub(crate) fn percentiles(
    histogram: &Histogram,
    display: &Display,
) -> impl Iterator<Item = (f64, u64)> {
    let values = histogram.percentiles(&display.percentiles);
    display.percentiles.iter().copied().zip(values)
}

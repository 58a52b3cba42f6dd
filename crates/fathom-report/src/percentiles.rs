//! Percentiles shown of a distribution.

use fathom_record::Display;
use fathom_stats::Histogram;

/// Returns the requested percentiles, or fio's default ones, with their values.
pub(crate) fn percentiles(
    histogram: &Histogram,
    display: &Display,
) -> impl Iterator<Item = (f64, u64)> {
    let list = list(display);
    let values = histogram.percentiles(list);
    list.iter().copied().zip(values)
}

/// Returns the requested percentiles, or fio's default ones.
pub(crate) fn list(display: &Display) -> &[f64] {
    if display.percentiles.is_empty() {
        &DEFAULT_PERCENTILES
    } else {
        &display.percentiles
    }
}

/// Percentiles without `percentile_list`, as in fio.
const DEFAULT_PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

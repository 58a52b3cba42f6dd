//! Medians of repeats as tables show them.

use fathom_stats::MedianInterval;

/// Returns the lower end of the confidence interval of the median, the median, the upper end; zeros
/// of nothing.
pub(crate) fn median(values: &[f64]) -> [f64; 3] {
    let interval = MedianInterval::of(values);
    interval.map_or([0.0; 3], |found| [found.low, found.middle, found.high])
}

/// Returns the note on the ends of the intervals of `repeats` repeats.
pub(crate) fn note(repeats: u32) -> String {
    match repeats {
        0 | 1 => "one repeat has no interval: differences may be chance".into(),
        2..6 => "low and high: smallest and largest of the repeats".into(),
        _ => "low and high: interval that covers the true median with a chance of 95 % or more"
            .into(),
    }
}

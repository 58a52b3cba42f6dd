//! Percentile curves of pages, and the percentiles that a distribution is large enough for.

use fathom_stats::Histogram;

use crate::plot::Point;

/// Returns the points of a curve over 1/(1 − p), ten to a decade, as far as ten values lie beyond.
/// Values are divided by `divisor`.
pub(crate) fn curve(histogram: &Histogram, divisor: f64) -> Vec<Point> {
    let most = histogram.count() as f64 / 10.0;
    let steps = (0..).map(|step| 10_f64.powf(f64::from(step) / 10.0));
    steps
        .take_while(|across| *across <= most)
        .map(|across| {
            let value = histogram.percentile(100.0 * (1.0 - 1.0 / across));
            Point::new(across, (value > 0).then(|| value as f64 / divisor))
        })
        .collect()
}

/// Returns whether at least ten of `count` values lie on either side of a percentile; with fewer,
/// single outliers decide it.
pub(crate) fn has_enough_beyond(percent: f64, count: u64) -> bool {
    let beyond = percent.min(100.0 - percent);
    // The shares are decimals, which doubles only approach.
    count as f64 * beyond / 100.0 >= 10.0 - 1e-6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_values_lie_beyond_what_is_told() {
        for (percent, count, want) in [
            (99.9, 10_000, true),
            (99.9, 9_999, false),
            (50.0, 20, true),
            (1.0, 1_000, true),
            (1.0, 999, false),
        ] {
            assert_eq!(
                has_enough_beyond(percent, count),
                want,
                "{percent} of {count}"
            );
        }
    }

    #[test]
    fn curves_end_where_ten_values_are_left() {
        let mut histogram = Histogram::new();
        (1..=1000).for_each(|value| histogram.record(value * 1000));
        let points = curve(&histogram, 1e3);
        assert_eq!(points.len(), 21);
        let last = points.last().and_then(|point| point.y).unwrap_or_default();
        assert!((980.0..=1000.0).contains(&last), "{last}");
    }
}

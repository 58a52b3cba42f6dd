//! Median of a sample, with an interval.

/// Returns the lower end of the 95 % confidence interval of the median, the median, the upper end.
///
/// The ends are values of the sample (order statistics), so no distribution is assumed; below six
/// values they are minimum and maximum.
pub(crate) fn median(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    let Some(last) = values.len().checked_sub(1) else {
        return [0.0; 3];
    };
    let half = u32::try_from(values.len()).map_or(f64::MAX, f64::from) / 2.0;
    // 1.96 standard deviations, each √n ÷ 2, of the number of values below the median.
    let out = half - 0.98 * (2.0 * half).sqrt();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative, and below the number of values"
    )]
    let out = out.max(0.0) as usize;
    let middle = f64::midpoint(values[last / 2], values[values.len() / 2]);
    [values[out], middle, values[last - out]]
}

/// Note on the interval, for six values or more.
pub(crate) const NOTE: &str = "low and high: 95 % confidence interval of the median";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_ends_are_values_of_the_sample() {
        let values = |count: u32| (1..=count).rev().map(f64::from).collect();
        assert_eq!(median(values(1)), [1.0, 1.0, 1.0]);
        assert_eq!(median(values(4)), [1.0, 2.5, 4.0]);
        assert_eq!(median(values(15)), [4.0, 8.0, 12.0]);
        assert_eq!(median(values(100)), [41.0, 50.5, 60.0]);
        assert_eq!(median(Vec::new()), [0.0; 3]);
    }
}

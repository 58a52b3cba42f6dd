//! Published figures: CSV files with a header line.

/// Parses the rows; a missing figure is `None`.
pub(crate) fn rows<const N: usize>(text: &str) -> Vec<[Option<f64>; N]> {
    let lines = text.lines().skip(1);
    let row = |line: &str| {
        let mut cells = line.split(',').map(|cell| cell.trim().parse().ok());
        std::array::from_fn(|_| cells.next().flatten())
    };
    lines.map(row).collect()
}

/// Returns the error of `modelled` against `published`, in percent.
pub(crate) fn error_percent(modelled: f64, published: f64) -> f64 {
    (modelled / published - 1.0) * 100.0
}

/// Returns mean and largest absolute error; `None` without errors.
pub(crate) fn mean_and_worst(errors: &[f64]) -> Option<(f64, f64)> {
    let sizes = || errors.iter().map(|error| error.abs());
    let count = errors.iter().fold(0.0, |count, _| count + 1.0);
    (count > 0.0).then(|| (sizes().sum::<f64>() / count, sizes().fold(0.0, f64::max)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_none() {
        let want = [[Some(1.0), Some(2.5), None], [Some(3.0), None, Some(4.0)]];
        assert_eq!(rows::<3>("a,b,c\n1,2.5\n3,,4\n"), want);
    }

    #[test]
    fn errors_count_whatever_their_sign() {
        assert!((error_percent(90.0, 100.0) + 10.0).abs() < 1e-9);
        assert_eq!(mean_and_worst(&[-10.0, 20.0]), Some((15.0, 20.0)));
        assert_eq!(mean_and_worst(&[]), None);
    }
}

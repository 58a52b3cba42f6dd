//! Kolmogorov–Smirnov test of two samples.

/// Describes the distance between two samples if its probability under one distribution is at most
/// 1e−6: cases whose seeds differ draw new samples each time, some ten of them a pass, and a pass
/// must not fail by chance.
pub(crate) fn apart(mut fio: Vec<u64>, mut ours: Vec<u64>) -> Option<String> {
    if fio.is_empty() || ours.is_empty() {
        return (fio.len() != ours.len()).then(|| "nothing to compare with".to_owned());
    }
    fio.sort_unstable();
    ours.sort_unstable();
    let distance = distance(&fio, &ours);
    let [n, m] = [fio.len(), ours.len()].map(count);
    let limit = ONE_IN_A_MILLION * ((n + m) / (n * m)).sqrt();
    (distance > limit).then(|| format!("{distance:.3} apart, {limit:.3} by chance"))
}

/// Returns the largest vertical distance between the empirical distributions of two sorted samples.
fn distance(a: &[u64], b: &[u64]) -> f64 {
    let [n, m] = [a, b].map(|sample| count(sample.len()));
    let mut largest: f64 = 0.0;
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        let value = a[i].min(b[j]);
        i += a[i..].partition_point(|&one| one <= value);
        j += b[j..].partition_point(|&one| one <= value);
        largest = largest.max((count(i) / n - count(j) / m).abs());
    }
    largest
}

#[expect(
    clippy::cast_precision_loss,
    reason = "sizes of samples, far below 2⁵²"
)]
fn count(count: usize) -> f64 {
    count as f64
}

/// √(−ln(1e−6 / 2) / 2), the asymptotic quantile of the test.
const ONE_IN_A_MILLION: f64 = 2.693;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_is_that_of_the_definition() {
        assert!((distance(&[1, 2, 3, 4], &[1, 2, 3, 4]) - 0.0).abs() < 1e-12);
        assert!((distance(&[1, 2], &[3, 4]) - 1.0).abs() < 1e-12);
        assert!((distance(&[1, 1, 2, 2], &[1, 2, 2, 2]) - 0.25).abs() < 1e-12);
    }

    #[test]
    fn a_shift_of_an_eighth_is_seen_in_a_thousand() {
        let even = |from: u64| (from..from + 1000).collect::<Vec<_>>();
        assert_eq!(apart(even(0), even(0)), None);
        assert_eq!(apart(even(0), even(50)), None);
        assert!(apart(even(0), even(125)).is_some());
        assert!(apart(Vec::new(), even(0)).is_some());
    }
}

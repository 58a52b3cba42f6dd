use fathom_core::Taus258;
use proptest::prelude::*;

use super::*;

/// Returns a normal value from twelve uniform ones.
fn normal(random: &mut Taus258) -> f64 {
    (0..12).map(|_| random.unit()).sum::<f64>() - 6.0
}

/// Returns values about 100 with a deviation of 2, and from `at` on about `after`.
fn step(seed: u64, count: usize, at: usize, after: f64) -> Vec<f64> {
    let mut random = Taus258::new(seed);
    let level = |index| if index < at { 100.0 } else { after };
    (0..count)
        .map(|index| level(index) + 2.0 * normal(&mut random))
        .collect()
}

fn places(values: &[f64]) -> Vec<usize> {
    change_points(values).iter().map(|point| point.at).collect()
}

#[test]
fn flat_series_have_none() {
    let with_change = (0..200).filter(|&seed| !places(&step(seed, 100, 100, 0.0)).is_empty());
    assert!(with_change.count() <= 5);
}

#[test]
fn a_step_is_found_where_it_is() {
    let near = (0..100).filter(|&seed| {
        let places = places(&step(1000 + seed, 100, 60, 105.0));
        places.iter().any(|at| at.abs_diff(60) <= 2)
    });
    let near = near.count();
    assert!(near >= 95, "{near} of 100");
}

/// Benchmark results of TigerBeetle, from the tests of Apache Otava
/// (`tests/deterministic_tigerbeetle_test.py`), which finds changes at these places, among others.
#[test]
fn changes_of_a_published_series_are_found() {
    let text = include_str!("tigerbeetle.csv");
    let values: Vec<f64> = text
        .lines()
        .skip(1)
        .map(|line| line.parse().unwrap())
        .collect();
    let found = places(&values);
    for at in [15, 61, 71, 95, 117] {
        assert!(found.contains(&at), "{at} is not among {found:?}");
    }
}

#[test]
fn an_outlier_is_no_change() {
    let mut values = step(7, 40, 40, 0.0);
    values[20] = 1e9;
    assert_eq!(places(&values), [0; 0]);
}

#[test]
fn short_and_constant_series_have_none() {
    for values in [&[][..], &[1.0], &[1.0, 2.0, 3.0], &[5.0; 300]] {
        assert_eq!(places(values), [0; 0], "{values:?}");
    }
    // The shortest that can show one: 2 of the 252 ways to divide ten values are as extreme.
    assert_eq!(
        places(&[1.0, 1.1, 1.2, 1.3, 1.4, 2.0, 2.1, 2.2, 2.3, 2.4]),
        [5]
    );
}

#[test]
fn long_series_agree_with_their_permutations() {
    // Beyond doubt by the limit; each half is short enough to be permuted.
    let values = step(3, 2000, 1000, 101.0);
    let found = change_points(&values);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].p < BEYOND_DOUBT && found[0].at.abs_diff(1000) < 20,
        "{found:?}"
    );
}

proptest! {
    #[test]
    fn only_the_order_of_the_values_counts(
        values in proptest::collection::vec(0_u16..50, 0..80),
    ) {
        let plain: Vec<f64> = values.iter().map(|&value| f64::from(value)).collect();
        let curved: Vec<f64> = plain.iter().map(|value| libm::exp(value / 10.0)).collect();
        prop_assert_eq!(places(&plain), places(&curved));
    }
}

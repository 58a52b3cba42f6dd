//! Histogram, summary and latency against naive versions that keep every value.

use fathom_stats::{Histogram, Latency, Summary};
use proptest::prelude::*;

/// Values of every magnitude, not only huge ones.
fn value() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0..64_u32).prop_map(|(bits, shift)| bits >> shift)
}

fn values() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(value(), 1..200)
}

/// Values whose squares do not saturate and whose naive sums stay meaningful.
fn moderate_values() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec((any::<u64>(), 20..64_u32).prop_map(|(b, s)| b >> s), 1..200)
}

fn histogram_of(values: &[u64]) -> Histogram {
    let mut histogram = Histogram::new();
    histogram.record_all(values);
    histogram
}

fn latency_of(values: &[u64]) -> Latency {
    let mut latency = Latency::new(true);
    values.iter().for_each(|&value| latency.record(value));
    latency
}

proptest! {
    #[test]
    fn a_midpoint_is_near_its_values(value in value()) {
        let midpoint = Histogram::midpoint(Histogram::index_of(value));
        let error = midpoint.abs_diff(value);
        prop_assert!(u128::from(error) * 128 <= u128::from(value), "{value} shown as {midpoint}");
    }

    #[test]
    fn indices_rise_with_values(a in value(), b in value()) {
        let (low, high) = (a.min(b), a.max(b));
        prop_assert!(Histogram::index_of(low) <= Histogram::index_of(high));
        prop_assert!(Histogram::index_of(high) < Histogram::BUCKETS);
    }

    #[test]
    fn percentiles_are_those_of_the_sorted_values(
        mut values in values(),
        thousandths in 0..=100_000_u64,
    ) {
        let percentile = histogram_of(&values).percentile(thousandths as f64 / 1000.0);
        values.sort_unstable();
        let rank = (values.len() as u64 * thousandths).div_ceil(100_000).max(1);
        let want = values[usize::try_from(rank).unwrap() - 1];
        prop_assert_eq!(percentile, Histogram::midpoint(Histogram::index_of(want)));
    }

    #[test]
    fn percentiles_together_are_those_asked_for_one_by_one(
        values in prop::collection::vec(any::<u64>(), 0..300),
        percents in prop::collection::vec(-1.0..101.0_f64, 0..20),
        ascending in any::<bool>(),
    ) {
        let mut percents = percents;
        if ascending {
            percents.sort_by(f64::total_cmp);
        }
        let histogram = histogram_of(&values);
        let together: Vec<u64> = histogram.percentiles(&percents).collect();
        let one_by_one = percents.iter().map(|&percent| histogram.percentile(percent));
        prop_assert_eq!(together, one_by_one.collect::<Vec<u64>>());
    }

    #[test]
    fn short_values_are_recorded_as_any_others(values in prop::collection::vec(
        (any::<u32>(), 0..32_u32).prop_map(|(bits, shift)| bits >> shift), 0..300)) {
        let mut latency = Latency::new(true);
        latency.record_u32(&values);
        let wide: Vec<u64> = values.into_iter().map(u64::from).collect();
        prop_assert_eq!(latency, latency_of(&wide));
    }

    #[test]
    fn counts_below_a_bound_are_off_by_its_bucket_at_most(values in values(), bound in value()) {
        let histogram = histogram_of(&values);
        let cut = Histogram::index_of(bound);
        let below =
            |limit: usize| values.iter().filter(|v| Histogram::index_of(**v) < limit).count();
        let counted = usize::try_from(histogram.count_below(bound)).unwrap();
        prop_assert!((below(cut)..=below(cut + 1)).contains(&counted));
    }

    #[test]
    fn merging_is_recording_all(a in values(), b in values()) {
        let mut merged = latency_of(&a);
        merged.merge(&latency_of(&b));
        let all = latency_of(&[a.clone(), b.clone()].concat());
        prop_assert_eq!(&merged, &all);
        let mut batched = Latency::new(true);
        batched.record_all(&a);
        b.iter().for_each(|&value| batched.record_n(value, 1));
        prop_assert_eq!(&batched, &all);
    }

    #[test]
    fn a_summary_is_that_of_the_values(values in moderate_values()) {
        let mut summary = Summary::new();
        summary.record_all(&values);
        let n = values.len() as f64;
        let mean = values.iter().map(|&v| v as f64).sum::<f64>() / n;
        let squares: f64 = values.iter().map(|&v| (v as f64 - mean).powi(2)).sum();
        let stddev = if values.len() < 2 { 0.0 } else { (squares / (n - 1.0)).sqrt() };
        prop_assert_eq!(summary.count(), values.len() as u64);
        prop_assert_eq!(summary.min(), *values.iter().min().unwrap());
        prop_assert_eq!(summary.max(), *values.iter().max().unwrap());
        prop_assert!((summary.mean() - mean).abs() <= mean * 1e-12);
        prop_assert!((summary.stddev() - stddev).abs() <= stddev * 1e-9 + 1e-9);
    }

    #[test]
    fn repeating_is_recording_often(value in 0..1_u64 << 40, times in 0..100_u64) {
        let mut repeated = Latency::new(true);
        repeated.record_n(value, times);
        let often = vec![value; usize::try_from(times).unwrap()];
        prop_assert_eq!(repeated, latency_of(&often));
    }

    #[test]
    fn what_is_written_is_read_back(values in values()) {
        let latency = latency_of(&values);
        let text = serde_json::to_string(&latency).unwrap();
        prop_assert_eq!(serde_json::from_str::<Latency>(&text).unwrap(), latency);
    }
}

#[test]
fn a_bucket_that_does_not_exist_is_refused() {
    let error = serde_json::from_str::<Histogram>("[[3776,1]]").unwrap_err();
    assert!(error.to_string().contains("no bucket 3776"), "{error}");
}

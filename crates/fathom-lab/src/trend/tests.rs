use fathom_core::Taus258;

use super::*;

fn metric(name: &str) -> MetricName {
    MetricName::parse(name).unwrap()
}

/// Returns values about 100 that change to `after` at `at`.
fn values(count: usize, at: usize, after: f64) -> Vec<f64> {
    let mut random = Taus258::new(5);
    (0..count)
        .map(|index| if index < at { 100.0 } else { after } + random.unit())
        .collect()
}

#[test]
fn a_change_has_a_size_and_a_direction() {
    let trend = Trend::of(metric("read.iops"), values(60, 40, 90.0));
    let [change] = &trend.changes[..] else {
        panic!("{trend:?}");
    };
    assert_eq!(change.at, 40);
    assert!(change.is_worse);
    let ratio = change.ratio.unwrap();
    let truth = 90.5 / 100.5;
    assert!(ratio.low < truth && truth < ratio.high, "{ratio:?}");
    let levels = trend.levels();
    assert_eq!(levels.len(), 2);
    assert!((levels[0].1 - 100.5).abs() < 0.3 && (levels[1].1 - 90.5).abs() < 0.3);
    let latency = Trend::of(metric("read.clat_p99"), values(60, 40, 90.0));
    assert!(!latency.changes[0].is_worse);
}

#[track_caller]
fn check(values: Vec<f64>, tolerance: f64, want: (bool, bool)) {
    let mut check = TrendCheck::new(tolerance);
    check.add(metric("read.iops"), values);
    let newest = check.newest_runs()[0].is_some_and(|runs| runs.is_worse);
    let recent = check.recent_change(&check.trends()[0]).is_some();
    assert_eq!((newest, recent), want);
}

#[test]
fn new_changes_for_the_worse_are_told() {
    // The newest five runs: a division shows so short a part of a short series only.
    check(values(12, 7, 90.0), 0.02, (true, true));
    check(values(60, 55, 90.0), 0.02, (true, false));
    // Ten runs after it, it is a change among the newest; after eleven it was accepted.
    check(values(60, 50, 90.0), 0.02, (false, true));
    check(values(60, 49, 90.0), 0.02, (false, false));
    // For the better, too small, or too few runs.
    check(values(60, 55, 110.0), 0.02, (false, false));
    check(values(60, 55, 90.0), 0.2, (false, false));
    check(values(9, 4, 90.0), 0.02, (false, false));
    check(Vec::new(), 0.02, (false, false));
}

#[test]
fn a_change_is_found_among_many_series() {
    // 5 runs against 5, the fewest: no correction over the other series may hide them.
    for runs in [10, 12, 30] {
        let mut check = TrendCheck::new(0.02);
        for series in 0..40_u64 {
            let after = if series == 7 { 90.0 } else { 100.0 };
            let mut random = Taus258::new(series + 1);
            let value = |index| if index < runs - 5 { 100.0 } else { after } + random.unit();
            check.add(metric("read.iops"), (0..runs).map(value).collect());
        }
        let newest = check.newest_runs();
        let worse = |at: &usize| newest[*at].is_some_and(|runs| runs.is_worse);
        let worse: Vec<usize> = (0..40).filter(worse).collect();
        assert_eq!(worse, [7], "of {runs} runs");
    }
}

#[test]
fn flat_series_are_found_worse_no_more_often_than_told() {
    // Nothing is too small to count: only chance decides.
    let mut check = TrendCheck::new(0.0);
    let mut random = Taus258::new(77);
    for series in 0..3000 {
        let runs = 10 + series % 50;
        check.add(
            metric("read.iops"),
            (0..runs).map(|_| 100.0 + random.unit()).collect(),
        );
    }
    let newest = check.newest_runs();
    let alarms = check
        .trends()
        .iter()
        .zip(&newest)
        .filter(|(trend, newest)| {
            newest.is_some_and(|runs| runs.is_worse) || check.recent_change(trend).is_some()
        });
    let (alarms, told) = (alarms.count(), TrendCheck::by_chance(newest.len()));
    assert!((told - 30.0).abs() < 1e-9, "{told}");
    // Some there must be, or the test has no power.
    assert!((5..=30).contains(&alarms), "{alarms} of {told}");
}

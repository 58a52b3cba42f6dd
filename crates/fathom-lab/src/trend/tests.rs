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
fn facts_that_differ_are_listed() {
    let one = r#"{"kernel": "6.1", "program": "a", "schedulers": {"sda": "none"}}"#;
    let other = r#"{"kernel": "6.2", "program": "a", "schedulers": {"sda": "bfq"}, "x": 1}"#;
    assert_eq!(
        changed_facts(one, other),
        ["kernel 6.1 → 6.2", "schedulers.sda none → bfq", "x – → 1"]
    );
    assert!(changed_facts(one, one).is_empty());
    assert!(changed_facts("not JSON", "{}").is_empty());
}

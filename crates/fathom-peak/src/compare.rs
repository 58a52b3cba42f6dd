//! Comparison of two results: each figure's ratio with its interval, and what else differs.

use std::collections::BTreeSet;
use std::fmt::Display;

use fathom_record::{
    Machine, PeakComparison, PeakPoint, PeakPointComparison, PeakRatio, PeakRecord,
    PeakRepeatLatency, StorageRecord,
};
use fathom_stats::RatioInterval;

/// Compares `now` with `other`, which is named `against`.
///
/// With `alternating`, repeat by repeat and point by point; otherwise the repeats of either side
/// are independent, and points are matched by depth and batch.
#[must_use]
pub fn compare(
    now: &PeakRecord,
    other: &PeakRecord,
    against: String,
    alternating: bool,
) -> PeakComparison {
    let pairs = now.points.iter().enumerate().map(|(index, point)| {
        let found = if alternating {
            other.points.get(index)
        } else {
            other.point(point.depth, point.submit)
        };
        found.map_or_else(PeakPointComparison::default, |found| {
            compare_points(point, found, alternating)
        })
    });
    PeakComparison {
        against,
        alternating,
        against_timestamp_ms: other.timestamp_ms,
        points: pairs.collect(),
        changes: changes(now, other, alternating),
    }
}

fn compare_points(now: &PeakPoint, other: &PeakPoint, alternating: bool) -> PeakPointComparison {
    let rates = other.iops_of_repeats();
    let latencies = |of: fn(&PeakRepeatLatency) -> u64| {
        let [now, other] = [now, other].map(|point| {
            let kept = point.repeats.iter().filter_map(|repeat| repeat.lat);
            kept.map(|lat| float(of(&lat))).collect::<Vec<f64>>()
        });
        ratio(&now, &other, alternating)
    };
    PeakPointComparison {
        depth: other.depth,
        submit: other.submit,
        iops: ratio(&now.iops_of_repeats(), &rates, alternating),
        against_iops: rates,
        p50: latencies(|lat| lat.p50_ns),
        p99: latencies(|lat| lat.p99_ns),
        against_lat: other.lat_medians(),
    }
}

fn ratio(now: &[f64], other: &[f64], alternating: bool) -> Option<PeakRatio> {
    let ratio = if alternating {
        let pairs: Vec<(f64, f64)> = now.iter().copied().zip(other.iter().copied()).collect();
        RatioInterval::of_pairs(&pairs)
    } else {
        RatioInterval::of_series(now, other)
    };
    ratio.map(PeakRatio::from)
}

/// Lists the differences between two measurements, each as `what: before, now after`. Depths and
/// batches are among them if they keep a point from being compared.
fn changes(now: &PeakRecord, other: &PeakRecord, alternating: bool) -> Vec<String> {
    let mut list = Differences::default();
    let is_in_other = |point: &PeakPoint| other.point(point.depth, point.submit).is_some();
    if !alternating && !now.points.iter().all(is_in_other) {
        list.add("depths", depths(other), depths(now));
        list.add("batches", batches(other), batches(now));
    }
    list.add("engine", &other.engine, &now.engine);
    list.add("block size", other.block_bytes, now.block_bytes);
    list.add("threads", other.threads, now.threads);
    list.add("targets", other.targets.join(" "), now.targets.join(" "));
    list.add("settings", other.settings.join(" "), now.settings.join(" "));
    if let (Some(before), Some(after)) = (&other.machine, &now.machine) {
        list.machine(before, after);
    }
    list.lines
}

fn depths(record: &PeakRecord) -> String {
    numbers(record.points.iter().map(|point| point.depth))
}

fn batches(record: &PeakRecord) -> String {
    numbers(record.points.iter().map(|point| point.submit))
}

/// Lists numbers once each, in order.
fn numbers(numbers: impl Iterator<Item = u32>) -> String {
    let numbers: Vec<String> = BTreeSet::from_iter(numbers)
        .iter()
        .map(u32::to_string)
        .collect();
    numbers.join(" ")
}

/// Differences found so far.
#[derive(Debug, Default)]
struct Differences {
    lines: Vec<String>,
}

impl Differences {
    fn add<T: Display + PartialEq>(&mut self, what: &str, before: T, after: T) {
        if before != after {
            let [before, after] = [before, after].map(|value| match value.to_string() {
                text if text.is_empty() => "none".to_owned(),
                text => text,
            });
            self.lines.push(format!("{what}: {before}, now {after}"));
        }
    }

    fn machine(&mut self, before: &Machine, after: &Machine) {
        self.add("kernel", &before.kernel, &after.kernel);
        self.add("processor", &before.cpu, &after.cpu);
        self.add("CPUs", before.cpus_online, after.cpus_online);
        self.add("memory, bytes", before.memory_bytes, after.memory_bytes);
        self.add("governor", &before.governor, &after.governor);
        self.add("clock", &before.clock_source, &after.clock_source);
        let features = |machine: &Machine| machine.engine_features.join("; ");
        self.add("kernel features", features(before), features(after));
        for after in &after.storage {
            let same = |before: &&StorageRecord| before.path == after.path;
            if let Some(before) = before.storage.iter().find(same) {
                self.storage(before, after);
            }
        }
    }

    fn storage(&mut self, before: &StorageRecord, after: &StorageRecord) {
        let named = |what: &str| format!("{what} of {}", after.path);
        self.add(&named("device"), &before.device, &after.device);
        self.add(&named("file system"), &before.filesystem, &after.filesystem);
        self.add(&named("scheduler"), &before.scheduler, &after.scheduler);
        let requests = [before.nr_requests, after.nr_requests];
        self.add(&named("nr_requests"), requests[0], requests[1]);
        let sectors = [before.max_sectors_kib, after.max_sectors_kib];
        self.add(&named("max_sectors_kb"), sectors[0], sectors[1]);
        let logical = [before.logical_block_bytes, after.logical_block_bytes];
        self.add(&named("logical block size"), logical[0], logical[1]);
    }
}

#[expect(clippy::cast_precision_loss, reason = "latencies are far below 2⁵³ ns")]
const fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use fathom_record::PeakRepeat;

    use super::*;

    fn record(rates: &[f64], scheduler: &str) -> PeakRecord {
        let repeat = |&iops| PeakRepeat {
            iops,
            ..PeakRepeat::default()
        };
        PeakRecord {
            points: vec![PeakPoint {
                depth: 8,
                submit: 2,
                iops_mean: rates.iter().sum(),
                repeats: rates.iter().map(repeat).collect(),
                ..PeakPoint::default()
            }],
            machine: Some(Machine {
                storage: vec![StorageRecord {
                    path: "/dev/x".into(),
                    scheduler: scheduler.into(),
                    ..StorageRecord::default()
                }],
                ..Machine::default()
            }),
            ..PeakRecord::default()
        }
    }

    #[test]
    fn drift_hides_a_difference_of_series_but_not_of_pairs() {
        let now = record(&[100.0, 210.0, 330.0, 400.0, 520.0], "none");
        let other = record(&[90.0, 200.0, 300.0, 390.0, 500.0], "none");
        let [series, pairs] = [false, true].map(|alternating| {
            let found = compare(&now, &other, "x".into(), alternating);
            assert_eq!(found.changes, Vec::<String>::new());
            found.points[0].iops.unwrap()
        });
        assert!(!series.differs, "{series:?}");
        assert!(pairs.differs && pairs.low > 1.02, "{pairs:?}");
    }

    #[test]
    fn a_result_without_repeats_has_no_interval() {
        let now = record(&[100.0; 5], "none");
        let mut other = record(&[], "none");
        other.points[0].iops_mean = 80.0;
        let found = compare(&now, &other, "x".into(), false);
        assert_eq!(found.points[0].iops, None);
        assert_eq!(found.points[0].against_iops, [80.0]);
    }

    #[test]
    fn changes_of_the_machine_are_named() {
        let found = compare(
            &record(&[1.0], "none"),
            &record(&[1.0], "bfq"),
            "x".into(),
            false,
        );
        assert_eq!(found.changes, ["scheduler of /dev/x: bfq, now none"]);
    }

    #[test]
    fn points_of_other_depths_are_not_compared() {
        let mut other = record(&[1.0], "");
        other.points[0].depth = 4;
        let now = record(&[1.0], "");
        let found = compare(&now, &other, "x".into(), false);
        assert_eq!(found.points, [PeakPointComparison::default()]);
        assert_eq!(found.changes, ["depths: 4, now 8"]);
        assert_eq!(compare(&now, &other, "x".into(), true).points[0].depth, 4);
    }
}

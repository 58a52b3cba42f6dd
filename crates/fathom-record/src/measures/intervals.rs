//! Intervals of a run's metrics, from its timelines.

use fathom_stats::{Interval, WithinRun};

use super::{Measure, PERCENTILES_KEPT, groups};
use crate::{MetricName, Record};

/// Adds their intervals to the metrics of some jobs in one direction, where the windows of these
/// jobs alone are recorded and are enough for one: rates, and mean and percentiles of the latency
/// that the windows have.
pub(super) fn add(record: &Record, group: &str, direction: &str, measures: &mut [Measure]) {
    let Some((windows, latency)) = record.windows(group, direction) else {
        return;
    };
    let run = WithinRun::new(&windows);
    for measure in measures {
        let found = interval(&run, latency, &measure.metric, measure.value);
        if let Some(Interval { low, high }) = found {
            (measure.low, measure.high) = (Some(low), Some(high));
        }
    }
}

impl MetricName {
    /// Returns the interval of the metric within a run, in the unit of its row, that
    /// [`measures`](super::measures) gives it; `None` if the windows do not have it or are not
    /// enough, and of metrics that are not kept: a history has wider windows, and another interval.
    #[must_use]
    pub fn within_run(&self, record: &Record) -> Option<Interval> {
        let is_usual = |percent: f64| PERCENTILES_KEPT.contains(&percent);
        if !groups(record).contains(&self.group.as_str()) || !self.percent.is_none_or(is_usual) {
            return None;
        }
        let value = self.value(record)?;
        let (windows, latency) = record.windows(&self.group, self.direction)?;
        interval(&WithinRun::new(&windows), latency, &self.metric, value)
    }
}

fn interval(
    run: &WithinRun<'_>,
    latency: Option<&str>,
    metric: &str,
    value: f64,
) -> Option<Interval> {
    let found = match metric.split_once('_') {
        None if metric == "bw" => run.bytes_per_s(value),
        None if metric == "iops" => run.ops_per_s(value),
        Some((kind, figure)) if Some(kind) == latency => match figure.strip_prefix('p') {
            Some(percent) => run.percentile(percent.parse().ok()?),
            None if figure == "mean" => run.mean_latency(value),
            None => return None,
        },
        _ => return None,
    };
    found.ok()
}

#[cfg(test)]
mod tests {
    use fathom_stats::{Latency, Window, Windows};

    use super::*;
    use crate::{JobRecord, TimelineRecord, measures};

    /// Returns a record of 1,000 ops in `windows` windows of 100 ms.
    fn record(windows: u64) -> Record {
        let mut clat = Latency::new(true);
        clat.record_n(100, 500);
        clat.record_n(120, 500);
        let mut job = JobRecord {
            name: "a".into(),
            runtime_ms: windows * 100,
            ..JobRecord::default()
        };
        let direction = &mut job.directions.read;
        (direction.ios, direction.bytes) = (1000, 512_000);
        direction.runtime_ms = windows * 100;
        (direction.clat, direction.lat) = (Some(clat.clone()), Some(clat));
        let each = 500 / windows;
        let window = Window {
            ios: 2 * each,
            bytes: 1024 * each,
            min_ns: 100,
            max_ns: 120,
            bins: vec![(100, each), (120, each)],
        };
        Record {
            jobs: vec![job],
            timelines: vec![TimelineRecord {
                group_id: Some(0),
                direction: "read".into(),
                latency: Some("clat".into()),
                start_ns: 0,
                windows: Windows {
                    width_ns: 100_000_000,
                    end_ns: windows * 100_000_000,
                    windows: vec![window; usize::try_from(windows).unwrap_or(0)],
                },
            }],
            ..Record::default()
        }
    }

    #[track_caller]
    fn check(record: &Record, metric: &str, has_interval: bool) {
        let all = measures(record);
        let found = all.iter().find(|measure| measure.metric == metric);
        let Some(measure) = found else {
            panic!("{metric} is not kept");
        };
        let ends = measure.low.zip(measure.high);
        assert_eq!(ends.is_some(), has_interval, "{measure:?}");
        if let Some((low, high)) = ends {
            assert!((low..=high).contains(&measure.value), "{measure:?}");
        }
        // The same of the metric alone, also of all directions of a run with one.
        for direction in ["read", "all"] {
            let name = MetricName::parse(&format!("{direction}.{metric}")).unwrap();
            let alone = name.within_run(record).map(|one| (one.low, one.high));
            assert_eq!(alone, ends, "{name}");
        }
    }

    #[test]
    fn figures_of_the_windows_have_intervals() {
        let record = record(50);
        for metric in ["bw", "iops", "clat_mean", "clat_p50", "clat_p99"] {
            check(&record, metric, true);
        }
        for metric in ["lat_mean", "lat_p50", "clat_max"] {
            check(&record, metric, false);
        }
    }

    #[test]
    fn a_short_run_and_an_old_record_have_none() {
        check(&record(10), "bw", false);
        let unusual = MetricName::parse("read.clat_p98").unwrap();
        assert_eq!(unusual.within_run(&record(50)), None);
        check(&record(10), "clat_p50", false);
        let old = Record {
            timelines: Vec::new(),
            ..record(50)
        };
        check(&old, "iops", false);
    }
}

//! Terse report: one line of semicolon-separated fields per job.
//!
//! Scripts count the fields, so their number is fixed: a percentile that was not requested is
//! `0%=0`, a latency that was not recorded is zeros. Later layouts append fields:
//!
//! | layout | fields |
//! |---|---|
//! | 2 | no name of the program, no devices; the description on a line of its own |
//! | 3 | no trims |
//! | 4 | everything |
//! | 5 | each direction ends with its samples of IOPS |

use fathom_core::Direction;
use fathom_record::{DirectionRecord, JobRecord, Record};
use fathom_stats::{Latency, SampleStats};

use crate::disks;
use crate::distribution::{LatencyShares, level_shares};
use crate::document::{error_of, shown_errors};
use crate::group::{ReportedJob, reported_jobs};
use crate::number::percent;
use crate::percentiles::percentiles;
use crate::rate::{GroupRate, GroupRates, bytes_per_s, of_direction, ops_per_s};
use crate::unified;
use crate::{FIO_VERSION, show_disks};

/// Renders the record in layout 2, 3, 4 or 5; any other number stands for the default, 3.
pub(crate) fn terse(record: &Record, layout: u32) -> String {
    let layout = if (2..=5).contains(&layout) { layout } else { 3 };
    let entries = reported_jobs(record);
    let groups = GroupRates::of_groups(&entries);
    let line = |entry: &ReportedJob<'_>| {
        let mut line = Line::default();
        let rates = &groups[&entry.job.group_id];
        job(&mut line, record, rates, entry, layout);
        line.0
    };
    entries.iter().map(line).collect()
}

/// Writes the line of one job, or two in layout 2.
fn job(
    line: &mut Line,
    record: &Record,
    rates: &GroupRates<'_>,
    entry: &ReportedJob<'_>,
    layout: u32,
) {
    let job: &JobRecord = &entry.job;
    line.add(layout);
    if layout > 2 {
        line.add(FIO_VERSION);
    }
    line.add(job.name.as_str());
    line.add(job.group_id);
    line.add(error_of(job));
    for (kind, _) in unified::shown(job) {
        if kind != Direction::Trim || layout != 3 {
            direction(
                line,
                job,
                of_direction(job, kind),
                &rates.each[kind],
                layout,
            );
        }
    }
    if let Some(mixed) = &entry.mixed {
        direction(line, job, mixed, &rates.mixed, layout);
    }
    let cpu_share = |time_us: u64| percent(time_us as f64, job.cpu.wall_us as f64);
    line.add(format!("{:.6}%", cpu_share(job.cpu.user_us)));
    line.add(format!("{:.6}%", cpu_share(job.cpu.system_us)));
    line.add(job.cpu.context_switches);
    line.add(job.cpu.major_faults);
    line.add(job.cpu.minor_faults);
    for share in level_shares(job) {
        line.add(format!("{share:.1}%"));
    }
    latency_shares(line, job);
    if layout > 2 && show_disks(record) {
        let fields = |disk| disks::fields(disk, &record.disks);
        (record.disks.iter().flat_map(fields)).for_each(|field| line.add(field));
    }
    if let Some(errors) = shown_errors(job) {
        line.add(errors.total);
        line.add(errors.first);
    }
    if layout == 2 {
        line.0.push('\n');
    }
    if let Some(description) = &job.description {
        line.0.push(';');
        line.0.push_str(description);
    }
    if layout > 2 || job.description.is_some() {
        line.0.push('\n');
    }
}

/// Writes the fields of one direction: 41, or 47 from layout 5.
fn direction(
    line: &mut Line,
    job: &JobRecord,
    direction: &DirectionRecord,
    group: &GroupRate,
    layout: u32,
) {
    line.add(direction.bytes >> 10);
    line.add(bytes_per_s(direction) >> 10);
    line.add(ops_per_s(direction));
    line.add(direction.runtime_ms);
    let slat = direction.slat.as_ref().filter(|_| job.asynchronous);
    latency(line, slat);
    latency(line, direction.clat.as_ref());
    percentile_fields(line, job, direction);
    latency(line, direction.lat.as_ref());
    let bandwidth = &direction.bandwidth;
    line.add(bandwidth.min());
    line.add(bandwidth.max());
    line.add(format!("{:.6}%", group.share(bandwidth.mean())));
    mean_and_deviation(line, bandwidth);
    if layout > 4 {
        line.add(bandwidth.count());
        line.add(direction.iops.min());
        line.add(direction.iops.max());
        mean_and_deviation(line, &direction.iops);
        line.add(direction.iops.count());
    }
}

/// Writes minimum, maximum, mean and standard deviation, µs.
fn latency(line: &mut Line, latency: Option<&Latency>) {
    let nothing = Latency::default();
    let summary = &latency.unwrap_or(&nothing).summary;
    line.add(summary.min() / 1000);
    line.add(summary.max() / 1000);
    line.add(format!("{:.6}", summary.mean() / 1000.0));
    line.add(format!("{:.6}", summary.stddev() / 1000.0));
}

/// Writes percentiles of lat if requested, otherwise of clat, µs; always twenty fields.
fn percentile_fields(line: &mut Line, job: &JobRecord, direction: &DirectionRecord) {
    let display = &job.display;
    let (latency, shown) = match display.lat_percentiles {
        true => (&direction.lat, true),
        false => (&direction.clat, display.clat_percentiles),
    };
    let nothing = fathom_stats::Histogram::new();
    let histogram = latency
        .as_ref()
        .and_then(|latency| latency.histogram.as_ref());
    let values: Vec<(f64, u64)> = match shown {
        true => percentiles(histogram.unwrap_or(&nothing), display).collect(),
        false => Vec::new(),
    };
    for (percent, ns) in values.iter().take(PERCENTILE_FIELDS) {
        line.add(format!("{percent:.6}%={}", ns / 1000));
    }
    for _ in values.len()..PERCENTILE_FIELDS {
        line.add("0%=0");
    }
}

fn mean_and_deviation(line: &mut Line, samples: &SampleStats) {
    line.add(format!("{:.6}", samples.mean()));
    line.add(format!("{:.6}", samples.stddev()));
}

/// Writes shares of ops by latency: in µs, the first including all shorter ops, and in ms.
fn latency_shares(line: &mut Line, job: &JobRecord) {
    let mut shares = LatencyShares::of(job);
    shares.us[0] += shares.ns.iter().sum::<f64>();
    for share in shares.us.iter().chain(&shares.ms) {
        line.add(format!("{share:.2}%"));
    }
}

/// Line of semicolon-separated fields.
#[derive(Default)]
struct Line(String);

impl Line {
    fn add(&mut self, field: impl ToString) {
        if !self.0.is_empty() {
            self.0.push(';');
        }
        self.0.push_str(&field.to_string());
    }
}

/// Number of percentile fields, as many as `percentile_list` accepts.
const PERCENTILE_FIELDS: usize = 20;

#[cfg(test)]
mod tests {
    use fathom_record::DiskRecord;

    use super::*;

    fn record(disks: usize, description: Option<&str>) -> Record {
        let mut job = JobRecord {
            name: "t".to_owned(),
            description: description.map(str::to_owned),
            ..JobRecord::default()
        };
        let mut clat = Latency::new(true);
        clat.record_all(&[900, 4_700]);
        job.directions.read = DirectionRecord {
            bytes: 8192,
            ios: 2,
            runtime_ms: 1,
            clat: Some(clat),
            ..DirectionRecord::default()
        };
        Record {
            jobs: vec![job],
            disks: vec![DiskRecord::default(); disks],
            ..Record::default()
        }
    }

    #[track_caller]
    fn check_fields(layout: u32, disks: usize, description: Option<&str>, want: usize) {
        let text = terse(&record(disks, description), layout);
        assert_eq!(text.trim_end().split(';').count(), want, "{text}");
    }

    #[test]
    fn every_layout_has_fios_number_of_fields() {
        // Measured with fio 3.33 and 3.42.
        check_fields(2, 0, None, 161);
        check_fields(2, 1, None, 161);
        check_fields(3, 0, None, 121);
        check_fields(3, 1, Some("words"), 131);
        check_fields(4, 1, Some("words"), 172);
        check_fields(5, 1, Some("words"), 190);
        check_fields(9, 0, None, 121);
    }

    #[test]
    fn only_layout_2_has_a_second_line() {
        for (layout, lines) in [(2, 2), (3, 1), (4, 1), (5, 1)] {
            let text = terse(&record(0, Some("words")), layout);
            assert_eq!(text.lines().count(), lines, "{text}");
            assert!(text.ends_with(";words\n"), "{text}");
        }
        assert_eq!(terse(&record(0, None), 2).lines().count(), 1);
    }

    #[test]
    fn fields_are_at_their_documented_numbers() {
        let text = terse(&record(0, None), 3);
        let fields: Vec<&str> = text.trim_end().split(';').collect();
        // Numbers from 1, as in fio's documentation.
        let at = |number: usize| fields[number - 1];
        assert_eq!([at(1), at(3), at(4), at(5)], ["3", "t", "0", "0"]);
        assert_eq!([at(6), at(7), at(8), at(9)], ["8", "8000", "2000", "1"]);
        assert_eq!([at(14), at(15), at(16)], ["0", "4", "2.800000"]);
        assert_eq!(
            [at(18), at(34), at(35)],
            ["1.000000%=0", "99.990000%=4", "0%=0"]
        );
        assert_eq!([at(100), at(102), at(121)], ["50.00%", "50.00%", "0.00%"]);
    }
}

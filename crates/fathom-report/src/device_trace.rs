//! Stages of ops (`fathom run --trace`), as text and as JSON.

use std::fmt::Write as _;

use fathom_record::{DeviceTraceRecord, Display, PeakLatency, TracedJob};

use crate::characters::printable;
use crate::document::latency;
use crate::json::{Object, Value};
use crate::peak::aligned;

/// Formats a table of stages per job, within 80 columns.
pub(crate) fn text(record: &DeviceTraceRecord) -> String {
    let mut text = String::from("\nStages of ops, from the kernel's block events:\n");
    for job in &record.jobs {
        text.push_str(&of_job(job));
    }
    text
}

fn of_job(job: &TracedJob) -> String {
    let devices = job.devices.join(", ");
    let mut text = format!(
        "{} on {devices}: {} of {} ops joined",
        printable(&job.name),
        job.joined,
        job.ops
    );
    let counts = [
        (job.absent, "not sent to the device"),
        (job.unclear, "unclear"),
        (job.split, "split"),
        (job.merged, "merged"),
    ];
    for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
        // Writing to a string cannot fail.
        let _written = write!(text, "; {count} {what}");
    }
    text.push('\n');
    if job.joined == 0 {
        return text;
    }
    let mut heads = vec!["µs".to_owned(), "ops".to_owned(), "mean".to_owned()];
    heads.extend(PERCENTS.map(|percent| format!("p{percent}")));
    heads.push("max".to_owned());
    let mut rows = vec![heads];
    for (name, times) in stages(job) {
        rows.push(row(&format!("  {}", name.replace('_', "-")), times));
    }
    text.push_str(&aligned(&rows));
    text
}

fn row(name: &str, times: &PeakLatency) -> Vec<String> {
    let all = &times.all.summary;
    let mut row = vec![name.to_owned(), all.count().to_string()];
    if all.count() == 0 {
        row.extend(std::iter::repeat_n("-".to_owned(), PERCENTS.len() + 2));
        return row;
    }
    row.push(micros(all.mean()));
    row.extend(PERCENTS.map(|percent| micros(times.at(percent).unwrap_or(0) as f64)));
    row.push(micros(all.max() as f64));
    row
}

/// Formats a time in microseconds, without a fraction from 100 ms on: eight digits fit the table.
fn micros(ns: f64) -> String {
    let decimals = usize::from(ns < 1e8);
    format!("{:.decimals$}", ns / 1e3)
}

/// Returns the stages with their keys.
fn stages(job: &TracedJob) -> [(&'static str, &PeakLatency); 5] {
    [
        ("before", &job.before),
        ("device", &job.device),
        ("after", &job.after),
        ("wake_up", &job.wake_up),
        ("total", &job.total),
    ]
}

/// Returns the stages for JSON.
pub(crate) fn json(record: &DeviceTraceRecord) -> Object {
    let mut out = Object::new();
    out.set("lost_events", record.lost_events);
    out.set("dropped", record.dropped);
    let jobs: Vec<Object> = record.jobs.iter().map(job_json).collect();
    out.set("jobs", jobs);
    out
}

fn job_json(job: &TracedJob) -> Object {
    let mut out = Object::new();
    out.set("name", job.name.as_str());
    out.set("number", job.number);
    let devices = job.devices.iter().map(|name| name.as_str().into());
    out.set("devices", Value::Array(devices.collect()));
    for (key, count) in [
        ("ops", job.ops),
        ("joined", job.joined),
        ("split", job.split),
        ("merged", job.merged),
        ("absent", job.absent),
        ("unclear", job.unclear),
    ] {
        out.set(key, count);
    }
    for (key, times) in stages(job) {
        let stage = latency(Some(&times.all), &Display::default(), true, false);
        out.set(format!("{key}_ns"), stage);
    }
    out
}

/// Percentiles that fit into a line; JSON has more.
const PERCENTS: [f64; 4] = [50.0, 90.0, 99.0, 99.9];

#[cfg(test)]
mod tests {
    use fathom_stats::Latency;

    use super::*;

    fn times(ns: &[u64]) -> PeakLatency {
        let mut all = Latency::new(true);
        all.record_all(ns);
        PeakLatency::new(all)
    }

    fn record() -> DeviceTraceRecord {
        let job = TracedJob {
            name: "job".into(),
            number: 1,
            devices: vec!["vda".into()],
            ops: 1_000_000,
            joined: 999_000,
            split: 12,
            absent: 1000,
            before: times(&[3_000_000]),
            device: times(&[80_000_000_000]),
            after: times(&[9_000_000]),
            total: times(&[80_012_000_000]),
            ..TracedJob::default()
        };
        DeviceTraceRecord {
            jobs: vec![job],
            ..DeviceTraceRecord::default()
        }
    }

    #[test]
    fn the_table_fits_a_terminal_and_names_each_stage() {
        let text = text(&record());
        assert!(text.contains("job on vda: 999000 of 1000000 ops joined; 1000 not sent to"));
        assert!(text.contains("; 12 split\n"), "{text}");
        for stage in ["before", "device", "after", "wake-up", "total"] {
            assert!(text.contains(&format!("  {stage} ")), "{text}");
        }
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{text}");
    }

    #[test]
    fn a_job_without_joined_ops_has_no_table() {
        let mut record = record();
        record.jobs[0].joined = 0;
        assert_eq!(text(&record).lines().count(), 3);
    }
}

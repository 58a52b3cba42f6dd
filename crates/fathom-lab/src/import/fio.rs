//! fio's reports as JSON and JSON+, read as records.
//!
//! The keys are those of fio's documentation ("JSON output", "JSON+ output"). JSON+ has the
//! histograms as counts of values in the same buckets as ours, so that any percentile can be
//! computed and jobs can be merged. JSON has only percentiles: they are taken of single jobs.

use fathom_record::{
    CpuRecord, DirectionRecord, JobRecord, Measure, PerDirectionRecord, PriorityRecord,
    RECORD_VERSION, Record, SyncRecord,
};
use fathom_stats::{BEYOND_MIN, Histogram, Latency, Summary};
use serde_json::{Value, json};

use super::waves::set_waves;
use super::{ImportedRun, fio_2};
use crate::finished::FinishedRun;

/// Returns whether a document is a report of fio, or of Fathom in fio's layout.
pub(super) fn is_report(value: &Value) -> bool {
    value.get("fio version").is_some() && value["jobs"].is_array()
}

/// Reads a report.
pub(super) fn imported(report: &Value) -> ImportedRun {
    let (record, of_waves) = record(report);
    let program = report["fio version"].as_str().unwrap_or("fio");
    let mut run = FinishedRun::of_record(&record, program, None);
    let starts = record.jobs.iter().map(|job| job.start_ms);
    let begun_ms = starts.filter(|&start| start > 0).min();
    let ended_ms = Some(record.timestamp_ms).filter(|&ended| ended > 0);
    run.wall_ms = match (begun_ms, ended_ms) {
        (Some(begun), Some(ended)) => ended.saturating_sub(begun),
        _ => record.ran_ms(),
    };
    // fio's report does not say on which machine it ran.
    run.machine = json!({}).to_string();
    let mut notes = fio_2::notes(report);
    notes.extend(of_waves.map(str::to_owned));
    if !has_histograms(&record) {
        run.record = None;
        run.measures
            .extend(reported_percentiles(report, &run.measures));
        notes.push("no histograms: only the percentiles of the report, and of single jobs".into());
    }
    ImportedRun {
        uuid: None,
        begun_ms: begun_ms.or_else(|| Some(ended_ms?.saturating_sub(run.wall_ms))),
        repeat: None,
        run,
        notes,
    }
}

pub(super) fn has_histograms(record: &Record) -> bool {
    let directions = record.jobs.iter().flat_map(|job| job.directions.each());
    let latencies = directions.flat_map(|one| [&one.slat, &one.clat, &one.lat]);
    latencies
        .flatten()
        .any(|latency| latency.histogram.is_some())
}

/// Returns a report as a record, with a note if the waves of its jobs are concluded.
pub(super) fn record(report: &Value) -> (Record, Option<&'static str>) {
    let mut jobs: Vec<JobRecord> = jobs(report).map(job).collect();
    let of_waves = set_waves(&mut jobs, report);
    let record = Record {
        version: RECORD_VERSION,
        timestamp_ms: written_ms(report),
        time: report["time"]
            .as_str()
            .unwrap_or_default()
            .trim_end()
            .to_owned(),
        global_options: options(&report["global options"]),
        jobs,
        ..Record::default()
    };
    (record, of_waves)
}

/// Returns the time at which a report was written.
pub(super) fn written_ms(report: &Value) -> u64 {
    match number(&report["timestamp_ms"]) {
        0 => number(&report["timestamp"]).saturating_mul(1000),
        precise => precise,
    }
}

pub(super) fn jobs(report: &Value) -> impl Iterator<Item = &Value> {
    let jobs = report["jobs"].as_array().into_iter().flatten();
    jobs.take(JOBS_MAX)
}

fn job(job: &Value) -> JobRecord {
    let runtime_ms = number(&job["job_runtime"]);
    let share = |key: &str| job[key].as_f64().unwrap_or(0.0) / 100.0;
    JobRecord {
        name: job["jobname"].as_str().unwrap_or_default().to_owned(),
        group_id: u32::try_from(number(&job["groupid"])).unwrap_or(u32::MAX),
        options: options(&job["job options"]),
        error: u32::try_from(number(&job["error"])).unwrap_or(u32::MAX),
        start_ms: number(&job["job_start"]),
        directions: PerDirectionRecord {
            read: direction(&job["read"]),
            write: direction(&job["write"]),
            trim: direction(&job["trim"]),
        },
        sync: SyncRecord {
            ios: number(&job["sync"]["total_ios"]),
            lat: latency(&job["sync"]["lat_ns"]).unwrap_or_default(),
        },
        runtime_ms,
        cpu: CpuRecord {
            user_us: part(runtime_ms.saturating_mul(1000), share("usr_cpu")),
            system_us: part(runtime_ms.saturating_mul(1000), share("sys_cpu")),
            ..CpuRecord::default()
        },
        ..JobRecord::default()
    }
}

fn direction(direction: &Value) -> DirectionRecord {
    let kib = || number(&direction["io_kbytes"]).saturating_mul(1024);
    DirectionRecord {
        bytes: match number(&direction["io_bytes"]) {
            0 => kib(),
            exact => exact,
        },
        ios: number(&direction["total_ios"]),
        short_ios: number(&direction["short_ios"]),
        dropped_ios: number(&direction["drop_ios"]),
        runtime_ms: number(&direction["runtime"]),
        slat: latency(&direction["slat_ns"]),
        clat: latency(&direction["clat_ns"]),
        lat: latency(&direction["lat_ns"]),
        priorities: priorities(&direction["prios"]),
        ..DirectionRecord::default()
    }
}

/// Reads the clat of each I/O priority; priorities whose lat was reported instead are left out.
fn priorities(prios: &Value) -> Vec<PriorityRecord> {
    let prios = prios.as_array().into_iter().flatten().take(PRIORITIES_MAX);
    let priority = |prio: &Value| {
        let part = |key: &str, bits: u32| u16::try_from(number(&prio[key]) & ((1 << bits) - 1));
        let class = part("prioclass", 3).unwrap_or(0);
        let hint = part("priohint", 10).unwrap_or(0);
        let level = part("prio", 3).unwrap_or(0);
        Some(PriorityRecord {
            priority: class << 13 | hint << 3 | level,
            latency: latency(&prio["clat_ns"])?,
        })
    };
    prios.filter_map(priority).collect()
}

/// Reads a latency; `None` if it has no values.
fn latency(latency: &Value) -> Option<Latency> {
    let histogram = histogram(&latency["bins"]);
    let own_count = number(&latency["N"]);
    let count = match own_count {
        0 => histogram.as_ref().map_or(0, Histogram::count),
        count => count,
    };
    let float = |key: &str| latency[key].as_f64().unwrap_or(0.0);
    let bounds = [number(&latency["min"]), number(&latency["max"])];
    let summary = Summary::from_moments(count, bounds, float("mean"), float("stddev"));
    (count > 0).then_some(Latency { summary, histogram })
}

/// Reads the bins of JSON+: values in ns, and their numbers.
fn histogram(bins: &Value) -> Option<Histogram> {
    let bins = bins.as_object().filter(|bins| !bins.is_empty())?;
    let mut histogram = Histogram::new();
    for (value, count) in bins {
        histogram.record_n(value.parse().ok()?, number(count));
    }
    Some(histogram)
}

/// Takes percentiles from a report in which a direction is of one job alone.
fn reported_percentiles(report: &Value, known: &[Measure]) -> Vec<Measure> {
    let mut found = Vec::new();
    for direction in ["read", "write", "trim"] {
        let mut active = jobs(report).filter(|job| number(&job[direction]["total_ios"]) > 0);
        let (Some(job), None) = (active.next(), active.next()) else {
            continue;
        };
        for kind in ["slat", "clat", "lat"] {
            let latency = &job[direction][format!("{kind}_ns")];
            let percentiles = latency["percentile"].as_object().into_iter().flatten();
            found.extend(percentiles.filter_map(|(percent, value)| {
                let percent: f64 = percent.parse().ok()?;
                let has_enough = has_enough(percent, number(&latency["N"]));
                has_enough.then_some(Measure {
                    group: String::new(),
                    direction,
                    metric: format!("{kind}_p{percent}"),
                    value: value.as_f64()?,
                    low: None,
                    high: None,
                })
            }));
        }
    }
    let is_new = |one: &Measure| {
        !known
            .iter()
            .any(|known| known.direction == one.direction && known.metric == one.metric)
    };
    found.retain(is_new);
    found
}

/// Returns whether enough ops lie beyond a percentile.
#[expect(clippy::cast_precision_loss, reason = "a rough number of ops")]
pub(super) fn has_enough(percent: f64, count: u64) -> bool {
    percent.min(100.0 - percent) / 100.0 * count as f64 + 1e-6 >= BEYOND_MIN
}

/// Reads options: an object of texts.
fn options(options: &Value) -> Vec<(String, String)> {
    let options = options.as_object().into_iter().flatten();
    let text = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    options
        .map(|(key, value)| (key.clone(), text(value)))
        .collect()
}

/// Reads a count; some versions of fio write them as floats.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates; a negative count is 0"
)]
pub(super) fn number(value: &Value) -> u64 {
    let float = || value.as_f64().map_or(0, |value| value as u64);
    value.as_u64().unwrap_or_else(float).min(COUNT_MAX)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a rounded time"
)]
fn part(whole: u64, share: f64) -> u64 {
    (whole as f64 * share.max(0.0)) as u64
}

/// Largest count, size or time that is read: sums of all jobs stay below 2⁶⁴.
const COUNT_MAX: u64 = 1 << 48;

/// Most I/O priorities of a direction: the kernel has four classes of eight levels.
const PRIORITIES_MAX: usize = 64;

/// Most jobs of a report; fio permits 4096.
pub(super) const JOBS_MAX: usize = 1 << 14;

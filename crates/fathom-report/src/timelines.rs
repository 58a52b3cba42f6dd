//! Course of a run: the windows of each reporting group and direction, and the intervals of its
//! figures that follow from them.

use fathom_record::{JobRecord, Record, TimelineRecord};
use fathom_stats::{Histogram, Interval, NoInterval, Summary, Window, WithinRun};

use crate::json::{Object, Value};

/// Returns the timelines of a record; with `plus`, including the bins of each window.
pub(crate) fn objects(record: &Record, plus: bool) -> Vec<Object> {
    let timelines = record.timelines.iter();
    let object = |timeline| object(record, timeline, plus);
    timelines.map(object).collect()
}

fn object(record: &Record, timeline: &TimelineRecord, plus: bool) -> Object {
    let windows = &timeline.windows;
    let mut out = Object::new();
    if let Some(group) = timeline.group_id {
        out.set("groupid", group);
    }
    out.set("direction", timeline.direction.as_str());
    if let Some(latency) = &timeline.latency {
        out.set("latency", latency.as_str());
    }
    out.set("start_ns", timeline.start_ns);
    out.set("end_ns", timeline.start_ns.saturating_add(windows.end_ns));
    out.set("window_ns", windows.width_ns);
    out.set("intervals", intervals(record, timeline));
    let has_bins = plus && timeline.latency.is_some();
    let columns = &COLUMNS[..if has_bins { 6 } else { 5 }];
    out.set("columns", Value::row(columns.iter().copied()));
    let starts = (0_u64..).map(|number| number.saturating_mul(windows.width_ns));
    let rows = starts.zip(&windows.windows);
    let rows = rows.map(|(start_ns, window)| row(start_ns, window, has_bins));
    out.set("windows", Value::Array(rows.collect()));
    out
}

fn row(start_ns: u64, window: &Window, has_bins: bool) -> Value {
    let figures = [
        start_ns,
        window.ios,
        window.bytes,
        window.min_ns,
        window.max_ns,
    ];
    let figures = figures.map(Value::from).into_iter();
    let bins = window.bins.iter();
    let bins = bins.filter(|(index, _)| *index < Histogram::BUCKETS);
    let bins = bins.map(|&(index, count)| Value::row([Histogram::midpoint(index), count]));
    let bins = has_bins.then(|| Value::row(bins));
    Value::row(figures.chain(bins))
}

/// Returns the intervals that the windows are enough for, or how long the run should have been.
fn intervals(record: &Record, timeline: &TimelineRecord) -> Object {
    let windows = &timeline.windows;
    let run = WithinRun::new(windows);
    let mut out = Object::new();
    if let Some(effective) = run.effective_windows() {
        out.set("effective_windows", effective);
    }
    let total = windows.total();
    let per_s = |amount: u64| amount as f64 * 1e9 / windows.end_ns.max(1) as f64;
    let iops = run.ops_per_s(per_s(total.ios));
    if let Err(NoInterval::RunTooShort { needed_ns, .. }) = iops {
        out.set("needed_s", needed_ns.div_ceil(1_000_000_000));
    }
    set(&mut out, "iops", iops);
    set(&mut out, "bw_bytes", run.bytes_per_s(per_s(total.bytes)));
    let Some(kind) = timeline.latency.as_deref() else {
        return out;
    };
    if let Some(mean) = mean_ns(record, timeline, kind) {
        set(&mut out, "mean_ns", run.mean_latency(mean));
    }
    let mut percentiles = Object::new();
    for percent in PERCENTS {
        let key = format!("{percent:.6}");
        set(&mut percentiles, &key, run.percentile(percent));
    }
    if !percentiles.is_empty() {
        out.set("percentile", percentiles);
    }
    out
}

fn set(out: &mut Object, key: &str, interval: Result<Interval, NoInterval>) {
    if let Ok(Interval { low, high }) = interval {
        out.set(key, Value::row([low, high]));
    }
}

/// Returns the mean latency of the ops in a timeline.
fn mean_ns(record: &Record, timeline: &TimelineRecord, kind: &str) -> Option<f64> {
    let is_member = |job: &&JobRecord| {
        let group = timeline.group_id;
        !job.display.hidden && group.is_none_or(|group| job.group_id == group)
    };
    let mut all = Summary::new();
    for job in record.jobs.iter().filter(is_member) {
        let direction = match timeline.direction.as_str() {
            "read" => &job.directions.read,
            "write" => &job.directions.write,
            _ => &job.directions.trim,
        };
        let latency = match kind {
            "resp" => &direction.resp,
            "clat" => &direction.clat,
            _ => &direction.lat,
        };
        all.merge(&latency.as_ref()?.summary);
    }
    (all.count() > 0).then(|| all.mean())
}

/// Columns of a window; the bins only in JSON+.
const COLUMNS: [&str; 6] = ["start_ns", "ios", "bytes", "min_ns", "max_ns", "bins"];

/// Percentiles with intervals, where enough ops are beyond them.
const PERCENTS: [f64; 6] = [50.0, 90.0, 95.0, 99.0, 99.9, 99.99];

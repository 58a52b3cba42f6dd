//! Reports of fio 2, brought into the layout of fio 3.
//!
//! | | fio 2 | fio 3 |
//! |---|---|---|
//! | latencies | `slat`, `clat`, `lat` in µs, without their number | `clat_ns` in ns, with `N` |
//! | `io_bytes` | in KiB | in bytes; `io_kbytes` beside it |
//! | `total_ios` | from fio 2.2 on | always |
//!
//! The histograms that late versions of fio 2 print as JSON+ have numbers of buckets in place of
//! values, and are left out.

use serde_json::{Map, Value, json};

use super::fio::{JOBS_MAX, number};

/// Brings the directions of fio 2 in a report into the layout of fio 3. Other reports stay as they
/// are.
pub(super) fn convert(report: &mut Value) {
    let jobs = report.get_mut("jobs").and_then(Value::as_array_mut);
    for job in jobs.into_iter().flatten().take(JOBS_MAX) {
        for direction in DIRECTIONS {
            let direction = job.get_mut(direction).and_then(Value::as_object_mut);
            if let Some(direction) = direction.filter(|one| has(one, "") && !has(one, "_ns")) {
                convert_direction(direction);
            }
        }
    }
}

/// Returns what the layout leaves out of a report that was converted, a sentence each.
pub(super) fn notes(report: &Value) -> Vec<String> {
    let jobs = || report["jobs"].as_array().into_iter().flatten();
    let directions = || jobs().flat_map(|job| DIRECTIONS.map(|one| &job[one]));
    let objects = || directions().filter_map(Value::as_object);
    let mut notes = Vec::new();
    if objects().any(|direction| has(direction, "")) {
        notes.push("of fio 2: its latencies are rounded to µs".to_owned());
    }
    if objects().any(|direction| direction.contains_key(ESTIMATED)) {
        notes.push("no number of ops: it is computed from the IOPS, which are rounded".into());
    }
    notes
}

fn has(direction: &Map<String, Value>, unit: &str) -> bool {
    let mut names = LATENCIES.iter().map(|kind| format!("{kind}{unit}"));
    names.any(|name| direction.get(&name).is_some_and(Value::is_object))
}

fn convert_direction(direction: &mut Map<String, Value>) {
    let count = |key: &str| direction.get(key).map_or(0, number);
    if !direction.contains_key("io_kbytes") {
        let kib = count("bw").saturating_mul(count("runtime")) / 1000;
        let size = count("io_bytes");
        // Between KiB and bytes, at the middle of 1 and 1024: the rate is always in KiB/s.
        let is_in_bytes = kib > 0 && size > kib.saturating_mul(32);
        let bytes = if is_in_bytes { size } else { size << 10 };
        direction.insert("io_bytes".into(), bytes.into());
    }
    if !direction.contains_key("total_ios") {
        let iops = direction.get("iops").and_then(Value::as_f64);
        let runtime_ms = direction.get("runtime").and_then(Value::as_f64);
        let ios = iops.unwrap_or(0.0) * runtime_ms.unwrap_or(0.0) / 1e3;
        let ios = number(&json!(ios.round()));
        direction.insert("total_ios".into(), ios.into());
        if ios > 0 {
            direction.insert(ESTIMATED.into(), true.into());
        }
    }
    let ios = direction.get("total_ios").map_or(0, number);
    for kind in LATENCIES {
        if let Some(latency) = direction.get(kind).and_then(Value::as_object) {
            let in_ns = in_ns(latency, ios);
            direction.insert(format!("{kind}_ns"), in_ns);
        }
    }
}

fn in_ns(latency: &Map<String, Value>, ios: u64) -> Value {
    let ns = |value: &Value| value.as_f64().unwrap_or(0.0) * 1e3;
    let float = |key: &str| latency.get(key).map_or(0.0, ns);
    // A latency that was not measured is all zeros.
    let is_measured = float("max") > 0.0 || float("mean") > 0.0;
    let percentiles = latency.get("percentile").and_then(Value::as_object);
    let percentiles = percentiles.into_iter().flatten();
    let percentiles = percentiles.map(|(percent, value)| (percent.clone(), json!(ns(value))));
    json!({
        "min": float("min"),
        "max": float("max"),
        "mean": float("mean"),
        "stddev": float("stddev"),
        "N": if is_measured { ios } else { 0 },
        "percentile": percentiles.collect::<Map<String, Value>>(),
    })
}

const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];
const LATENCIES: [&str; 3] = ["slat", "clat", "lat"];

/// Mark of a direction whose number of ops is not the report's; no key of fio has a colon.
const ESTIMATED: &str = "fathom:total_ios_estimated";

//! Course of a run under `"fathom"`: windows, their bins in JSON+ alone, and intervals where a run
//! is long enough.

use fathom_record::{JobRecord, Record, TimelineRecord};
use fathom_stats::{Window, Windows};
use serde_json::{Value, json};

/// Returns the timeline in a report of `windows` windows of 20 ops.
fn timeline(windows: u64, latency: Option<&str>, plus: bool) -> Value {
    let window = |number: u64| Window {
        ios: 20,
        bytes: 20 * 512,
        min_ns: 70,
        max_ns: 74,
        bins: vec![(70, 10 + number % 3), (74, 10 - number % 3)],
    };
    let record = Record {
        jobs: vec![JobRecord::default()],
        timelines: vec![TimelineRecord {
            group_id: Some(0),
            direction: "read".into(),
            latency: latency.map(str::to_owned),
            start_ns: 7,
            windows: Windows {
                width_ns: 100_000_000,
                end_ns: windows * 100_000_000,
                windows: (0..windows).map(window).collect(),
            },
        }],
        ..Record::default()
    };
    let document: Value = serde_json::from_str(&crate::json(&record, plus)).expect("JSON");
    document["fathom"]["timelines"][0].clone()
}

#[test]
fn windows_are_rows() {
    let found = timeline(2, Some("clat"), false);
    assert_eq!(found["groupid"], 0);
    assert_eq!(
        (&found["start_ns"], &found["end_ns"]),
        (&json!(7), &json!(200_000_007))
    );
    assert_eq!(
        found["columns"],
        json!(["start_ns", "ios", "bytes", "min_ns", "max_ns"])
    );
    let want = json!([[0, 20, 10240, 70, 74], [100_000_000, 20, 10240, 70, 74]]);
    assert_eq!(found["windows"], want);
}

#[test]
fn bins_are_in_json_plus() {
    let found = timeline(2, Some("clat"), true);
    assert_eq!(found["columns"][5], "bins");
    assert_eq!(found["windows"][1][5], json!([[70, 11], [74, 9]]));
    let none = timeline(2, None, true);
    assert_eq!(none["columns"].as_array().map(Vec::len), Some(5));
}

#[test]
fn a_long_run_has_intervals() {
    let found = &timeline(100, Some("clat"), false)["intervals"];
    assert_eq!(found["iops"], json!([200.0, 200.0]));
    assert_eq!(found["bw_bytes"], json!([102_400.0, 102_400.0]));
    let ends = found["percentile"]["50.000000"]
        .as_array()
        .expect("an interval");
    let (low, high) = (ends[0].as_f64().expect("ns"), ends[1].as_f64().expect("ns"));
    assert!(
        (70.0..=71.0).contains(&low) && (low..=74.0).contains(&high),
        "{low} {high}"
    );
    // Two ops are beyond it.
    assert!(found["percentile"]["99.900000"].is_null());
    assert!(found["needed_s"].is_null());
}

#[test]
fn a_short_run_tells_the_length_that_is_needed() {
    let found = &timeline(10, Some("clat"), false)["intervals"];
    assert!(found["iops"].is_null() && found["percentile"].is_null());
    assert!(found["needed_s"].as_u64() >= Some(3), "{found}");
}

#[test]
fn a_record_without_windows_has_no_timeline() {
    let document: Value =
        serde_json::from_str(&crate::json(&Record::default(), true)).expect("JSON");
    assert!(document["fathom"]["timelines"].is_null());
}

//! Tools that read fio's terse report, each reduced to the field numbers that it uses. The expected
//! fields come from the JSON report of the same record.

use crate::captured::Captured;
use fathom_record::{DiskRecord, Record};
use serde_json::Value;

/// Returns a record with reads, writes and a disk.
fn record() -> Record {
    let captured = Captured::read(include_str!("../data/fio-3.33-null-randrw.txt"));
    let mut record = captured.record;
    record.disks = vec![DiskRecord {
        name: "vda".to_owned(),
        ..DiskRecord::default()
    }];
    record
}

/// Returns the fields of the first job's line, counted from 0.
fn fields(layout: u32) -> Vec<String> {
    let text = crate::terse(&record(), layout);
    assert_eq!(text.lines().count(), record().jobs.len(), "one line only");
    let line = text.lines().next().unwrap_or_default();
    line.split(';').map(str::to_owned).collect()
}

fn job() -> Value {
    let document: Value = serde_json::from_str(&crate::json(&record(), false)).unwrap();
    document["jobs"][0].clone()
}

/// Checks that the fields from `first` equal these places of the JSON report.
#[track_caller]
fn check(layout: u32, first: usize, places: &[(usize, &str)]) {
    let (fields, job) = (fields(layout), job());
    for (number, place) in places {
        let field = fields[number - first].trim_end_matches('%');
        let (place, divisor) = match place.strip_suffix(" ns") {
            Some(place) => (place, 1000.0),
            None => (*place, 1.0),
        };
        let held: f64 = field.parse().unwrap();
        let value = job.pointer(place).and_then(Value::as_f64).unwrap() / divisor;
        // Integers are cut, decimals are rounded to as many as are printed.
        assert!(
            (held - value).abs() < 1.0,
            "field {number}, {place}: {held}, {value}"
        );
    }
}

#[test]
fn blktests_counts_from_one_in_layout_4() {
    let places = [
        (6, "/read/io_kbytes"),
        (7, "/read/bw"),
        (8, "/read/iops"),
        (9, "/read/runtime"),
        (14, "/read/clat_ns/min ns"),
        (15, "/read/clat_ns/max ns"),
        (16, "/read/clat_ns/mean ns"),
        (38, "/read/lat_ns/min ns"),
        (42, "/read/bw_min"),
        (47, "/write/io_kbytes"),
        (48, "/write/bw"),
        (49, "/write/iops"),
        (50, "/write/runtime"),
        (88, "/trim/io_kbytes"),
        (129, "/usr_cpu"),
        (130, "/sys_cpu"),
        (131, "/ctx"),
        (132, "/majf"),
        (133, "/minf"),
        (134, "/iodepth_level/1"),
        (140, "/iodepth_level/>=64"),
        (142, "/latency_us/4"),
        (150, "/latency_us/1000"),
        (151, "/latency_ms/2"),
        (162, "/latency_ms/>=2000"),
    ];
    check(4, 1, &places);
    assert_eq!(fields(4)[0], "4");
}

#[test]
fn mmtests_counts_from_zero_in_layout_3() {
    assert_eq!(fields(3)[2], record().jobs[0].name);
    let places = [
        (5, "/read/io_kbytes"),
        (44, "/read/bw_mean"),
        (46, "/write/io_kbytes"),
        (85, "/write/bw_mean"),
    ];
    check(3, 0, &places);
}

#[test]
fn yabs_finds_rates_by_awk() {
    let places = [
        (7, "/read/bw"),
        (8, "/read/iops"),
        (48, "/write/bw"),
        (49, "/write/iops"),
    ];
    check(3, 1, &places);
}

#[test]
fn tkperf_finds_rates_and_latencies() {
    let places = [
        (6, "/read/bw"),
        (7, "/read/iops"),
        (37, "/read/lat_ns/min ns"),
        (38, "/read/lat_ns/max ns"),
        (39, "/read/lat_ns/mean ns"),
        (46, "/write/io_kbytes"),
        (47, "/write/bw"),
        (48, "/write/iops"),
        (78, "/write/lat_ns/min ns"),
        (79, "/write/lat_ns/max ns"),
        (80, "/write/lat_ns/mean ns"),
    ];
    check(3, 0, &places);
}

#[test]
fn the_prometheus_exporter_reads_layout_5() {
    let fields = fields(5);
    assert!(
        fields[0] == "5" && fields[1].starts_with("fio-"),
        "its line is known by `5;fio-`"
    );
    for field in &fields[17..37] {
        let (percent, value) = field.split_once('=').unwrap();
        assert!(
            percent.ends_with('%') && value.parse::<u64>().is_ok(),
            "{field}"
        );
    }
    let places = [
        (6, "/read/bw"),
        (7, "/read/iops"),
        (37, "/read/lat_ns/min ns"),
        (39, "/read/lat_ns/mean ns"),
        (41, "/read/bw_min"),
        (44, "/read/bw_mean"),
        (47, "/read/iops_min"),
        (49, "/read/iops_mean"),
        (53, "/write/bw"),
        (54, "/write/iops"),
        (146, "/usr_cpu"),
        (147, "/sys_cpu"),
        (151, "/iodepth_level/1"),
        (157, "/iodepth_level/>=64"),
    ];
    check(5, 0, &places);
}

#[test]
fn fiovisualizer_streams_layout_3() {
    let places = [
        (6, "/read/bw"),
        (7, "/read/iops"),
        (15, "/read/clat_ns/mean ns"),
        (47, "/write/bw"),
        (48, "/write/iops"),
        (56, "/write/clat_ns/mean ns"),
    ];
    check(3, 0, &places);
}

#[test]
fn disks_follow_the_latencies() {
    assert_eq!(fields(3)[121], "vda");
    assert_eq!(fields(4)[162], "vda");
    let [three, four, five] = [3, 4, 5].map(|layout| fields(layout).len());
    assert_eq!((three, four, five), (130, 171, 189));
}

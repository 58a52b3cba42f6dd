//! Tools that read fio's reports, each reduced to what its source looks for. The record has all of
//! Fathom's additions (response times, lag, caveats, warnings), to show that none of them breaks a
//! tool.

use crate::captured::{Captured, between};
use fathom_record::{Machine, Record, StorageRecord, Validity, Warning};
use fathom_stats::Latency;
use serde_json::Value;

/// Returns a mixed job with all of Fathom's additions.
fn record() -> Record {
    let captured = Captured::read(include_str!("../data/fio-3.33-null-randrw.txt"));
    let mut record = captured.record;
    record.global_options = vec![("rwmixread".to_owned(), "50".to_owned())];
    let mut latency = Latency::new(true);
    latency.record_all(&[150, 940_000_000, 940_000_000]);
    let directions = &mut record.jobs[0].directions;
    for direction in [&mut directions.read, &mut directions.write] {
        direction.resp = Some(latency.clone());
        direction.lag = Some(latency.clone());
    }
    record.machine = Some(Machine {
        storage: vec![StorageRecord::default()],
        engine_features: vec!["io_uring: fixed buffers".to_owned()],
        ..Machine::default()
    });
    record.validity = vec![Validity {
        job: "n".to_owned(),
        check: "response_time".to_owned(),
        sentence: "clat hides waiting: see resp".to_owned(),
        figures: vec![("resp_p99_ns".to_owned(), 940e6)],
        ..Validity::default()
    }];
    record.warnings = vec![Warning {
        message: "two lines\nof text".to_owned(),
        ..Warning::default()
    }];
    record
}

/// Returns all formats, in the order in which fio prints them.
fn stdout(record: &Record) -> String {
    let header = fathom_report::job_header(&record.jobs[0], 1);
    let starting = fathom_report::starting_line(1, 0);
    let version = fathom_report::FIO_VERSION;
    let json = crate::json(record, false);
    header + version + "\n" + &starting + &json + &crate::text(record)
}

fn document(record: &Record) -> Value {
    serde_json::from_str(&crate::json(record, false)).unwrap()
}

fn keys(object: &Value) -> Vec<&str> {
    object
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

#[test]
fn phoronix_finds_bandwidth_and_iops() {
    let text = crate::text(&record());
    let bandwidths: Vec<f64> = text
        .lines()
        .filter(|line| line.contains(": bw="))
        .map(|line| between(line, ": bw=", "MiB/s").parse().unwrap())
        .collect();
    assert_eq!(bandwidths.len(), 2, "one line for each direction");
    let iops: Vec<f64> = text
        .lines()
        .filter(|line| line.contains("IOPS="))
        .map(|line| between(line, "IOPS=", "k,").parse().unwrap())
        .collect();
    assert_eq!(iops.len(), 2);
    assert!(iops.iter().all(|&thousands| thousands > 100.0));
}

#[test]
fn lisa_finds_iops_and_the_first_lat() {
    // The expression is IOPS=(.+?),…* lat.*avg=(.+?), with a dot that stops at the line's end.
    let text = crate::text(&record());
    assert!(between(&text, "IOPS=", ",").ends_with('k'));
    let lat = text
        .lines()
        .find(|line| line.contains(" lat") && line.contains("avg="))
        .unwrap();
    let average: f64 = between(lat, "avg=", ",").parse().unwrap();
    let document = document(&record());
    let mean = document["jobs"][0]["read"]["lat_ns"]["mean"]
        .as_f64()
        .unwrap();
    assert!((average - mean).abs() < 0.01, "{lat}");
}

#[test]
fn cbt_cuts_json_out_of_mixed_output() {
    // From the line after `Starting` up to the first empty line.
    let output = stdout(&record());
    let lines = output
        .lines()
        .skip_while(|line| !line.contains("Starting"))
        .skip(1);
    let cut: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
    assert_eq!((cut[0], cut[cut.len() - 1]), ("{", "}"));
    let document: Value = serde_json::from_str(&cut.join("\n")).unwrap();
    assert_eq!(document["global options"]["rwmixread"], "50");
    for direction in ["read", "write"] {
        let direction = &document["jobs"][0][direction];
        for key in ["io_bytes", "bw_bytes", "total_ios"] {
            assert!(direction[key].is_u64(), "{key} is an int");
        }
        assert!(direction["iops"].is_f64(), "iops is a float");
        assert!(direction["clat_ns"]["mean"].is_f64());
        assert!(direction["clat_ns"]["stddev"].is_f64());
    }
}

#[test]
fn the_outer_braces_stand_alone() {
    let json = crate::json(&record(), true);
    let alone = |brace| json.lines().filter(|line| *line == brace).count();
    assert_eq!((alone("{"), alone("}")), (1, 1));
    assert!(json.lines().all(|line| !line.trim().is_empty()));
    assert!(json.starts_with("{\n") && json.ends_with("\n}\n"));
}

#[test]
fn xfstests_meets_no_scalar_it_has_no_column_for() {
    // perf/001 makes a column of every scalar under jobs[] and its directions.
    let document = document(&record());
    let job = &document["jobs"][0];
    let scalars = |object: &Value| -> Vec<String> {
        let scalar = object
            .as_object()
            .unwrap()
            .iter()
            .filter(|(_, value)| !value.is_object());
        scalar.map(|(key, _)| key.clone()).collect()
    };
    assert_eq!(
        scalars(job),
        [
            "jobname",
            "groupid",
            "job_start",
            "error",
            "eta",
            "elapsed",
            "job_runtime",
            "usr_cpu",
            "sys_cpu",
            "ctx",
            "majf",
            "minf",
            "latency_depth",
            "latency_target",
            "latency_target_ns",
            "latency_percentile",
            "latency_window",
            "latency_window_us",
        ]
    );
    assert_eq!(
        scalars(&job["write"]),
        [
            "io_bytes",
            "io_kbytes",
            "bw_bytes",
            "bw",
            "iops",
            "runtime",
            "total_ios",
            "short_ios",
            "drop_ios",
            "bw_min",
            "bw_max",
            "bw_agg",
            "bw_mean",
            "bw_dev",
            "bw_samples",
            "iops_min",
            "iops_max",
            "iops_mean",
            "iops_stddev",
            "iops_samples",
        ]
    );
    assert_eq!(
        keys(&job["read"]["lat_ns"]),
        ["min", "max", "mean", "stddev", "N"]
    );
}

#[test]
fn kubestr_reads_its_hard_types() {
    let document = document(&record());
    let job = &document["jobs"][0];
    let i32_fields = [
        "ctx",
        "majf",
        "minf",
        "latency_depth",
        "job_runtime",
        "error",
        "eta",
        "elapsed",
    ];
    for field in i32_fields {
        assert!(
            job[field]
                .as_i64()
                .is_some_and(|v| i32::try_from(v).is_ok()),
            "{field}"
        );
    }
    for direction in ["read", "write", "trim"] {
        let direction = &job[direction];
        for field in [
            "iops_min",
            "iops_max",
            "bw_samples",
            "iops_samples",
            "total_ios",
            "runtime",
        ] {
            assert!(
                direction[field]
                    .as_i64()
                    .is_some_and(|v| i32::try_from(v).is_ok()),
                "{field}"
            );
        }
        for field in ["io_bytes", "bw", "bw_min", "bw_max"] {
            assert!(direction[field].is_i64(), "{field}");
        }
        for field in [
            "bw_agg",
            "bw_mean",
            "bw_dev",
            "iops",
            "iops_mean",
            "iops_stddev",
        ] {
            assert!(direction[field].is_f64(), "{field}");
        }
        for kind in ["slat_ns", "clat_ns", "lat_ns"] {
            assert!(direction[kind]["min"].is_i64() && direction[kind]["max"].is_i64());
        }
    }
    let options = [&job["job options"], &document["global options"]];
    for options in options.map(|options| options.as_object().unwrap()) {
        assert!(options.values().all(Value::is_string));
    }
}

#[test]
fn fio_plot_finds_its_keys() {
    let document = document(&record());
    assert!(
        document["fio version"]
            .as_str()
            .unwrap()
            .starts_with("fio-3.42")
    );
    let job = &document["jobs"][0];
    for option in ["rw", "iodepth", "bs"] {
        assert!(job["job options"][option].is_string(), "{option}");
    }
    for key in ["latency_ns", "latency_us", "latency_ms"] {
        assert!(
            job[key].as_object().unwrap().values().all(Value::is_f64),
            "{key}"
        );
    }
    assert_eq!(keys(&job["latency_ms"]).last(), Some(&">=2000"));
    assert!(job["usr_cpu"].is_f64() && job["sys_cpu"].is_f64());
}

#[test]
fn perfkit_finds_its_percentiles() {
    let document = document(&record());
    let percentiles = &document["jobs"][0]["read"]["clat_ns"]["percentile"];
    for key in [
        "1.000000",
        "5.000000",
        "50.000000",
        "99.000000",
        "99.950000",
        "99.990000",
    ] {
        assert!(percentiles[key].is_u64(), "{key}");
    }
}

#[test]
fn jsonplus_clat2csv_finds_its_bins() {
    let json = crate::json(&record(), true);
    let document: Value = serde_json::from_str(&json).unwrap();
    let clat = &document["jobs"][0]["read"]["clat_ns"];
    let bins = clat["bins"].as_object().unwrap();
    let total: u64 = bins.values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(Some(total), clat["N"].as_u64());
    assert!(bins.keys().all(|ns| ns.parse::<u64>().is_ok()));
}

#[test]
fn top_level_keys_come_in_order() {
    let want = [
        "fio version",
        "timestamp",
        "timestamp_ms",
        "time",
        "global options",
        "jobs",
        "fathom",
    ];
    assert_eq!(keys(&document(&record())), want);
}

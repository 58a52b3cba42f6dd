use fathom_record::Measure;
use serde_json::json;

use super::*;
use crate::finished::RunEnd;

#[track_caller]
fn value(run: &ImportedRun, direction: &str, metric: &str) -> f64 {
    let mut measures = run.run.measures.iter();
    let found = measures
        .find(|one| one.group.is_empty() && one.direction == direction && one.metric == metric);
    found
        .unwrap_or_else(|| panic!("no {direction}.{metric}"))
        .value
}

#[track_caller]
fn close(got: f64, want: f64, tolerance: f64) {
    assert!(
        (got / want - 1.0).abs() <= tolerance,
        "{got} instead of {want}"
    );
}

fn has(run: &ImportedRun, metric: &str) -> bool {
    run.run.measures.iter().any(|one| one.metric == metric)
}

#[test]
fn json_plus_gives_all_metrics() {
    let report = include_str!("../../tests/import/fio-json-plus.json");
    let runs = import(report).unwrap();
    let [run] = &runs[..] else {
        panic!("{} runs", runs.len());
    };
    assert!(
        run.notes.is_empty() && run.run.record.is_some(),
        "{:?}",
        run.notes
    );
    let fio: Value = serde_json::from_str(&documents::documents(report)[0].json).unwrap();
    let read = &fio["jobs"][0]["read"];
    let float = |value: &Value| value.as_f64().unwrap();
    close(value(run, "read", "bw"), float(&read["bw_bytes"]), 1e-3);
    close(value(run, "read", "iops"), float(&read["iops"]), 1e-3);
    let clat = &read["clat_ns"];
    close(value(run, "read", "clat_mean"), float(&clat["mean"]), 1e-9);
    close(
        value(run, "read", "clat_stddev"),
        float(&clat["stddev"]),
        1e-9,
    );
    close(value(run, "read", "clat_max"), float(&clat["max"]), 0.0);
    // Within the bucket of fio's value, which is 1.6 % wide.
    close(
        value(run, "read", "clat_p99"),
        float(&clat["percentile"]["99.000000"]),
        0.016,
    );
    assert!(run.run.plan.contains("rw=randread"), "{}", run.run.plan);
    assert!(run.begun_ms.is_some() && run.run.subject.contains("fio-3.33"));
}

#[test]
fn json_gives_its_own_percentiles_of_single_jobs() {
    let runs = import(include_str!("../../tests/import/fio-json.json")).unwrap();
    let run = &runs[0];
    assert!(run.notes[0].contains("no histograms"), "{:?}", run.notes);
    // Both jobs write; only the first reads.
    assert!(
        run.run
            .measures
            .iter()
            .any(|one| one.direction == "read" && one.metric == "clat_p99")
    );
    let of_both = |one: &&Measure| one.group.is_empty() && one.direction == "write";
    let mut of_both = run.run.measures.iter().filter(of_both);
    assert!(!of_both.any(|one| one.metric.contains("_p")));
    assert!(has(run, "clat_mean") && has(run, "bw"));
}

#[test]
fn nan_and_interim_reports_are_read() {
    let report = |ios: u32| {
        format!(
            "{{\"fio version\": \"fio-3.33\", \"jobs\": [{{\"jobname\": \"a\", \"job_start\": 5,
             \"read\": {{\"total_ios\": {ios}, \"runtime\": 1000, \"io_bytes\": 4096,
             \"iops_mean\": -nan, \"clat_ns\": {{\"N\": {ios}, \"mean\": nan}}}}}}]}}\n"
        )
    };
    let runs = import(&(report(10) + "a note\n" + &report(20))).unwrap();
    assert_eq!(runs.len(), 1);
    close(value(&runs[0], "read", "iops"), 20.0, 0.0);
    assert!(runs[0].notes.iter().any(|note| note.contains("interim")));
    // Other runs stay.
    let other = report(30).replace("\"job_start\": 5", "\"job_start\": 6");
    assert_eq!(import(&(report(10) + &other)).unwrap().len(), 2);
}

#[test]
fn reports_without_begins_are_of_one_run_that_began_before_it_ended() {
    // fio 3.33 with `--status-interval=1`, two sections of 3 s with `stonewall`.
    let runs = import(include_str!("../../tests/import/fio-interim.json")).unwrap();
    assert_eq!(runs.len(), 1);
    let run = &runs[0];
    assert!(run.notes.iter().any(|note| note.contains("interim")));
    assert!(
        run.notes
            .iter()
            .any(|note| note.contains("one after another"))
    );
    assert_eq!(run.run.wall_ms, 6000);
    assert_eq!(run.begun_ms, Some(1_796_102_304_849));
    close(value(run, "read", "iops"), 1000.0, 0.01);
}

#[test]
fn an_exported_run_comes_back_whole() {
    let run = FinishedRun {
        end: RunEnd::Failed,
        wall_ms: 7,
        plan: "[a]\n".into(),
        machine: "{\"cpu\":\"x\"}".into(),
        subject: "{}".into(),
        note: Some("n".into()),
        measures: vec![Measure {
            group: "g".into(),
            direction: "trim",
            metric: "iops".into(),
            value: 0.1,
            low: Some(0.05),
            high: None,
        }],
        record: Some("{\"version\":1}".into()),
        tags: vec![("a".into(), "b".into())],
    };
    let text = exported::to_value(Some("u"), Some(3), &run).to_string();
    let runs = import(&text).unwrap();
    let back = ImportedRun {
        uuid: Some("u".into()),
        begun_ms: Some(3),
        repeat: None,
        run,
        notes: Vec::new(),
    };
    assert_eq!(runs, [back]);
}

#[test]
fn a_time_that_is_none_is_not_known() {
    for time in ["-1", "1.5", "18446744073709551616", "0", "null"] {
        let runs = import(&format!("{{\"fathom_run\": 1, \"begun_ms\": {time}}}")).unwrap();
        assert_eq!(runs[0].begun_ms, None, "{time}");
    }
}

#[test]
fn other_texts_are_refused_with_their_line() {
    #[track_caller]
    fn refuse(text: &str, want: &str) {
        let error = import(text).unwrap_err().to_string();
        assert!(error.contains(want), "{error}");
    }
    refuse("", "no JSON document");
    refuse("\n{\"a\": 1}", "line 2 is neither");
    refuse("\n\n{\"a\": }", "line 3: not valid JSON: expected value");
    let refused = import("\n{\n\"a\": 1,\n}").unwrap_err().to_string();
    assert_eq!(refused, "line 4: not valid JSON: trailing comma");
    refuse(
        "x\n{\"a\":\n [",
        "line 2: not valid JSON: the text ends within the document",
    );
    refuse(
        "{\"fathom_run\": 2}",
        "exported run of version 2: this program reads version 1",
    );
    refuse("{\"version\": 99, \"jobs\": []}", "version 99");
}

#[test]
fn priorities_have_metrics_of_their_own() {
    let clat =
        |ns: u64| format!(r#"{{"N":30,"min":{ns},"max":{ns},"mean":{ns},"bins":{{"{ns}":30}}}}"#);
    let prio =
        |class: u16, ns| format!(r#"{{"prioclass":{class},"prio":0,"clat_ns":{}}}"#, clat(ns));
    let report = format!(
        r#"{{"fio version":"fio-3.33","jobs":[{{"jobname":"a","read":{{"total_ios":60,
           "runtime":1000,"clat_ns":{},"prios":[{},{}]}}}}]}}"#,
        clat(200),
        prio(0, 300),
        prio(1, 100)
    );
    let runs = import(&report).unwrap();
    assert_eq!(value(&runs[0], "read", "clat_rt_max"), 100.0);
    assert_eq!(value(&runs[0], "read", "clat_be_mean"), 300.0);
    close(value(&runs[0], "read", "clat_be_p50"), 300.0, 0.016);
    assert!(!has(&runs[0], "clat_idle_mean"));
}

#[test]
fn reports_of_fio_2_have_their_latencies_in_ns() {
    // Sizes in KiB under the name of bytes, latencies in µs.
    let report = json!({
        "fio version": "fio-2.2.10",
        "timestamp": 1_444_144_664,
        "jobs": [{
            "jobname": "one",
            "read": {
                "io_bytes": 89_304, "bw": 2976, "iops": 744.13, "runtime": 30_003,
                "total_ios": 22_326, "short_ios": 0, "drop_ios": 0,
                "slat": { "min": 6, "max": 181, "mean": 24.62, "stddev": 2.07 },
                "clat": {
                    "min": 53, "max": 6329, "mean": 255.34, "stddev": 94.4,
                    "percentile": { "50.000000": 243, "99.000000": 506, "0.00": 0 },
                },
                "lat": { "min": 0, "max": 0, "mean": 0.0, "stddev": 0.0 },
            },
        }],
    });
    let run = &import(&report.to_string()).unwrap()[0];
    assert_eq!(run.begun_ms, Some(1_444_144_664_000));
    close(value(run, "read", "bw"), 89_304.0 * 1024.0 / 30.003, 1e-9);
    close(value(run, "read", "iops"), 744.13, 1e-4);
    close(value(run, "read", "clat_mean"), 255_340.0, 1e-9);
    close(value(run, "read", "clat_stddev"), 94_400.0, 1e-9);
    close(value(run, "read", "clat_max"), 6_329_000.0, 1e-9);
    close(value(run, "read", "clat_p99"), 506_000.0, 1e-9);
    close(value(run, "read", "slat_mean"), 24_620.0, 1e-9);
    assert!(!has(run, "lat_mean") && !has(run, "clat_p0"));
    assert!(run.notes[0].starts_with("of fio 2"), "{:?}", run.notes);
    assert_eq!(run.notes.len(), 2, "{:?}", run.notes);
    let page = page_run(&report.to_string()).unwrap();
    let warnings = page.record.warnings.iter();
    let is_told = |text: &str| warnings.clone().any(|one| one.message.contains(text));
    assert!(is_told("histograms of fio 2 have numbers of buckets"));
    assert!(!is_told("plain JSON"));
    let clat = page.record.jobs[0].directions.read.clat.as_ref().unwrap();
    assert_eq!(
        (clat.summary.min(), clat.summary.max()),
        (53_000, 6_329_000)
    );
}

#[test]
fn the_oldest_reports_have_no_number_of_ops_and_some_have_bytes() {
    let latency = json!({ "min": 53, "max": 6330, "mean": 255.56, "stddev": 94.41 });
    let report = |size: u64| {
        json!({
            "fio version": "fio-2.1.11",
            "jobs": [{ "jobname": "one", "read": {
                "io_bytes": size, "bw": 21, "iops": 5, "runtime": 2_127_550, "lat": latency,
            }}],
        })
        .to_string()
    };
    // The unit of the size follows from the rate.
    for size in [44_920, 44_920 << 10] {
        let run = &import(&report(size)).unwrap()[0];
        close(value(run, "read", "iops"), 5.0, 1e-3);
        close(value(run, "read", "bw"), 44_920.0 * 1024.0 / 2127.55, 1e-9);
        close(value(run, "read", "lat_mean"), 255_560.0, 1e-9);
        assert!(run.notes[1].contains("no number of ops"), "{:?}", run.notes);
    }
}

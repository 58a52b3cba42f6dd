//! `fathom history trend` and `fathom history check`.

use crate::common::Folder;
use serde_json::{Value, json};

/// Returns a folder whose history has 40 runs of one plan: from `at` on with fewer IOPS, and with
/// another kernel.
fn with_change_at(at: u64) -> Folder {
    with_runs(40, at)
}

/// As [`with_change_at`], with this many runs.
fn with_runs(count: u64, at: u64) -> Folder {
    let folder = Folder::new();
    let runs = (0..count).map(|number| {
        let (iops, kernel) = match number < at {
            true => (100_000, "6.12.1"),
            // One run after the change with the earlier kernel does not hide it.
            false if number == at => (93_000, "6.12.1"),
            false => (93_000, "6.12.9"),
        };
        // Some scatter: 0 to 2.3 %.
        let iops = iops + (number * 37 % 24) * 100;
        json!({
            "fathom_run": 1,
            "uuid": format!("{number:032x}"),
            "begun_ms": 1_767_225_600_000 + number * 86_400_000,
            "wall_ms": 1000,
            "plan": "[nightly]\nrw=randread\n",
            "machine": { "cpu": "one" },
            "subject": { "program": "fathom 1", "kernel": kernel },
            "tags": { "commit": format!("c{}", u8::from(number >= at)) },
            "measures": [["", "read", "iops", iops, null, null]],
        })
        .to_string()
            + "\n"
    });
    folder.write("runs.json", runs.collect::<String>());
    folder.fathom("history import runs.json").expect(0);
    folder
}

#[test]
fn a_trend_names_the_change_and_what_changed_there() {
    let folder = with_change_at(20);
    let text = folder.fathom("history trend read.iops").expect(0).out;
    for want in [
        "read.iops, IOPS: plan 1 (nightly), machine 1, 40 runs\n",
        "2026-01-21 00:00:00",
        "changed before run 21: kernel 6.12.1 → 6.12.9, commit c0 → c1\n",
        "worse",
        "\nintervals of changes have a confidence level of 95 % or more\n",
    ] {
        assert!(text.contains(want), "{want}: {text}");
    }
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let trend: Value = folder
        .fathom("history trend read.iops --json")
        .expect(0)
        .json();
    let changes = trend[0]["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 1);
    assert_eq!(changes[0]["run"], 21);
    let ratio = &changes[0]["ratio"];
    let (low, high) = (
        ratio["low"].as_f64().unwrap(),
        ratio["high"].as_f64().unwrap(),
    );
    assert!(low < 0.932 && 0.930 < high, "{ratio}");
}

#[test]
fn a_check_fails_while_a_change_for_the_worse_is_new() {
    for (at, code) in [(40, 0), (35, 1), (32, 1), (20, 0)] {
        let run = with_change_at(at).fathom("history check --metric read.iops");
        let run = run.expect(code);
        assert_eq!(run.out.contains("run 33 on"), at == 32, "{run:?}");
        assert_eq!(run.out.contains("confidence level"), code == 1, "{run:?}");
        assert_eq!(
            run.out.contains("the newest 5 runs"),
            at >= 32 && code == 1,
            "{run:?}"
        );
    }
    let folder = with_change_at(35);
    folder
        .fathom("history check --metric read.iops --tolerance 10%")
        .expect(0);
    let found: Value = folder
        .fathom("history check --metric read.iops --json")
        .expect(1)
        .json();
    assert_eq!(
        (&found["checked"], &found["worse"][0]["metric"]),
        (&json!(1), &json!("read.iops"))
    );
}

#[test]
fn a_check_of_several_metrics_finds_the_one_that_changed() {
    let folder = Folder::new();
    // Ten runs, the fewest: of 8 metrics the bandwidth of writes falls with the sixth.
    let runs = (0..10_u64).map(|number| {
        let scatter = |metric: u64| (number * 37 + metric * 11) % 24 * 100;
        let fallen = if number < 5 { 0 } else { 7_000 };
        let measures = ["iops", "bw", "clat_mean", "clat_p99"].into_iter().zip(0..);
        let measures = measures.flat_map(|(name, at)| {
            let written = 100_000 + scatter(at + 4) - if name == "bw" { fallen } else { 0 };
            [("read", 100_000 + scatter(at)), ("write", written)]
                .map(|(direction, value)| json!(["", direction, name, value, null, null]))
        });
        json!({
            "fathom_run": 1,
            "uuid": format!("{number:032x}"),
            "begun_ms": 1_767_225_600_000 + number * 86_400_000,
            "wall_ms": 1000,
            "plan": "[nightly]\nrw=randrw\n",
            "machine": { "cpu": "one" },
            "subject": { "program": "fathom 1" },
            "measures": measures.collect::<Vec<_>>(),
        })
        .to_string()
            + "\n"
    });
    folder.write("runs.json", runs.collect::<String>());
    folder.fathom("history import runs.json").expect(0);
    let mut command = "history check".to_owned();
    for direction in ["read", "write"] {
        for name in ["iops", "bw", "clat_mean", "clat_p99"] {
            command += &format!(" --metric {direction}.{name}");
        }
    }
    let run = folder.fathom(&command).expect(1);
    let told = "8 metrics of runs checked: 1 changed for the worse among the newest 10 runs\n\
                expected by chance alone: at most 0.08 of 8 (p ≤ 0.01 each)\n";
    assert!(run.out.starts_with("write.bw_mib_s: plan 1"), "{run:?}");
    assert!(run.out.ends_with(told), "{run:?}");
}

#[test]
fn a_check_of_too_few_runs_does_not_say_that_none_changed() {
    let run = with_runs(5, 5)
        .fathom("history check --metric read.iops")
        .expect(0);
    let want = "1 metric of runs, none with 10 runs since its last change: too few to find a \
                change\n";
    assert_eq!(run.out, want);
}

#[test]
fn metrics_that_no_run_has_are_refused() {
    let folder = with_change_at(40);
    let run = folder.fathom("history trend write.bw").expect(2);
    assert!(run.err.contains("hint: measured: read.iops"), "{run:?}");
    let run = folder.fathom("history trend read.iopps").expect(2);
    assert!(run.err.contains("no metric `iopps`"), "{run:?}");
    folder.fathom("history trend read.iops --plan 2").expect(2);
    folder.fathom("history check").expect(2);
}

#[test]
fn a_history_without_numbers_has_nothing_to_check() {
    let folder = Folder::new();
    folder.write("run.json", "{\"fathom_run\": 1}");
    folder.fathom("history import run.json").expect(0);
    let trend = folder.fathom("history trend read.iops").expect(2);
    assert!(trend.err.contains("has `read.iops`"), "{}", trend.err);
    assert!(!trend.err.contains("hint:"), "{}", trend.err);
    let check = folder.fathom("history check").expect(2);
    let want = "no matching run has any of the metrics to check";
    assert!(check.err.contains(want), "{}", check.err);
}

/// Returns a folder whose history has 22 runs of one plan. The last ones completed no op and have
/// no metric, and the record says what they were to do.
fn with_idle_runs(idle: u64) -> Folder {
    let folder = Folder::new();
    let runs = (0..22_u64).map(|number| {
        let is_idle = number >= 22 - idle;
        let iops = 1000 + number * 37 % 24;
        let measures = match is_idle {
            true => json!([]),
            false => json!([
                ["", "read", "iops", iops, null, null],
                ["", "read", "clat_p99", 1_000_000 + iops, null, null],
            ]),
        };
        let mut run = json!({
            "fathom_run": 1,
            "uuid": format!("{number:032x}"),
            "begun_ms": 1_767_225_600_000 + number * 86_400_000,
            "wall_ms": 1000,
            "plan": "[nightly]\nrw=randread\n",
            "machine": { "cpu": "one" },
            "subject": { "program": "fathom 1" },
            "tags": {},
            "measures": measures,
        });
        if is_idle {
            run["record"] = idle_record();
        }
        run.to_string() + "\n"
    });
    folder.write("runs.json", runs.collect::<String>());
    folder.fathom("history import runs.json").expect(0);
    folder
}

/// Returns the record of a run that was to read.
fn idle_record() -> Value {
    let folder = Folder::new();
    folder
        .fathom("run --record=r.json --name=nightly --ioengine=null --rw=randread --size=4k")
        .expect(0);
    let mut record: Value = serde_json::from_str(&folder.read("r.json")).unwrap();
    let job = &mut record["jobs"][0];
    job["directions"]["read"] = job["directions"]["write"].clone();
    job["runtime_ms"] = json!(0);
    let start_ms = job["start_ms"].as_u64().unwrap();
    record["timelines"] = json!([]);
    record["timestamp_ms"] = json!(start_ms + 1000);
    record
}

#[test]
fn runs_that_did_nothing_are_a_change_for_the_worse() {
    let folder = with_idle_runs(7);
    let check = folder.fathom("history check --metric read.iops").expect(1);
    assert!(check.out.contains("from run 16 on"), "{}", check.out);
    let trend = folder.fathom("history trend read.iops").expect(0).out;
    assert!(trend.contains("machine 1, 22 runs\n"), "{trend}");
}

#[test]
fn runs_without_the_metric_are_told_and_the_newest_fail_a_check() {
    let folder = with_idle_runs(7);
    let trend = folder.fathom("history trend read.clat_p99").expect(0).out;
    let note = "7 of 22 runs do not have this metric, the newest 7 among them";
    assert!(trend.contains(&format!("note: {note}\n")), "{trend}");
    let words = "history check --metric read.clat_p99";
    let check = folder.fathom(words).expect(1).out;
    let told = format!("{note}: nothing is known of them\n");
    assert!(check.contains(&told), "{check}");
    assert!(check.contains("none changed for the worse"), "{check}");
    let json: Value = folder.fathom(&format!("{words} --json")).expect(1).json();
    assert_eq!(json["left_out"][0]["newest"], 7);
    // Fewer are told only.
    let check = with_idle_runs(2).fathom(words).expect(0).out;
    assert!(check.contains("2 of 22 runs do not have"), "{check}");
}

#[test]
fn the_newest_runs_that_failed_or_were_cut_fail_a_check() {
    let folder = with_runs(12, 12);
    let words = "history check --metric read.iops";
    folder.fathom(words).expect(0);
    let text = folder.read("runs.json");
    let failed = text.lines().take(6).enumerate().map(|(number, line)| {
        let mut run: Value = serde_json::from_str(line).unwrap();
        run["uuid"] = json!(format!("{:032x}", 100 + number));
        run["begun_ms"] = json!(1_777_225_600_000_u64 + number as u64);
        run["state"] = json!(if number % 2 == 0 { "failed" } else { "cut" });
        format!("{run}\n")
    });
    folder.write("failed.json", failed.collect::<String>());
    folder.fathom("history import failed.json").expect(0);
    let note = "6 of 18 runs failed or were cut, the newest 6 among them";
    let check = folder.fathom(words).expect(1).out;
    assert!(
        check.contains(&format!("{note}: nothing is known of them\n")),
        "{check}"
    );
    let trend = folder.fathom("history trend read.iops").expect(0).out;
    assert!(trend.contains(&format!("note: {note}\n")), "{trend}");
    // The two sides of a comparison tell of them, too.
    let told = folder
        .fathom("compare 1-6 7-18 --metric read.iops")
        .expect(0)
        .out;
    let want = "7-18: 6 of 12 runs did not run to the end; the first failed";
    assert!(told.contains(want), "{told}");
    for (side, unknown) in [("7,9,99", 99), ("7-19", 19)] {
        let run = folder.fathom(&format!("compare 1-6 {side}")).expect(2);
        let want = format!("{side}: no run {unknown} in the history");
        assert!(run.err.contains(&want), "{}", run.err);
    }
}

#[test]
fn a_metric_is_checked_once() {
    let folder = with_runs(10, 10);
    let words = "history check --metric read.iops --metric read.iops";
    let run = folder.fathom(words).expect(2);
    assert!(run.err.contains("which is judged already"), "{}", run.err);
}

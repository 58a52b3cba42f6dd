//! Levels of runs whose errors are known.

use fathom_record::{JobRecord, Measure, Record};

use super::*;
use crate::lab::lab_table;
use crate::lab::tests::{plan, simulated_with};
use crate::order::Part;

const LAB: &str = r#"
[lab]
name = "t"
machine = "m.toml"
[job]
rw = "randread"
bs = "4k"
filename = "/dev/sdx"
runtime = "4s"
time_based = true
rate_iops = 500
[axes]
iodepth = [1, 2]
[variants]
fast = {}
slow = { machine = { "device.constant.latency_us" = 110 } }
[judge]
baseline = "fast"
metrics = { "read.iops" = "2%" }
repeats = { min = 8, max = 8 }
"#;

/// Returns a run of 10 s in 12 s, with this rate and half the width of its interval.
fn run(iops: f64, half: f64) -> RunDone {
    let job = JobRecord {
        runtime_ms: 10_000,
        ..JobRecord::default()
    };
    RunDone {
        record: Some(Record {
            jobs: vec![job],
            elapsed_ms: 11_000,
            ..Record::default()
        }),
        measures: vec![Measure {
            group: String::new(),
            direction: "read",
            metric: "iops".into(),
            value: iops,
            low: Some(iops * (1.0 - half)),
            high: Some(iops * (1.0 + half)),
        }],
        wall_ms: 12_000,
        ..RunDone::default()
    }
}

/// Returns the sentences about `repeats` repeats whose ratios deviate by 2 %.
fn told(repeats: u32, half: f64) -> Vec<String> {
    let plan = plan(LAB);
    let mut runs = Vec::new();
    for repeat in 0..repeats {
        for slot in Part::All.order(&plan, repeat) {
            let sign = if repeat % 2 == 0 { 1.0 } else { -1.0 };
            let of_baseline = slot.variant == 0;
            let iops = if of_baseline {
                1.0
            } else {
                f64::exp(0.02 * sign)
            };
            runs.push(EarlierRun {
                slot,
                done: run(1000.0 * iops, half),
            });
        }
    }
    plan.level_sentences(&runs)
}

#[track_caller]
fn check(told: &[String], parts: &[&str]) {
    let [told] = told else {
        panic!("{told:?}");
    };
    for part in parts {
        assert!(told.contains(part), "{told}");
    }
}

#[test]
fn what_varies_between_runs_takes_repeats() {
    let within = "read.iops: deviates by 0.10 % within a run of 10 s and by 1.51 % between runs";
    check(&told(8, 0.002), &[within, "more repeats buy more"]);
}

#[test]
fn what_varies_within_runs_takes_longer_ones_while_repeats_are_left() {
    check(
        &told(40, 0.1),
        &["longer runs buy more", "by 0.00 % between"],
    );
    // Two comparisons take seven repeats at least.
    check(&told(8, 0.1), &["neither longer runs nor more repeats"]);
}

#[test]
fn nothing_is_told_before_there_are_repeats() {
    assert_eq!(told(0, 0.1), Vec::<String>::new());
    assert_eq!(told(1, 0.1), Vec::<String>::new());
}

#[test]
fn runs_in_virtual_time_have_levels_and_short_ones_say_why_not() {
    let levels = |text: &str| {
        let plan = plan(text);
        let outcome = simulated_with(&plan, 1, &mut crate::lab::NoJournal).unwrap();
        let notes = lab_table(&plan, &outcome).notes.into_iter();
        notes
            .filter(|note| note.starts_with("levels: "))
            .collect::<Vec<_>>()
    };
    check(
        &levels(LAB),
        &["levels: read.iops: deviates by", "a run of 4.0 s"],
    );
    let short = LAB.replace("4s", "1s");
    check(
        &levels(&short),
        &["runs of 1.0 s are too short", "takes 3 s"],
    );
}

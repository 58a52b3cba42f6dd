//! Processors and scheduling under `"fathom"`: present if observed, summed for groups.

use fathom_record::{JobRecord, Machine, ProcessorsRecord, Record, SchedulingRecord};
use serde_json::{Value, json};

fn job(waited_ns: u64, frequency_mhz: Option<u64>) -> JobRecord {
    JobRecord {
        group_reporting: true,
        scheduling: Some(SchedulingRecord {
            ran_ns: 100,
            waited_ns,
            turns: 3,
            involuntary_switches: 1,
            frequency_mhz,
        }),
        processors: Some(ProcessorsRecord {
            cpus: 2,
            throttled_us: Some(5),
            ..ProcessorsRecord::default()
        }),
        ..JobRecord::default()
    }
}

fn document(jobs: Vec<JobRecord>) -> Value {
    let record = Record {
        jobs,
        processors: Some(ProcessorsRecord::default()),
        machine: Some(Machine {
            governor: "powersave".into(),
            ..Machine::default()
        }),
        ..Record::default()
    };
    serde_json::from_str(&crate::json(&record, false)).expect("JSON")
}

#[test]
fn what_was_not_observed_is_absent() {
    let document = document(vec![JobRecord::default()]);
    let job = &document["jobs"][0]["fathom"];
    assert!(job["scheduling"].is_null() && job["processors"].is_null());
    let run = &document["fathom"]["processors"];
    assert_eq!(run["busy_us"], 0);
    assert!(run["throttled_us"].is_null() && run["frequency_max_mhz"].is_null());
    assert_eq!(document["fathom"]["machine"]["governor"], "powersave");
}

#[test]
fn a_group_has_the_sum_of_waits_and_the_lowest_frequency() {
    let one = document(vec![job(7, None)]);
    let own = &one["jobs"][0]["fathom"];
    assert_eq!(
        (
            &own["processors"]["cpus"],
            &own["processors"]["throttled_us"]
        ),
        (&json!(2), &json!(5))
    );
    let both = document(vec![job(7, Some(3_000)), job(5, Some(2_000))]);
    let group = &both["jobs"][0]["fathom"];
    let sum = json!({
        "ran_ns": 200, "waited_ns": 12, "turns": 6, "involuntary_switches": 2,
        "frequency_mhz": 2_000,
    });
    assert_eq!(group["scheduling"], sum);
    // Those of its members overlap.
    assert!(group["processors"].is_null());
}

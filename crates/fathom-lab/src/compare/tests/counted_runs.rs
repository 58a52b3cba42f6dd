//! Runs that count twice, for nothing, or as a rate of 0.

use super::*;

#[test]
fn runs_that_are_copies_of_one_are_told() {
    let notes = |before: &[f64], after: &[f64]| {
        let before = side("before", "[a]\n", 1, before);
        let after = side("after", "[a]\n", 1_000_000, after);
        let found = compare(before, after, &rules()).unwrap();
        let copies = found.notes.into_iter();
        copies
            .filter(|note| note.contains("identical in every metric"))
            .collect::<Vec<_>>()
    };
    assert_eq!(notes(&SLOW, &fast()), Vec::<String>::new());
    assert_eq!(notes(&[100.0], &[104.6]), Vec::<String>::new());
    let told = notes(&SLOW, &[104.6; 5]);
    assert_eq!(told.len(), 1);
    assert!(
        told[0].starts_with("after: the 5 runs are identical"),
        "{told:?}"
    );
    assert_eq!(notes(&[100.0; 5], &[104.6; 5]).len(), 2);
}

#[test]
fn runs_without_the_metric_are_told_and_leave_no_verdict_but_worse() {
    let accepted = CompareRules {
        metrics: vec![(MetricName::parse("write.clat_p99").unwrap(), 0.02)],
        accept_drift: true,
        ..rules()
    };
    let lacking = |values: &[f64]| {
        let mut after = side("after", "[a]\n", 1_000_000, values);
        let fewer = after.runs.iter_mut().take(4);
        fewer.for_each(|run| run.run.measures.retain(|one| one.metric == "bw"));
        after
    };
    let twice: Vec<f64> = SLOW.iter().chain(&SLOW).copied().collect();
    let before = || side("before", "[a]\n", 1, &twice);
    let found = compare(before(), lacking(&twice), &accepted).unwrap();
    assert_eq!(found.rows[0].verdict, ComparedVerdict::LeftOut);
    assert!(found.is_unclear() && !found.is_worse());
    let note = "write.clat_p99: left out: 4 of 16 runs of after, which do not have it";
    assert!(found.notes.iter().any(|one| one == note), "{found:?}");
    assert_eq!(found.json()["metrics"][0]["after"]["left_out"], 4);
    // Four times the latency is worse nevertheless.
    let slower: Vec<f64> = twice.iter().map(|value| value / 4.0).collect();
    let found = compare(before(), lacking(&slower), &accepted).unwrap();
    assert!(found.is_worse(), "{found:?}");
    let faster: Vec<f64> = twice.iter().map(|value| value * 4.0).collect();
    let found = compare(before(), lacking(&faster), &accepted).unwrap();
    assert_eq!(found.rows[0].verdict, ComparedVerdict::LeftOut);
}

#[test]
fn runs_that_did_nothing_have_a_rate_of_zero() {
    use fathom_record::JobRecord;

    let mut after = side("after", "[a]\n", 1_000_000, &SLOW);
    for run in &mut after.runs {
        // As earlier versions kept them: without rates.
        run.run.measures.clear();
        let job = JobRecord {
            rw: "write".into(),
            ..JobRecord::default()
        };
        let record = Record {
            version: fathom_record::RECORD_VERSION,
            timestamp_ms: 1000,
            jobs: vec![job],
            ..Record::default()
        };
        run.run.record = record.to_json().ok();
    }
    let accepted = CompareRules {
        accept_drift: true,
        ..rules()
    };
    let found = compare(side("before", "[a]\n", 1, &SLOW), after, &accepted).unwrap();
    assert_eq!(found.rows.len(), 1, "{found:?}");
    assert_eq!(found.rows[0].after.values, [0.0; 8]);
    assert!(found.is_worse(), "{found:?}");
}

#[test]
fn runs_that_are_on_both_sides_are_refused() {
    let why = |before: CompareSide, after: CompareSide| compare(before, after, &rules());
    let part = |from: usize, to: usize| {
        let mut part = side("x", "[a]\n", 1, &SLOW);
        part.runs = part.runs[from..to].to_vec();
        part
    };
    let refused = why(part(0, 6), part(4, 8)).unwrap_err();
    let want = "2 runs are on both sides, which tests take for independent: x 4 of 1, x 5";
    assert!(refused.starts_with(want), "{refused}");
    assert!(why(part(0, 4), part(4, 8)).is_ok());
    // A copy without its identity, as a record in a file, and the same file again.
    let mut unnamed = part(3, 8);
    for run in &mut unnamed.runs {
        run.uuid = None;
        run.run.measures.reverse();
    }
    let refused = why(part(0, 4), unnamed.clone()).unwrap_err();
    assert!(refused.starts_with("1 run is on both sides"), "{refused}");
    // Runs of a model with the same seed are alike, and have no time.
    for run in &mut unnamed.runs {
        run.run.machine = "{\"devices\":[]}".into();
    }
    unnamed.files = (3..8).map(|at| format!("/m/{at}")).collect();
    let mut others = unnamed.clone();
    others.files = (3..8).map(|at| format!("/n/{at}")).collect();
    assert!(why(unnamed.clone(), others).is_ok());
    let refused = why(unnamed.clone(), unnamed).unwrap_err();
    assert!(refused.contains("5 runs are"), "{refused}");
    assert!(refused.contains(": /m/3, /m/4, "), "{refused}");
}

//! Curves: loads are shares of the closed-loop maximum, which is measured first.

use super::*;

const CURVE: &str = r#"
[lab]
name = "t"
machine = "q.toml"
[job]
rw = "randread"
bs = "4k"
filename = "/dev/q"
ioengine = "libaio"
iodepth = 4096
norandommap = true
runtime = 2
time_based = true
[axes]
numjobs = [1, 3]
[variants]
one = {}
other = { iodepth = 2048 }
[curve]
loads = ["50%", "80%"]
[judge]
baseline = "one"
metrics = { "read.iops" = "5%" }
show = ["read.resp_mean_us"]
repeats = { min = 8, max = 8, stop = "never" }
"#;

const QUEUE: &str = include_str!("../../../../../examples/machines/one-server.toml");

#[track_caller]
fn curve(text: &str) -> LabPlan {
    let files = Files::new(&[("q.toml", QUEUE)]);
    LabPlan::parse("t.toml", text, &[], &files).unwrap_or_else(|problems| panic!("{problems:#?}"))
}

/// Returns a run that reads as fast as it is asked to, or as its jobs, variant and repeat can.
fn obedient(slot: &Slot) -> RunOutcome {
    let of_repeat = [900, 1100, 1003][slot.repeat as usize % 3];
    let maximum = of_repeat + 5000 * slot.variant as u64 + slot.cell as u64;
    reads(slot.load.and_then(|load| load.rate).unwrap_or(maximum))
}

fn asked(outcome: &LabOutcome) -> Vec<Option<u64>> {
    let cells = outcome.results.cells.iter();
    cells.map(|cell| cell.asked).collect()
}

#[test]
fn loads_are_shares_of_the_baselines_median_maximum() {
    let plan = curve(CURVE);
    let mut slots: Vec<Slot> = Vec::new();
    let mut executor = Told(|slot: &Slot| {
        slots.push(*slot);
        obedient(slot)
    });
    let outcome = run_lab(&plan, &mut executor, &mut NoJournal, &mut |_| {}).unwrap();
    // Of three jobs, each gets the nearest whole third of 503 and of 804.8.
    let want = [None, Some(502), Some(802), None, Some(504), Some(804)];
    assert_eq!(asked(&outcome), want);
    let is_max = |slot: &Slot| slot.load.is_none();
    assert_eq!(slots.len(), 96);
    assert!(slots[..32].iter().all(is_max), "all repeats at the maximum");
    assert!(!slots[32..].iter().any(is_max), "then all others");
    let mut numbers: Vec<u64> = slots
        .iter()
        .map(|slot| crate::order::run_number(&plan, slot))
        .collect();
    assert!(numbers.is_sorted(), "{numbers:?}");
    numbers.dedup();
    assert_eq!((numbers.len(), numbers[95]), (96, 95));
}

#[test]
fn a_queue_answers_a_share_of_its_load_as_theory_says() {
    let text = CURVE
        .replace("other = { iodepth = 2048 }\n", "")
        .replace("[1, 3]", "[1]")
        .replace("metrics = { \"read.iops\" = \"5%\" }\n", "")
        .replace("show = [", "show = [\"read.iops\", ")
        .replace("min = 8, max = 8", "min = 2, max = 2");
    let plan = curve(&text);
    let files = Files::new(&[]);
    let mut executor = Modelled::new(&plan, &files, &|| 0, 2);
    let outcome = run_lab(&plan, &mut executor, &mut NoJournal, &mut |_| {}).unwrap();
    let table = lab_table(&plan, &outcome);
    crate::table::check::check_table(&table);
    let json: serde_json::Value = serde_json::from_str(&table.json()).unwrap();
    for (at, share) in [(1, 0.5), (2, 0.8)] {
        let row = &json["rows"][at];
        let number = |key: &str| {
            let value = row[key].as_f64();
            value.unwrap_or_else(|| panic!("no {key}: {row}"))
        };
        let near = |value: f64, want: f64, share: f64| {
            assert!((value / want - 1.0).abs() < share, "{value}, {want}: {row}");
        };
        // Exponential service of 100 µs on average: 10,000 IOPS at most.
        near(number("asked_iops"), 10_000.0 * share, 0.03);
        near(number("one_read_iops"), number("asked_iops"), 0.05);
        let mean_us = 1e6 / (10_000.0 - number("asked_iops"));
        near(number("one_read_resp_mean_us"), mean_us, 0.25);
    }
    assert!(json["rows"][0]["asked_iops"].is_null());
}

#[test]
fn a_cut_curve_asks_the_same_loads() {
    let plan = curve(CURVE);
    let whole = run_lab(&plan, &mut Told(obedient), &mut NoJournal, &mut |_| {}).unwrap();
    for stop_after in 0..96 {
        let mut notes = Notes::default();
        let mut left = stop_after;
        let mut executor = Told(|slot: &Slot| {
            if left == 0 {
                return Err(RunFailure::Interrupted);
            }
            left -= 1;
            obedient(slot)
        });
        let cut = run_lab(&plan, &mut executor, &mut notes, &mut |_| {}).unwrap();
        assert!(cut.is_interrupted);
        // The history does not keep the load of a run.
        for run in &mut notes.earlier {
            run.slot.load = None;
        }
        let again = run_lab(&plan, &mut Told(obedient), &mut notes, &mut |_| {}).unwrap();
        assert_eq!(again.results.cells, whole.results.cells, "{stop_after}");
        assert_eq!(again.judgements, whole.judgements, "{stop_after}");
        assert_eq!(notes.earlier.len(), 96, "{stop_after}");
    }
}

#[test]
fn only_the_rate_must_be_known_at_the_maximum() {
    let plan = curve(&CURVE.replace("\"read.iops\"", "\"read.resp_p99\""));
    let outcome = run_lab(&plan, &mut Told(obedient), &mut NoJournal, &mut |_| {}).unwrap();
    let cells = &outcome.results.cells;
    assert_eq!((cells[0].failure.as_ref(), cells[0].repeats), (None, 8));
    let why = cells[1].failure.as_deref().unwrap_or_default();
    assert!(why.contains("no `read.resp_p99"), "{why}");
    let mut idle = Told(|_: &Slot| reads(0));
    let outcome = run_lab(&plan, &mut idle, &mut NoJournal, &mut |_| {}).unwrap();
    let why = outcome.results.cells[0].failure.as_deref();
    assert!(why.unwrap_or_default().contains("no `all.iops`"), "{why:?}");
}

#[test]
fn cells_whose_maximum_failed_are_not_run() {
    let plan = curve(CURVE);
    let mut executor = Told(|slot: &Slot| match slot.cell {
        0 => Err(RunFailure::Failed("no medium".into())),
        1 | 2 => panic!("cell {} runs without a load", slot.cell),
        _ => obedient(slot),
    });
    let outcome = run_lab(&plan, &mut executor, &mut NoJournal, &mut |_| {}).unwrap();
    let cells = &outcome.results.cells;
    let failures = cells.iter().map(|cell| cell.failure.as_deref());
    let [max, share] = [Some("no medium"), Some("no maximum: no medium")];
    let want = [max, share, share, None, None, None];
    assert_eq!(failures.collect::<Vec<_>>(), want);
    assert_eq!((cells[1].repeats, cells[5].repeats), (0, 8));
}

#[test]
fn what_a_closed_loop_cannot_have_is_no_comparison() {
    let text = CURVE.replace(
        "\"read.iops\" = \"5%\"",
        "\"read.iops\" = \"5%\", \"read.resp_p99\" = \"5%\"",
    );
    let plan = curve(&text.replace("min = 8, max = 8", "min = 9, max = 9"));
    // Six cells have rates, the four at shares have response times, too.
    assert_eq!(plan.comparisons(), 6 + 4);
    let outcome = run_lab(&plan, &mut Told(obedient), &mut NoJournal, &mut |_| {}).unwrap();
    let judgements = &outcome.judgements;
    assert_eq!(judgements.len(), 10);
    let of_resp = judgements.iter().filter(|one| one.metric == 1);
    let cells: Vec<usize> = of_resp.map(|one| one.cell).collect();
    assert_eq!(cells, [1, 2, 4, 5]);
}

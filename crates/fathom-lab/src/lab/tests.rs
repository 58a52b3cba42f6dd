//! Labs in virtual time, and with executors that fail as told.

mod curve;
mod precondition;
mod shared_failure;
mod steady;
mod warm_up;

use fathom_record::{DirectionRecord, JobRecord, RECORD_VERSION, Record};
use fathom_stats::Verdict;

use super::*;
use crate::lab_file::tests::Files;
use crate::lab_plan::LabPlan;
use crate::order::Slot;

const LAB: &str = r#"
[lab]
name = "t"
machine = "m.toml"
seed = 7
[job]
rw = "randread"
bs = "4k"
filename = "/dev/sdx"
runtime = "100ms"
time_based = true
[axes]
iodepth = [1, 2]
[variants]
fast = { machine = { "device.constant.latency_us" = 100 } }
slow = { machine = { "device.constant.latency_us" = 110 } }
[judge]
baseline = "fast"
metrics = { "read.iops" = "2%" }
repeats = { min = 8, max = 12, stop = "narrow" }
"#;

pub(super) const MACHINE: &str = r#"
[[device]]
names = ["/dev/sdx"]
model = "constant"
capacity_gib = 1
[device.constant]
latency_us = 100
[noise]
seed = 3
between_runs_percent = 1.0
"#;

#[track_caller]
pub(super) fn plan(text: &str) -> LabPlan {
    let files = Files::new(&[("m.toml", MACHINE)]);
    LabPlan::parse("t.toml", text, &[], &files).unwrap_or_else(|problems| panic!("{problems:#?}"))
}

pub(super) fn simulated_with(
    plan: &LabPlan,
    threads: usize,
    journal: &mut dyn Journal,
) -> Result<LabOutcome, LabFailure> {
    let files = Files::new(&[]);
    let mut executor = Modelled::new(plan, &files, &|| 0, threads);
    run_lab(plan, &mut executor, journal, &mut |_| {})
}

#[track_caller]
fn simulated(plan: &LabPlan, threads: usize) -> LabOutcome {
    simulated_with(plan, threads, &mut NoJournal).unwrap()
}

#[test]
fn a_slower_machine_is_worse_with_any_number_of_cores() {
    let plan = plan(LAB);
    let outcome = simulated(&plan, 1);
    assert!(!outcome.is_interrupted);
    let verdicts: Vec<Verdict> = outcome.judgements.iter().map(|one| one.verdict).collect();
    assert_eq!(verdicts, [Verdict::Worse; 2]);
    let ratio = outcome.judgements[0].ratio.unwrap().middle;
    assert!((ratio - 100.0 / 110.0).abs() < 0.02, "{ratio}");
    let table = lab_table(&plan, &outcome);
    crate::table::check::check_table(&table);
    let same = lab_table(&plan, &simulated(&plan, 3));
    assert_eq!(table.json(), same.json());
    assert!(table.text(120).contains("worse"), "{}", table.text(120));
}

#[test]
fn published_figures_stand_in_the_unit_of_ours_and_each_table_has_keys() {
    let text = LAB
        .replace("fast = {", "\"\" = {")
        .replace(
            "slow = { machine = { \"device.constant.latency_us\" = 110 } }\n",
            "",
        )
        .replace(
            "baseline = \"fast\"\nmetrics = { \"read.iops\" = \"2%\" }\n",
            "",
        )
        .replace(
            "[variants]\n\"\" = { machine = { \"device.constant.latency_us\" = 100 } }\n",
            "",
        );
    let published = |unit: &str, column: &str| {
        format!(
            "[[published]]\nfile = \"p.csv\"\nkeys = {{ iodepth = \"depth\" }}\n\
             columns = [{{ metric = \"read.clat_mean{unit}\", column = \"{column}\" }}]\n"
        )
    };
    let text = text + &published("", "ns") + &published("_ms", "ms");
    let csv = "depth,ns,ms\n1,50000,0.2\n2,50000,0.2\n";
    let files = Files::new(&[("m.toml", MACHINE), ("p.csv", csv)]);
    let plan = LabPlan::parse("t.toml", &text, &[], &files);
    let plan = plan.unwrap_or_else(|problems| panic!("{problems:#?}"));
    let table = lab_table(&plan, &simulated(&plan, 1));
    let json: serde_json::Value = serde_json::from_str(&table.json()).unwrap();
    let row = &json["rows"][0];
    // In the unit of the last table: ours is 0.1 ms, so the errors are +100 % and -50 %.
    let near = |key: &str, want: f64, most: f64| {
        let value = row[key]
            .as_f64()
            .unwrap_or_else(|| panic!("no {key}: {row}"));
        assert!((value - want).abs() <= most, "{key}: {value}");
    };
    near("read_clat_mean_ms", 0.1, 0.001);
    near("read_clat_mean_ms_error_percent", 100.0, 5.0);
    near("read_clat_mean_ms_published_2", 0.2, 0.001);
    near("read_clat_mean_ms_error_percent_2", -50.0, 5.0);
    let note = table
        .notes
        .iter()
        .find(|note| note.contains("(published 2)"));
    assert!(
        note.is_some_and(|note| note.contains("2 published figures")),
        "{:?}",
        table.notes
    );
}

#[test]
fn the_same_machine_is_no_change() {
    let plan = plan(LAB).all_baseline();
    let outcome = simulated(&plan, 2);
    let is_claim = |one: &crate::Judgement| matches!(one.verdict, Verdict::Better | Verdict::Worse);
    assert!(
        !outcome.judgements.iter().any(is_claim),
        "{:?}",
        outcome.judgements
    );
}

/// Executor whose runs end as a function says.
pub(super) struct Told<F>(pub(super) F);

impl<F: FnMut(&Slot) -> RunOutcome> Executor for Told<F> {
    fn execute(&mut self, repeats: &[Repeat], watch: &mut dyn FnMut(&Slot, RunStep)) {
        for repeat in repeats {
            for slot in &repeat.slots {
                watch(slot, RunStep::Begins);
                let outcome = (self.0)(slot);
                let (is_error, is_end) = (
                    outcome.is_err(),
                    matches!(outcome, Err(RunFailure::Interrupted)),
                );
                watch(slot, RunStep::Ended(Box::new(outcome)));
                if is_end {
                    return;
                }
                if is_error {
                    break;
                }
            }
        }
    }
}

/// Returns a run with these reads in a second.
pub(super) fn reads(count: u64) -> RunOutcome {
    let mut job = JobRecord::default();
    job.directions.read = DirectionRecord {
        ios: count,
        runtime_ms: 1000,
        ..DirectionRecord::default()
    };
    Ok(RunDone::of_record(Record {
        version: RECORD_VERSION,
        jobs: vec![job],
        ..Record::default()
    }))
}

/// Journal that notes what it is told.
#[derive(Default)]
pub(super) struct Notes {
    pub(super) earlier: Vec<EarlierRun>,
    pub(super) lines: Vec<String>,
}

impl Journal for Notes {
    fn earlier(&mut self) -> Result<Vec<EarlierRun>, JournalError> {
        Ok(self.earlier.clone())
    }

    fn plan(&mut self, slots: &[Slot]) -> Result<(), JournalError> {
        self.lines.push(format!("plan {}", slots.len()));
        Ok(())
    }

    fn begin(&mut self, _slot: &Slot) -> Result<(), JournalError> {
        Ok(())
    }

    fn finish(&mut self, slot: &Slot, done: &RunDone) -> Result<(), JournalError> {
        self.earlier.push(EarlierRun {
            slot: *slot,
            done: done.clone(),
        });
        Ok(())
    }

    fn fail(&mut self, _slot: &Slot, why: &str) -> Result<(), JournalError> {
        self.lines.push(format!("fail {why}"));
        Ok(())
    }

    fn cut(&mut self, cell: usize, repeat: u32) -> Result<(), JournalError> {
        self.earlier
            .retain(|run| (run.slot.cell, run.slot.repeat) != (cell, repeat));
        self.lines.push(format!("cut {cell} {repeat}"));
        Ok(())
    }

    fn judge(
        &mut self,
        _judgements: &[crate::Judgement],
        is_complete: bool,
    ) -> Result<(), JournalError> {
        self.lines.push(format!("complete {is_complete}"));
        Ok(())
    }
}

#[test]
fn errors_repeat_the_repeat_then_end_the_cell() {
    let plan = plan(LAB);
    let (mut first_failures, mut runs) = (1, 0);
    let mut executor = Told(|slot: &Slot| {
        runs += 1;
        match slot.cell {
            1 if slot.variant == 1 => Err(RunFailure::Failed("no medium".into())),
            _ if first_failures > 0 => {
                first_failures -= 1;
                Err(RunFailure::Failed("once".into()))
            }
            _ => reads(1000),
        }
    });
    let mut notes = Notes::default();
    let outcome = run_lab(&plan, &mut executor, &mut notes, &mut |_| {}).unwrap();
    let cells = &outcome.results.cells;
    assert_eq!(cells[0].failure, None);
    // Equal values are narrow as soon as anybody looks.
    assert_eq!((cells[0].repeats, cells[0].is_narrow), (8, true));
    assert_eq!(cells[1].failure.as_deref(), Some("no medium"));
    assert_eq!(cells[1].repeats, 0);
    assert_eq!(
        notes
            .lines
            .iter()
            .filter(|line| *line == "fail no medium")
            .count(),
        3
    );
    assert_eq!(notes.lines.last().unwrap(), "complete true");
    assert_eq!(outcome.judgements[1].verdict, Verdict::Unclear);
}

#[test]
fn an_interrupted_lab_goes_on_and_ends_as_if_it_had_not_been() {
    let plan = plan(LAB);
    // Different values, so that cells differ in when they stop.
    let value = |slot: &Slot| {
        let wiggle = (slot.seed % 97) * (1 + slot.cell as u64) + 31 * slot.variant as u64;
        reads(1000 + wiggle * u64::from(slot.repeat % 5))
    };
    let whole = run_lab(&plan, &mut Told(value), &mut NoJournal, &mut |_| {}).unwrap();
    let runs = whole.results.cells.iter().map(|cell| cell.repeats * 2);
    for stop_after in 0..runs.sum() {
        let mut notes = Notes::default();
        let mut left = stop_after;
        let mut executor = Told(|slot: &Slot| {
            if left == 0 {
                return Err(RunFailure::Interrupted);
            }
            left -= 1;
            value(slot)
        });
        let cut = run_lab(&plan, &mut executor, &mut notes, &mut |_| {}).unwrap();
        assert!(cut.is_interrupted && cut.continues);
        assert_eq!(notes.lines.last().unwrap(), "complete false");
        let again = run_lab(&plan, &mut Told(value), &mut notes, &mut |_| {}).unwrap();
        assert_eq!(again.judgements, whole.judgements, "{stop_after}");
        assert_eq!(again.results.cells, whole.results.cells, "{stop_after}");
    }
}

#[test]
fn a_lab_that_keeps_nothing_is_told_to_start_over() {
    let plan = plan(LAB);
    let mut executor = Told(|_: &Slot| Err(RunFailure::Interrupted));
    let cut = run_lab(&plan, &mut executor, &mut NoJournal, &mut |_| {}).unwrap();
    let notes = lab_table(&plan, &cut).notes;
    let want = "interrupted: some runs are missing; the same command starts over";
    assert_eq!(notes.last().unwrap(), want);
}

#[test]
fn a_reason_is_told_once_with_all_its_cells() {
    let text = LAB.replace("min = 8, max = 12", "min = 8, max = 8");
    let plan = plan(&text);
    // So noisy that no number of repeats shows a change of 2 %.
    let value = |slot: &Slot| {
        let is_high = (slot.repeat as usize + slot.variant).is_multiple_of(2);
        let mut run = reads(if is_high { 1500 } else { 1000 })?;
        run.disturbance = Some("a fan stopped".into());
        Ok(run)
    };
    let outcome = run_lab(&plan, &mut Told(value), &mut NoJournal, &mut |_| {}).unwrap();
    let notes = lab_table(&plan, &outcome).notes;
    let unclear: Vec<&String> = notes
        .iter()
        .filter(|note| note.starts_with("unclear"))
        .collect();
    let want = "unclear: even 100 repeats, the most allowed, would not settle it; make runs \
                longer, or tolerate more: iodepth=1, slow, read.iops; iodepth=2, slow, read.iops";
    assert_eq!(unclear, [want]);
    let disturbed = "32 runs were disturbed, and are included in the medians".to_owned();
    assert!(notes.contains(&disturbed), "{notes:#?}");
}

#[test]
fn a_run_without_a_judged_metric_fails_its_cell() {
    let plan = plan(&LAB.replace("\"read.iops\"", "\"read.clat_p99\""));
    let mut executor = Told(|_: &Slot| reads(1000));
    let outcome = run_lab(&plan, &mut executor, &mut NoJournal, &mut |_| {}).unwrap();
    let why = outcome.results.cells[0].failure.as_deref().unwrap();
    assert!(why.contains("no `read.clat_p99"), "{why}");
}

//! Labs all of whose first runs fail with the same error.

use super::*;

/// Runs a lab of two cells, and returns the numbers of runs and of failed cells, and the lines that
/// the user saw.
fn ran(run: &mut dyn FnMut(usize, &Slot) -> RunOutcome) -> (usize, usize, Vec<String>) {
    let plan = plan(LAB);
    let (mut runs, mut lines) = (0, Vec::new());
    let mut executor = Told(|slot: &Slot| {
        runs += 1;
        run(runs, slot)
    });
    let mut tell = |event: LabEvent<'_>| match event {
        LabEvent::RetryOfOne { why, .. } => lines.push(format!("one again: {why}")),
        LabEvent::AllFailed { why } => lines.push(format!("all: {why}")),
        LabEvent::Retry { why, .. } => lines.push(format!("again: {why}")),
        LabEvent::Failed { why, .. } => lines.push(format!("failed: {why}")),
        _ => {}
    };
    let outcome = run_lab(&plan, &mut executor, &mut NoJournal, &mut tell).unwrap();
    let cells = outcome.results.cells.iter();
    let failed = cells.filter(|cell| cell.failure.is_some()).count();
    let table = lab_table(&plan, &outcome);
    if failed == 2 {
        let note = "failed: all 2 cells: no such CPU".to_owned();
        assert!(table.notes.contains(&note), "{:?}", table.notes);
    }
    (runs, failed, lines)
}

fn failed(why: &str) -> RunOutcome {
    Err(RunFailure::Failed(why.into()))
}

#[test]
fn a_lab_whose_first_runs_all_fail_alike_ends_after_one_more() {
    let (runs, cells, lines) = ran(&mut |_, _| failed("no such CPU"));
    assert_eq!((runs, cells), (3, 2));
    assert_eq!(lines, ["one again: no such CPU", "all: no such CPU"]);
    // What cannot succeed is not tried again.
    let (runs, cells, lines) = ran(&mut |_, _| Err(RunFailure::Hopeless("no such CPU".into())));
    assert_eq!((runs, cells), (2, 2));
    assert_eq!(lines, ["all: no such CPU"]);
}

#[test]
fn a_fault_that_passes_and_one_of_a_single_cell_end_no_lab() {
    // The first two runs fail, and from then on all goes well.
    let (_, cells, lines) = ran(&mut |run, _| match run {
        1 | 2 => failed("busy"),
        _ => reads(1000),
    });
    assert_eq!(cells, 0);
    assert_eq!(lines, ["one again: busy", "again: busy"]);
    let (_, cells, lines) = ran(&mut |_, slot| match slot.cell {
        1 => failed("too deep"),
        _ => reads(1000),
    });
    assert_eq!(cells, 1);
    assert_eq!(
        lines,
        ["again: too deep", "again: too deep", "failed: too deep"]
    );
}

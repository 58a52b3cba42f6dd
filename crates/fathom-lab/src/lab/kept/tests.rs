//! Labs that are read again.

use super::*;
use crate::lab::lab_table;
use crate::lab::stored::tests::{LAB, Place};
use crate::lab::tests::{MACHINE, plan, simulated_with};
use crate::lab_file::tests::Files;

/// Reads a lab; no file of it is there any more.
fn read(place: &Place) -> Result<KeptLab, KeptLabError> {
    let history = History::open_read_only(place.path()).unwrap();
    let lab = history.lab_named("killed").unwrap();
    KeptLab::read(history, lab, &Files::new(&[]))
}

#[test]
fn a_lab_is_read_as_it_ended() {
    let place = Place::new("read");
    let plan = plan(LAB);
    let outcome = simulated_with(&plan, 1, &mut place.lab(&plan)).unwrap();
    let content = place.content();
    let kept = read(&place).unwrap();
    let table = lab_table(&kept.plan, &kept.outcome);
    assert_eq!(table.json(), lab_table(&plan, &outcome).json());
    assert!(!kept.outcome.is_interrupted && kept.entry.state == "done");
    assert!(kept.circumstances["program"] == ["fathom test"]);
    assert_eq!(place.content(), content);
}

#[test]
fn comments_that_look_like_files_do_not_hide_a_lab() {
    let machine = format!("{MACHINE}\n# job: x\n# a comment\n# job: y");
    let comments = "# a comment\n# bs=4k\n".repeat(300);
    let text = format!("{LAB}{comments}# the end\n");
    let files = Files::new(&[("m.toml", &machine)]);
    let plan = LabPlan::parse("t.toml", &text, &[], &files).unwrap();
    let place = Place::new("comments");
    let outcome = simulated_with(&plan, 1, &mut place.lab(&plan)).unwrap();
    let kept = read(&place).unwrap();
    let table = lab_table(&kept.plan, &kept.outcome);
    assert_eq!(table.json(), lab_table(&plan, &outcome).json());
}

#[test]
fn an_unfinished_lab_is_an_interrupted_one() {
    let place = Place::new("unfinished");
    let plan = plan(LAB);
    let mut killed = place.killed(&plan, 40);
    simulated_with(&plan, 1, &mut killed).unwrap_err();
    drop(killed);
    let content = place.content();
    let kept = read(&place).unwrap();
    assert!(kept.outcome.is_interrupted && kept.outcome.results.repeats(0) > 0);
    assert_eq!(place.content(), content, "nothing is written");
}

#[test]
fn a_cell_that_failed_says_why() {
    let place = Place::new("failed");
    let plan = plan(LAB);
    let mut lab = place.lab(&plan);
    let slots = crate::order::order(&plan, 0);
    lab.plan(&slots).unwrap();
    lab.fail(&slots[0], "the disk burnt").unwrap();
    drop(lab);
    let kept = read(&place).unwrap();
    assert!(kept.outcome.is_interrupted);
    let cells = kept.outcome.results.cells.iter();
    let failures: Vec<Option<&str>> = cells.map(|cell| cell.failure.as_deref()).collect();
    let mut want = [None; 2];
    want[slots[0].cell] = Some("the disk burnt");
    assert_eq!(failures, want);
}

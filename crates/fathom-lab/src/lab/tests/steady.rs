//! Labs in rounds until a cell is steady.

use super::*;
use crate::lab_file::tests::problems;

const ROUNDS: &str = r#"
[lab]
name = "t"
[job]
rw = "randread"
filename = "/dev/sdx"
runtime = "1s"
[axes]
iodepth = [1, 2]
[variants]
one = {}
other = { bs = "8k" }
[judge]
baseline = "one"
[rounds]
most = 9
window = 3
metric = "read.iops"
cell = { iodepth = 2 }
"#;

/// Returns the rate of a drive that halves its speed with each round until `until` rounds are done.
fn slowing(slot: &Slot, until: u32) -> u64 {
    let left = until.saturating_sub(slot.repeat);
    (1000 << left) + 7 * u64::from(slot.repeat % 2)
}

fn run(plan: &LabPlan, until: u32, journal: &mut dyn Journal) -> LabOutcome {
    let mut executor = Told(|slot: &Slot| reads(slowing(slot, until)));
    run_lab(plan, &mut executor, journal, &mut |_| {}).unwrap()
}

#[test]
fn rounds_end_with_the_first_steady_window_which_alone_counts() {
    let plan = plan(ROUNDS);
    let outcome = run(&plan, 3, &mut NoJournal);
    let steadiness = outcome.steadiness.as_ref().unwrap();
    assert!(steadiness.is_reached());
    assert_eq!(steadiness.rounds, (4, 6));
    let values = &outcome.results.values;
    let counted = values.of(0, 1, 0).iter().map(|(repeat, _)| *repeat);
    assert_eq!(counted.collect::<Vec<_>>(), [3, 4, 5]);
    assert_eq!(values.of_all(0, 1, 0).len(), 6);
    let table = lab_table(&plan, &outcome);
    crate::table::check::check_table(&table);
    let text = table.text(120);
    assert!(
        text.contains("steady after 6 rounds; rounds 4 to 6 count"),
        "{text}"
    );
    assert!(!text.contains("not steady"), "{text}");
}

#[test]
fn a_drive_that_is_never_steady_is_told_and_its_table_marked() {
    let plan = plan(ROUNDS);
    let outcome = run(&plan, 30, &mut NoJournal);
    assert_eq!(outcome.steadiness.as_ref().unwrap().rounds, (7, 9));
    assert_eq!(outcome.results.repeats(0), 3);
    let text = lab_table(&plan, &outcome).text(120);
    assert!(text.contains("(not steady)"), "{text}");
    assert!(text.contains("not steady within 9 rounds"), "{text}");
}

#[test]
fn each_variant_has_to_be_steady_in_that_cell_alone() {
    let plan = plan(ROUNDS);
    let run = |slows: fn(&Slot) -> bool| {
        let mut executor = Told(|slot: &Slot| match slows(slot) {
            true => reads(slowing(slot, 30)),
            false => reads(1000),
        });
        let outcome = run_lab(&plan, &mut executor, &mut NoJournal, &mut |_| {});
        outcome.unwrap().steadiness.unwrap()
    };
    let other = run(|slot| slot.variant == 1);
    assert!(!other.is_reached());
    assert!(other.sides[0].is_steady && !other.sides[1].is_steady);
    let other_cell = run(|slot| slot.cell == 0);
    assert!(other_cell.is_reached());
    assert_eq!(other_cell.rounds, (1, 3));
}

#[test]
fn rounds_go_on_after_an_interruption_as_if_there_had_been_none() {
    let plan = plan(ROUNDS);
    let whole = run(&plan, 3, &mut NoJournal);
    for stop_after in 0..24 {
        let (mut notes, mut left) = (Notes::default(), stop_after);
        let mut executor = Told(|slot: &Slot| {
            if left == 0 {
                return Err(RunFailure::Interrupted);
            }
            left -= 1;
            reads(slowing(slot, 3))
        });
        let cut = run_lab(&plan, &mut executor, &mut notes, &mut |_| {}).unwrap();
        assert!(cut.is_interrupted);
        assert!(!lab_table(&plan, &cut).text(120).contains("(not steady)"));
        let again = run(&plan, 3, &mut notes);
        assert_eq!(again.steadiness, whole.steadiness, "{stop_after}");
        assert_eq!(again.results.values, whole.results.values, "{stop_after}");
    }
}

#[test]
fn rounds_end_when_the_cell_that_tells_is_given_up() {
    let plan = plan(ROUNDS);
    let mut attempts = 0;
    let mut executor = Told(|slot: &Slot| match slot.cell {
        1 => {
            attempts += 1;
            Err(RunFailure::Failed("no medium".into()))
        }
        _ => reads(1000),
    });
    let outcome = run_lab(&plan, &mut executor, &mut NoJournal, &mut |_| {}).unwrap();
    assert_eq!((attempts, outcome.results.cells[0].repeats), (3, 1));
    assert!(!outcome.steadiness.as_ref().unwrap().is_reached());
    let text = lab_table(&plan, &outcome).text(200);
    let want = "not steady: read.iops, iodepth=2, one: fewer than 3 rounds";
    assert!(text.contains(want), "{text}");
}

#[test]
fn a_modelled_drive_is_steady_at_once_and_percentiles_are_those_of_the_window() {
    let text = ROUNDS
        .replace("name = \"t\"", "name = \"t\"\nmachine = \"m.toml\"")
        .replace("\"1s\"", "\"100ms\"\ntime_based = true")
        .replace("= \"one\"", "= \"one\"\nshow = [\"read.clat_p50\"]");
    let plan = plan(&text);
    let outcome = simulated(&plan, 2);
    assert!(outcome.steadiness.as_ref().unwrap().is_reached());
    let median = outcome.results.merged(0, 0, 0).unwrap();
    assert!((95_000.0..105_000.0).contains(&median), "{median}");
}

#[test]
fn repeats_beside_rounds_are_refused() {
    let rounds = "[rounds]\nmetric = \"read.iops\"\nwindow = 3\n";
    let found = problems(&format!("[judge]\nrepeats = {{ max = 12 }}\n{rounds}"));
    assert_eq!(found.len(), 1, "{found:?}");
    let want = ":8:11: `repeats` has no effect beside `[rounds]`";
    assert!(found[0].contains(want), "{found:?}");
    let judged = "[variants]\na = {}\nb = { bs = \"8k\" }\n[judge]\nbaseline = \"a\"\nmetrics = { \
                  \"read.iops\" = \"2%\" }\n";
    let found = problems(&format!("{judged}{rounds}"));
    assert_eq!(found.len(), 1, "{found:?}");
    let want = "| set `window = 6`, or compare less";
    assert!(found[0].contains(want), "{found:?}");
}

#[test]
fn the_plan_says_how_long_rounds_go_on() {
    let text = plan(ROUNDS).overview(&Files::new(&[]), &[]);
    let want = "rounds    at most 9, until read.iops in iodepth=2 is steady in the last 3: range \
                20 %, slope 10 % of the mean\n";
    assert!(text.contains(want), "{text}");
}

//! Labs that are killed, and continue.

use std::path::PathBuf;

use super::*;
use crate::lab::tests::{Told, plan, reads, simulated_with};
use crate::lab::{LabOutcome, RunFailure, lab_table, run_lab};

/// Database of one test, removed at its end.
pub(in crate::lab) struct Place(PathBuf);

impl Place {
    pub(in crate::lab) fn new(name: &str) -> Self {
        let name = format!("fathom-lab-test-{}-{name}.db", std::process::id());
        let place = Self(std::env::temp_dir().join(name));
        place.remove();
        place
    }

    pub(in crate::lab) fn path(&self) -> &std::path::Path {
        &self.0
    }

    pub(in crate::lab) fn lab<'a>(&self, plan: &'a LabPlan) -> StoredLab<'a> {
        let history = History::open(&self.0).unwrap();
        StoredLab::begin(history, plan, "fathom test", false).unwrap()
    }

    /// Returns the journal of a process that is killed after `steps_left` steps.
    pub(in crate::lab) fn killed<'a>(
        &self,
        plan: &'a LabPlan,
        steps_left: u32,
    ) -> impl Journal + 'a {
        Killed {
            journal: self.lab(plan),
            steps_left,
        }
    }

    /// Returns what the database has of runs that were not cut, and the verdicts.
    pub(in crate::lab) fn content(&self) -> Vec<Vec<String>> {
        let history = History::open_read_only(&self.0).unwrap();
        let queries = [
            "SELECT cell, variant, repeat, place, role, state, seed, plan, machine, subject, note
             FROM run WHERE state <> 'cut' ORDER BY cell, repeat, variant",
            "SELECT r.cell, r.variant, r.repeat, grp, direction, metric, value FROM measure
             JOIN run r ON r.id = run WHERE r.state <> 'cut'
             ORDER BY r.cell, r.repeat, r.variant, grp, direction, metric",
            "SELECT cell, variant, metric, estimate, low, high, p, p_holm, repeats, word
             FROM verdict ORDER BY cell, variant, metric",
            "SELECT name, state, seed FROM lab",
        ];
        queries
            .iter()
            .flat_map(|query| history.sql(query).unwrap().rows)
            .map(|row| row.iter().map(|value| format!("{value:?}")).collect())
            .collect()
    }

    fn remove(&self) {
        for end in ["", "-wal", "-shm"] {
            let mut path = self.0.clone().into_os_string();
            path.push(end);
            let _not_there = std::fs::remove_file(path);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Journal of a process that is killed after a number of steps.
struct Killed<J> {
    journal: J,
    steps_left: u32,
}

impl<J> Killed<J> {
    fn step(&mut self) -> Result<&mut J, JournalError> {
        if self.steps_left == 0 {
            return Err(JournalError("killed".into()));
        }
        self.steps_left -= 1;
        Ok(&mut self.journal)
    }
}

impl<J: Journal> Journal for Killed<J> {
    fn earlier(&mut self) -> Result<Vec<EarlierRun>, JournalError> {
        self.step()?.earlier()
    }

    fn plan(&mut self, slots: &[Slot]) -> Result<(), JournalError> {
        self.step()?.plan(slots)
    }

    fn begin(&mut self, slot: &Slot) -> Result<(), JournalError> {
        self.step()?.begin(slot)
    }

    fn finish(&mut self, slot: &Slot, done: &RunDone) -> Result<(), JournalError> {
        self.step()?.finish(slot, done)
    }

    fn fail(&mut self, slot: &Slot, why: &str) -> Result<(), JournalError> {
        self.step()?.fail(slot, why)
    }

    fn cut(&mut self, cell: usize, repeat: u32) -> Result<(), JournalError> {
        self.step()?.cut(cell, repeat)
    }

    fn judge(&mut self, judgements: &[Judgement], is_complete: bool) -> Result<(), JournalError> {
        self.step()?.judge(judgements, is_complete)
    }
}

/// A lab of two cells and eight repeats.
pub(in crate::lab) const LAB: &str = r#"
[lab]
name = "killed"
machine = "m.toml"
[job]
rw = "randread"
bs = "4k"
filename = "/dev/sdx"
number_ios = 50
[axes]
iodepth = [1, 2]
[variants]
fast = {}
slow = { machine = { "device.constant.latency_us" = 105 } }
[judge]
baseline = "fast"
metrics = { "read.iops" = "2%" }
repeats = { min = 8, max = 10, stop = "narrow" }
"#;

#[test]
fn a_lab_killed_at_any_step_ends_as_if_it_had_not_been() {
    let plan = plan(LAB);
    let text = |outcome: &LabOutcome| lab_table(&plan, outcome).json();
    let whole = Place::new("whole");
    let want = simulated_with(&plan, 1, &mut whole.lab(&plan)).unwrap();
    let (want, content) = (text(&want), whole.content());
    let mut kills = 0;
    for steps in (0..).step_by(3) {
        let place = Place::new("killed");
        let mut killed = place.killed(&plan, steps);
        let ended = simulated_with(&plan, 1, &mut killed);
        drop(killed);
        if ended.is_ok() {
            break;
        }
        kills += 1;
        let outcome = simulated_with(&plan, 2, &mut place.lab(&plan)).unwrap();
        assert_eq!(text(&outcome), want, "{steps}");
        assert_eq!(place.content(), content, "{steps}");
    }
    assert!(kills > 10, "{kills}");
    // A finished lab has nothing left to run.
    let again = simulated_with(&plan, 1, &mut whole.lab(&plan)).unwrap();
    assert_eq!(text(&again), want);
}

#[test]
fn showing_a_finished_lab_changes_nothing() {
    let place = Place::new("shown");
    let plan = plan(LAB);
    let _ended = simulated_with(&plan, 1, &mut place.lab(&plan)).unwrap();
    let mut lab = place.lab(&plan);
    let changes = |lab: &StoredLab<'_>| {
        let ended = lab.history().sql("SELECT ended_ms FROM lab").unwrap().rows;
        let verdicts = lab
            .history()
            .sql("SELECT count(*) FROM verdict")
            .unwrap()
            .rows;
        (ended, verdicts)
    };
    lab.history.end_lab(lab.lab, 1).unwrap();
    let before = changes(&lab);
    let _shown = simulated_with(&plan, 1, &mut lab).unwrap();
    assert_eq!(changes(&lab), before);
}

#[test]
fn a_lab_that_ended_with_an_abandoned_cell_has_nothing_left_to_run() {
    let place = Place::new("abandoned");
    let plan = plan(LAB);
    let text = |outcome: &LabOutcome| lab_table(&plan, outcome).json();
    let mut burnt = Told(|slot: &Slot| match (slot.cell, slot.repeat) {
        (1, 2) => Err(RunFailure::Hopeless("the disk burnt".into())),
        _ => reads(1000 + u64::from(slot.repeat)),
    });
    let first = run_lab(&plan, &mut burnt, &mut place.lab(&plan), &mut |_| {}).unwrap();
    let mut none = Told(|slot: &Slot| panic!("{slot:?} runs again"));
    let again = run_lab(&plan, &mut none, &mut place.lab(&plan), &mut |_| {}).unwrap();
    let cells = &again.results.cells;
    assert_eq!(cells[1].failure.as_deref(), Some("the disk burnt"));
    assert_eq!((cells[0].failure.as_ref(), cells[1].repeats), (None, 2));
    assert_eq!(text(&again), text(&first));
}

#[test]
fn a_changed_file_is_refused_until_the_lab_has_ended() {
    let place = Place::new("changed");
    let (old, new) = (plan(LAB), plan(&LAB.replace("105", "106")));
    drop(place.lab(&old));
    let open = || History::open(&place.0).unwrap();
    match StoredLab::begin(open(), &new, "fathom test", false) {
        Err(StoredLabError::Changed { earlier, now }) => {
            assert!(earlier.contains("105") && now.contains("106"));
        }
        other => panic!("{other:?}"),
    }
    StoredLab::begin(open(), &new, "fathom test", true).unwrap();
}

#[test]
fn a_lab_runs_in_one_process_at_a_time() {
    let place = Place::new("locked");
    let link = Place::new("locked-link");
    let (plan, other) = (plan(LAB), plan(&LAB.replace("killed", "another")));
    let begin = |path, plan, fresh| {
        let history = History::open(path).unwrap();
        StoredLab::begin(history, plan, "fathom test", fresh)
    };
    let first = place.lab(&plan);
    std::os::unix::fs::symlink(&place.0, &link.0).unwrap();
    for (path, fresh) in [(&place.0, false), (&place.0, true), (&link.0, false)] {
        match begin(path, &plan, fresh) {
            Err(StoredLabError::Locked(why)) => {
                let process = format!("process {}\nhint: ", std::process::id());
                assert!(why.contains(&process), "{why}");
            }
            other => panic!("{other:?}"),
        }
    }
    drop(begin(&place.0, &other, false).unwrap());
    drop(first);
    begin(&place.0, &plan, false).unwrap();
}

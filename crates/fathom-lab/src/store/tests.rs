use std::sync::atomic::{AtomicU32, Ordering};

use fathom_record::Measure;

use super::*;
use crate::finished::RunEnd;

/// A directory for one test, removed at its end.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        // Relaxed: only the number matters.
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("fathom-history-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

fn lab<'a>(name: &'a str, text: &'a str, cells: &'a [String]) -> LabRow<'a> {
    LabRow {
        name,
        file: "lab.toml",
        text,
        seed: u64::MAX,
        cells,
        now_ms: 1_000,
    }
}

fn planned(cell: u32, variant: &str, seed: u64) -> PlannedRun {
    PlannedRun {
        cell,
        variant: variant.into(),
        repeat: 0,
        place: 1,
        role: "measure".into(),
        seed,
    }
}

pub(super) fn finished(value: f64) -> FinishedRun {
    let measure = |metric: &str, value: f64| Measure {
        group: String::new(),
        direction: "write",
        metric: metric.into(),
        value,
        low: None,
        high: Some(2.0 * value),
    };
    FinishedRun {
        wall_ms: 8_000,
        plan: "[job]\nrw=write\n".into(),
        machine: "{}".into(),
        subject: r#"{"program":"fathom"}"#.into(),
        end: RunEnd::Done,
        note: None,
        measures: vec![measure("bw", value), measure("lat_max", f64::NAN)],
        record: Some("{\"version\":1}".into()),
        tags: vec![("commit".into(), "abc".into())],
    }
}

#[test]
fn a_lab_is_planned_run_and_found_again() {
    let folder = Folder::new();
    let path = folder.file("deep/history.db");
    let cells = ["{\"numjobs\":1}".to_owned(), "{\"numjobs\":2}".to_owned()];
    let mut history = History::open(&path).unwrap();
    let row = lab("tags", "seed = 1", &cells);
    let LabStart::Begun(id) = history.begin_lab(&row, false).unwrap() else {
        panic!("not begun");
    };
    let plan = [planned(0, "plain", u64::MAX), planned(1, "fair", 7)];
    let runs = history.plan_runs(id, &plan).unwrap();
    history.begin_run(runs[0], 2_000).unwrap();
    history.finish_run(runs[0], &finished(3.5)).unwrap();
    history.begin_run(runs[1], 3_000).unwrap();
    drop(history);

    let mut history = History::open(&path).unwrap();
    assert_eq!(
        history.begin_lab(&row, false).unwrap(),
        LabStart::Resumed(id)
    );
    let found = history.runs_of(id).unwrap();
    assert_eq!(
        found.iter().map(|run| &run.planned).collect::<Vec<_>>(),
        [&plan[0], &plan[1]]
    );
    let states: Vec<RunState> = found.iter().map(|run| run.state).collect();
    assert_eq!(states, [RunState::Done, RunState::Running]);
    assert_eq!(
        (found[0].begun_ms, found[0].wall_ms),
        (Some(2_000), Some(8_000))
    );
    // NaN is not a number to keep.
    let measures = history.measures_of(id).unwrap();
    assert_eq!(measures, [(runs[0], finished(3.5).measures[0].clone())]);
    assert_eq!(
        history.record_of(runs[0]).unwrap().as_deref(),
        Some("{\"version\":1}")
    );
    history.cut_runs(&runs).unwrap();
    assert!(history.measures_of(id).unwrap().is_empty());
    assert_eq!(history.measures_of_run(runs[0]).unwrap().len(), 1);
}

#[test]
fn the_runs_of_a_lab_are_pruned_together() {
    let folder = Folder::new();
    let mut history = History::open(&folder.file("history.db")).unwrap();
    let cells = ["{}".to_owned()];
    let row = lab("tags", "seed = 1", &cells);
    let LabStart::Begun(id) = history.begin_lab(&row, false).unwrap() else {
        panic!("not begun");
    };
    let plan = [planned(0, "plain", 1), planned(0, "fair", 2)];
    for (run, begun_ms) in history
        .plan_runs(id, &plan)
        .unwrap()
        .into_iter()
        .zip([2_000, 9_000])
    {
        history.begin_run(run, begun_ms).unwrap();
        history.finish_run(run, &finished(1.0)).unwrap();
    }
    let prune = |history: &mut History, before_ms| {
        let prune = Prune {
            before_ms,
            ..Prune::default()
        };
        let pruned = history.prune(&prune).unwrap();
        (pruned.count, pruned.kept_with_labs)
    };
    assert_eq!(prune(&mut history, u64::MAX), (0, 0), "the lab goes on");
    history.end_lab(id, 10_000).unwrap();
    assert_eq!(prune(&mut history, 2_000), (0, 0));
    assert_eq!(prune(&mut history, 9_000), (0, 1));
    assert_eq!(prune(&mut history, 9_001), (2, 0));
    assert!(history.lab_named("tags").is_err());
}

#[test]
fn a_link_to_a_history_has_the_log_of_its_file() {
    let folder = Folder::new();
    let path = folder.file("history.db");
    let mut writer = History::open(&path).unwrap();
    let _run = writer.add_run(&finished(1.0), "run", 1, None).unwrap();
    let link = folder.file("link.db");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let file = place::without_links(&link).unwrap();
    assert!(place::has_logged(&file) && !place::has_logged(&link));
    let error = History::open_immutable(&link, &file).unwrap_err();
    assert!(
        matches!(error.problem(), HistoryProblem::LogUnreadable),
        "{error}"
    );
}

#[test]
fn a_changed_lab_bars_the_way_until_it_begins_afresh() {
    let folder = Folder::new();
    let mut history = History::open(&folder.file("history.db")).unwrap();
    let first = history
        .begin_lab(&lab("a", "seed = 1", &[]), false)
        .unwrap();
    let LabStart::Begun(first) = first else {
        panic!("not begun");
    };
    let changed = lab("a", "seed = 2", &[]);
    let text = "seed = 1".to_owned();
    assert_eq!(
        history.begin_lab(&changed, false).unwrap(),
        LabStart::Changed { lab: first, text }
    );
    let second = history.begin_lab(&changed, true).unwrap();
    assert_ne!(second, LabStart::Begun(first));
    assert!(matches!(second, LabStart::Begun(_)), "{second:?}");
    // A finished lab does not bar the way of a changed one.
    let LabStart::Begun(second) = second else {
        panic!("not begun");
    };
    history.end_lab(second, 5_000).unwrap();
    let third = history
        .begin_lab(&lab("a", "seed = 3", &[]), false)
        .unwrap();
    assert!(matches!(third, LabStart::Begun(_)), "{third:?}");
    assert_eq!(LabStart::Begun(history.lab_named("a").unwrap()), third);
}

#[test]
fn a_lab_file_that_begins_another_one_is_not_it() {
    let folder = Folder::new();
    let mut history = History::open(&folder.file("history.db")).unwrap();
    let mut begin = |name: &str, text: &str| {
        let LabStart::Begun(id) = history.begin_lab(&lab(name, text, &[]), false).unwrap() else {
            panic!("not begun");
        };
        id
    };
    let whole = begin("a", "seed = 1\n");
    let with_argument = begin("b", "seed = 2\n\n# DEV=/dev/sdx");
    begin("c", "seed = 1\nseed = 3\n");
    let of_text = |text: &str| history.lab_of_text(text).unwrap();
    assert_eq!(of_text("seed = 1\n"), Some(whole));
    assert_eq!(of_text("seed = 2\n"), Some(with_argument));
    assert_eq!(of_text("seed ="), None);
    assert_eq!(of_text(""), None);
}

#[test]
fn names_are_text_everywhere() {
    let folder = Folder::new();
    let mut history = History::open(&folder.file("history.db")).unwrap();
    let long = "x".repeat(10_000);
    for name in [
        "'; drop table run",
        "</script><script>",
        "a\0\u{1b}[2J\n",
        &long,
    ] {
        let cells = [name.to_owned()];
        let row = lab(name, name, &cells);
        let LabStart::Begun(id) = history.begin_lab(&row, false).unwrap() else {
            panic!("not begun");
        };
        let runs = history.plan_runs(id, &[planned(0, name, 0)]).unwrap();
        let mut ended = finished(1.0);
        ended.tags = vec![(name.into(), name.into())];
        ended.measures[0].group = name.into();
        history.finish_run(runs[0], &ended).unwrap();
        assert_eq!(history.runs_of(id).unwrap()[0].planned.variant, name);
        assert_eq!(history.measures_of(id).unwrap()[0].1.group, name);
        assert_eq!(history.lab_named(name).unwrap(), id);
    }
}

/// Opens a file that is not a history of this version, and checks that it is unchanged.
#[track_caller]
fn refuse(content: &[u8], want: &str) {
    let folder = Folder::new();
    let path = folder.file("history.db");
    fs::write(&path, content).unwrap();
    for error in [
        History::open(&path).unwrap_err(),
        History::open_read_only(&path).unwrap_err(),
    ] {
        assert!(error.to_string().contains(want), "{error}");
        assert!(error.hint().is_some(), "{error}");
    }
    assert_eq!(fs::read(&path).unwrap(), content);
}

fn history_bytes(numbers: &str) -> Vec<u8> {
    let folder = Folder::new();
    let path = folder.file("history.db");
    let history = History::open(&path).unwrap();
    history.connection.execute_batch(numbers).unwrap();
    drop(history);
    fs::read(&path).unwrap()
}

#[test]
fn other_files_are_refused_untouched() {
    refuse(b"not a database", "not a SQLite database");
    refuse(&history_bytes("PRAGMA user_version = 3"), "version 3");
    refuse(
        &history_bytes("PRAGMA application_id = 7"),
        "another program",
    );
    refuse(
        &history_bytes("PRAGMA application_id = 0; PRAGMA user_version = 0"),
        "another program",
    );
    let whole = history_bytes("");
    refuse(&whole[..50], "not a SQLite database");
    refuse(&whole[..whole.len() / 2], "truncated or damaged");
}

#[test]
fn a_copy_takes_the_place_of_nothing() {
    let folder = Folder::new();
    let history = History::open(&folder.file("history.db")).unwrap();
    let link = folder.file("link");
    std::os::unix::fs::symlink(folder.file("no/such/file"), &link).unwrap();
    let error = history.backup(&link).unwrap_err();
    assert!(matches!(error.problem(), HistoryProblem::Exists), "{error}");
    assert!(link.symlink_metadata().is_ok(), "the link is gone");
}

#[test]
fn a_copy_into_a_directory_that_is_not_there_names_it() {
    let folder = Folder::new();
    let history = History::open(&folder.file("history.db")).unwrap();
    let error = history.backup(&folder.file("no/b.db")).unwrap_err();
    let want = format!("{}: No such file", folder.file("no").display());
    assert!(error.to_string().contains(&want), "{error}");
    assert_eq!(error.hint(), None);
}

#[test]
fn a_history_that_was_moved_is_noticed() {
    let folder = Folder::new();
    let (path, moved) = (folder.file("history.db"), folder.file("moved.db"));
    let history = History::open(&path).unwrap();
    history.check_place().unwrap();
    let is_moved = || {
        let error = history.check_place().unwrap_err();
        matches!(error.problem(), HistoryProblem::Moved)
    };
    fs::rename(&path, &moved).unwrap();
    assert!(is_moved());
    fs::copy(&moved, &path).unwrap();
    assert!(is_moved(), "another file took its place");
    fs::rename(&moved, &path).unwrap();
    history.check_place().unwrap();
}

#[test]
fn a_file_that_is_not_there_cannot_be_read() {
    let folder = Folder::new();
    let error = History::open_read_only(&folder.file("history.db")).unwrap_err();
    assert!(error.to_string().contains("no history"), "{error}");
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0);
}

#[test]
fn a_locked_history_is_told_and_unchanged() {
    let folder = Folder::new();
    let path = folder.file("history.db");
    let holder = History::open(&path).unwrap();
    let mut waiting = History::open(&path).unwrap();
    holder.connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    waiting.connection.busy_timeout(Duration::ZERO).unwrap();
    let error = waiting.add_run(&finished(1.0), "run", 1, None).unwrap_err();
    assert!(matches!(error.problem(), HistoryProblem::Locked), "{error}");
    assert!(error.hint().is_some());
    // Readers do not wait for a writer.
    let reader = History::open_read_only(&path).unwrap();
    assert!(reader.list(&RunSelection::default()).unwrap().is_empty());
    holder.connection.execute_batch("ROLLBACK").unwrap();
    assert!(waiting.add_run(&finished(1.0), "run", 1, None).is_ok());
}

#[test]
fn runs_are_ordered_by_time_and_then_by_number() {
    let folder = Folder::new();
    let mut history = History::open(&folder.file("history.db")).unwrap();
    // The first one has no time, and the third was added later than it began.
    for begun_ms in [0, 3_000_000, 2_000_000, 3_000_000] {
        history
            .add_run(&finished(1.0), "run", begun_ms, None)
            .unwrap();
    }
    let all = RunSelection::default();
    let last = RunSelection {
        last: 1,
        ..RunSelection::default()
    };
    let ids = |rows: Vec<RunRow>| rows.iter().map(|row| row.id.0).collect::<Vec<_>>();
    assert_eq!(ids(history.list(&all).unwrap()), [4, 2, 3, 1]);
    assert_eq!(ids(history.list(&last).unwrap()), [4]);
    let measured = history.measured(&all).unwrap();
    let begun: Vec<_> = measured.iter().map(|run| run.begun_ms).collect();
    assert_eq!(
        begun,
        [None, Some(2_000_000), Some(3_000_000), Some(3_000_000)]
    );
}

#[test]
fn a_number_is_given_once() {
    let folder = Folder::new();
    let mut history = History::open(&folder.file("history.db")).unwrap();
    let numbers = |history: &mut History, plan: &str| {
        let ended = FinishedRun {
            plan: plan.into(),
            ..finished(1.0)
        };
        let run = history
            .add_run(&ended, "run", 1_000, None)
            .unwrap()
            .unwrap();
        let row = history.show(run).unwrap();
        (run.0, row.plan_id, row.machine_id)
    };
    assert_eq!(numbers(&mut history, "[a]"), (1, Some(1), Some(1)));
    assert_eq!(numbers(&mut history, "[b]"), (2, Some(2), Some(1)));
    let all = Prune {
        before_ms: 2_000,
        ..Prune::default()
    };
    assert_eq!(history.prune(&all).unwrap().count, 2);
    assert_eq!(numbers(&mut history, "[a]"), (3, Some(3), Some(2)));
    assert_eq!(history.prune(&all).unwrap().count, 1);
    let cells = ["{}".to_owned()];
    let row = lab("tags", "seed = 1", &cells);
    let LabStart::Begun(id) = history.begin_lab(&row, false).unwrap() else {
        panic!("not begun");
    };
    let plan = [planned(0, "plain", 1), planned(0, "fair", 2)];
    let runs = history.plan_runs(id, &plan).unwrap();
    assert_eq!(runs, [RunId(4), RunId(5)]);
}

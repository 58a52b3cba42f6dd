use super::tests::{Folder, finished};
use super::*;
use crate::finished::RunEnd;
use crate::import::import;

fn filled(folder: &Folder) -> History {
    let mut history = History::open(&folder.file("history.db")).unwrap();
    for number in 0..5_u32 {
        let mut ended = finished(f64::from(number));
        ended.tags = vec![("parity".into(), (number % 2).to_string())];
        let begun_ms = 1_700_000_000_000 + u64::from(number) * 1000;
        history
            .add_run(&ended, "run", begun_ms, None)
            .unwrap()
            .unwrap();
    }
    history
}

#[test]
fn runs_are_listed_from_the_newest_and_selected() {
    let folder = Folder::new();
    let history = filled(&folder);
    let ids = |selection: &RunSelection| -> Vec<i64> {
        history
            .list(selection)
            .unwrap()
            .iter()
            .map(|row| row.id.0)
            .collect()
    };
    assert_eq!(ids(&RunSelection::default()), [5, 4, 3, 2, 1]);
    let last = RunSelection {
        last: 2,
        ..RunSelection::default()
    };
    assert_eq!(ids(&last), [5, 4]);
    let odd = RunSelection {
        tags: vec![("parity".into(), "1".into())],
        measured: true,
        ..RunSelection::default()
    };
    assert_eq!(ids(&odd), [4, 2]);
    let of_lab = RunSelection {
        lab: Some("' OR 1".into()),
        ..RunSelection::default()
    };
    assert!(ids(&of_lab).is_empty());
    let row = history.show(RunId(1)).unwrap();
    assert_eq!(row.begun.as_deref(), Some("2023-11-14 22:13:20"));
    assert_eq!(row.tags, r#"{"parity":"0"}"#);
    let error = history.show(RunId(9)).unwrap_err().to_string();
    assert_eq!(error, "history: no run 9");
}

#[test]
fn queries_read_and_nothing_else() {
    let folder = Folder::new();
    let path = filled(&folder).path().to_owned();
    let before = fs::read(&path).unwrap();
    let history = History::open_read_only(&path).unwrap();
    let answer = history
        .sql("SELECT count(*) AS n, NULL, x'00ff' FROM run;")
        .unwrap();
    assert_eq!(answer.columns[0], "n");
    assert_eq!(
        serde_json::to_string(&answer.rows).unwrap(),
        r#"[[5,null,"00ff"]]"#
    );
    #[track_caller]
    fn refuse(history: &History, query: &str, want: &str) {
        let error = history.sql(query).unwrap_err().to_string();
        assert!(error.contains(want), "{query}: {error}");
    }
    refuse(&history, "DELETE FROM run", "only queries that read");
    refuse(&history, "DROP TABLE run", "only queries that read");
    refuse(
        &history,
        "PRAGMA user_version = 9",
        "only queries that read",
    );
    refuse(&history, "SELECT 1; DELETE FROM run", "one statement");
    refuse(&history, "SELEKT", "syntax error");
    let unknown = history.sql("SELECT * FROM runs").unwrap_err();
    assert!(
        unknown
            .hint()
            .is_some_and(|hint| hint.contains("sqlite_schema"))
    );
    assert!(history.sql("SELECT sql FROM sqlite_schema").is_ok());
    refuse(&history, "", "only queries that read");
    let other = folder.file("other.db");
    refuse(
        &history,
        &format!("VACUUM INTO '{}'", other.display()),
        "only queries that read",
    );
    refuse(
        &history,
        &format!("ATTACH '{}' AS x", other.display()),
        "only queries that read",
    );
    assert!(!other.exists());
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn exported_runs_are_imported_once() {
    let folder = Folder::new();
    let history = filled(&folder);
    let mut text = String::new();
    let write = |value: &serde_json::Value| {
        text.push_str(&format!("{value}\n"));
        Ok::<(), HistoryError>(())
    };
    history.export(&RunSelection::default(), write).unwrap();
    let mut other = History::open(&folder.file("other.db")).unwrap();
    let runs = import(&text).unwrap();
    assert_eq!(runs.len(), 5);
    for _ in 0..2 {
        for run in &runs {
            let _added = other.add_imported(run).unwrap();
        }
    }
    let copies = other.list(&RunSelection::default()).unwrap();
    let uuids = |rows: &[RunRow]| rows.iter().map(|row| row.uuid.clone()).collect::<Vec<_>>();
    assert_eq!(
        uuids(&copies),
        uuids(&history.list(&RunSelection::default()).unwrap())
    );
    assert_eq!(
        other.finished(&copies[0]).unwrap(),
        history.finished(&history.show(RunId(5)).unwrap()).unwrap()
    );
}

/// It is shown.
#[test]
fn a_run_that_was_cut_is_no_measurement() {
    let folder = Folder::new();
    let mut history = History::open(&folder.file("history.db")).unwrap();
    let cut = FinishedRun {
        end: RunEnd::Cut,
        note: Some("interrupted".into()),
        ..finished(1.0)
    };
    let run = history.add_run(&cut, "run", 1_000, None).unwrap().unwrap();
    let measured = RunSelection {
        measured: true,
        ..RunSelection::default()
    };
    assert_eq!(history.list(&measured).unwrap().len(), 0);
    assert_eq!(history.show(run).unwrap().state, "cut");
    // A comparison counts it, without its numbers.
    let compared = history.measured(&RunSelection::default()).unwrap();
    assert_eq!(compared.len(), 1);
    assert_eq!(compared[0].run.end, RunEnd::Cut);
    assert!(compared[0].run.measures.is_empty() && compared[0].run.record.is_none());
}

#[test]
fn runs_that_failed_or_were_cut_are_left_out_of_a_series() {
    let folder = Folder::new();
    let mut history = History::open(&folder.file("history.db")).unwrap();
    for (begun_ms, end) in (1..).zip([RunEnd::Done, RunEnd::Cut, RunEnd::Done, RunEnd::Failed]) {
        let ended = FinishedRun {
            end,
            ..finished(1.0)
        };
        let _run = history.add_run(&ended, "run", begun_ms, None).unwrap();
    }
    let metric = fathom_record::MetricName::parse("write.bw").unwrap();
    let series = history.series(&metric, SeriesSelection::default()).unwrap();
    let [series] = &series[..] else {
        panic!("{series:?}");
    };
    assert_eq!(series.points.len(), 2);
    assert_eq!(
        (series.left_out, series.not_done, series.left_out_last),
        (2, 2, 1)
    );
}

#[test]
fn runs_that_did_not_end_well_are_exported_with_their_state() {
    let folder = Folder::new();
    let mut history = History::open(&folder.file("history.db")).unwrap();
    for (end, begun_ms) in [(RunEnd::Failed, 1), (RunEnd::Cut, 2), (RunEnd::Done, 3)] {
        let ended = FinishedRun {
            end,
            note: Some("why".into()),
            ..finished(1.0)
        };
        let _run = history.add_run(&ended, "run", begun_ms, None).unwrap();
    }
    let mut other = History::open(&folder.file("other.db")).unwrap();
    let mut text = String::new();
    let write = |value: &serde_json::Value| {
        text.push_str(&format!("{value}\n"));
        Ok::<(), HistoryError>(())
    };
    history.export(&RunSelection::default(), write).unwrap();
    for run in import(&text).unwrap() {
        let _added = other.add_imported(&run).unwrap();
    }
    let copies = other.list(&RunSelection::default()).unwrap();
    let states: Vec<&str> = copies.iter().map(|run| run.state.as_str()).collect();
    assert_eq!(states, ["done", "cut", "failed"]);
    assert!(copies.iter().all(|run| run.note.as_deref() == Some("why")));
}

#[test]
fn imported_runs_of_a_lab_have_series_of_their_own() {
    let folder = Folder::new();
    let mut history = History::open(&folder.file("history.db")).unwrap();
    let place = |variant: &str| {
        [
            ("lab", "k"),
            ("axes", "{\"iodepth\":1}"),
            ("variant", variant),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
    };
    for number in 0..6_u64 {
        let mut run = import_of(finished(1.0), number + 1);
        run.run.tags = match number % 3 {
            // Without the others it is a label of the user.
            0 => place("a")[..1].to_vec(),
            1 => place("a").to_vec(),
            _ => place("b").to_vec(),
        };
        let _added = history.add_imported(&run).unwrap().unwrap();
    }
    let metric = fathom_record::MetricName::parse("write.bw").unwrap();
    let series = history.series(&metric, SeriesSelection::default()).unwrap();
    let of: Vec<_> = series.iter().map(|one| one.of.lab.clone()).collect();
    let in_lab = |variant: &str| {
        let [lab, axes, variant] = place(variant).map(|(_, value)| value);
        Some((lab, axes, variant))
    };
    assert_eq!(of, [None, in_lab("a"), in_lab("b")]);
    assert!(series.iter().all(|one| one.points.len() == 2));
}

fn import_of(run: FinishedRun, begun_ms: u64) -> crate::import::ImportedRun {
    crate::import::ImportedRun {
        uuid: Some(begun_ms.to_string()),
        begun_ms: Some(begun_ms),
        repeat: None,
        run,
        notes: Vec::new(),
    }
}

#[test]
fn old_runs_are_pruned_with_what_nothing_else_needs() {
    let folder = Folder::new();
    let mut history = filled(&folder);
    let mut prune = Prune {
        before_ms: 1_700_000_002_000,
        records_only: true,
        dry_run: true,
    };
    assert_eq!(history.prune(&prune).unwrap().count, 2);
    assert!(history.record_of(RunId(1)).unwrap().is_some());
    prune.dry_run = false;
    assert_eq!(history.prune(&prune).unwrap().count, 2);
    assert!(history.record_of(RunId(1)).unwrap().is_none());
    assert_eq!(history.measures_of_run(RunId(1)).unwrap().len(), 1);
    prune.records_only = false;
    assert_eq!(history.prune(&prune).unwrap().count, 2);
    assert_eq!(history.list(&RunSelection::default()).unwrap().len(), 3);
    prune.before_ms = u64::MAX;
    assert_eq!(history.prune(&prune).unwrap().count, 3);
    let left = "SELECT (SELECT count(*) FROM plan) + (SELECT count(*) FROM machine)
        + (SELECT count(*) FROM measure) + (SELECT count(*) FROM tag)";
    assert_eq!(history.sql(left).unwrap().rows, [[serde_json::json!(0)]]);
}

#[test]
fn runs_without_a_time_are_as_old_as_the_next_one() {
    let folder = Folder::new();
    let mut history = History::open(&folder.file("history.db")).unwrap();
    let runs = [("run", 0), ("import", 1000), ("run", 9000), ("run", 0)];
    for (number, (role, begun_ms)) in (0..).zip(runs) {
        let ended = finished(f64::from(number));
        let _run = history.add_run(&ended, role, begun_ms, None).unwrap();
    }
    let listed = history.list(&RunSelection::default()).unwrap();
    let times = listed.iter().map(|run| (run.begun_ms, run.begun.is_some()));
    let times: Vec<_> = times.collect();
    assert_eq!(
        times.iter().filter(|one| **one == (None, false)).count(),
        2,
        "{times:?}"
    );
    let mut count = |before_ms| {
        let prune = Prune {
            before_ms,
            dry_run: true,
            ..Prune::default()
        };
        history.prune(&prune).unwrap().count
    };
    assert_eq!(count(9000), 1, "the imported one");
    assert_eq!(count(9001), 3);
    assert_eq!(count(u64::MAX), 3, "nothing came after the last");
}

#[test]
fn a_backup_is_a_history_and_replaces_nothing() {
    let folder = Folder::new();
    let history = filled(&folder);
    let copy = folder.file("copy.db");
    history.backup(&copy).unwrap();
    let copied = History::open_read_only(&copy).unwrap();
    let all = RunSelection::default();
    assert_eq!(copied.list(&all).unwrap(), history.list(&all).unwrap());
    assert!(
        history
            .backup(&copy)
            .unwrap_err()
            .to_string()
            .contains("already")
    );
    let nowhere = history.backup(&folder.file("no/folder.db"));
    assert!(nowhere.is_err());
}

use super::schema::{MIGRATIONS, migrate};
use super::tests::{Folder, finished};
use super::*;

/// Returns the tables and indexes of a history.
fn tables(history: &History) -> Vec<(String, String)> {
    let select = "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name";
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    history.rows(select, [], read).unwrap()
}

/// Creates a file of version 1 from its dump.
fn version_1(folder: &Folder) -> PathBuf {
    let path = folder.file("history.db");
    let connection = Connection::open(&path).unwrap();
    let dump = include_str!("../../tests/history/version-1.sql");
    connection.execute_batch(dump).unwrap();
    path
}

#[test]
fn version_1_is_migrated_to_what_a_fresh_file_has() {
    let folder = Folder::new();
    let old = History::open(&version_1(&folder)).unwrap();
    let fresh = History::open(&folder.file("fresh.db")).unwrap();
    assert_eq!(tables(&old), tables(&fresh));
    assert_eq!(tables(&old).len(), 10 + 5 + 3);
    let numbers = "SELECT a.application_id, u.user_version
        FROM pragma_application_id a, pragma_user_version u";
    assert_eq!(old.sql(numbers).unwrap(), fresh.sql(numbers).unwrap());
    // Nothing is lost.
    let run = old.show(RunId(1)).unwrap();
    assert_eq!(run.tags, r#"{"commit":"1a2b'3c"}"#);
    let ended = old.finished(&run).unwrap();
    assert_eq!(ended.measures.len(), 2);
    assert_eq!(ended.record.as_deref(), Some(r#"{"version":1,"jobs":[]}"#));
    let lab = old.lab_named("tags").unwrap();
    let runs = old.runs_of(lab).unwrap();
    assert_eq!(runs[0].planned.seed, u64::MAX - 1);
    assert_eq!(runs[1].state, RunState::Planned);
    let broken = old
        .sql("SELECT count(*) FROM pragma_foreign_key_check")
        .unwrap();
    assert_eq!(broken.rows, [[serde_json::json!(0)]]);
}

#[test]
fn version_1_is_read_as_it_is() {
    let folder = Folder::new();
    let path = version_1(&folder);
    let before = fs::read(&path).unwrap();
    let old = History::open_read_only(&path).unwrap();
    assert_eq!(old.list(&RunSelection::default()).unwrap().len(), 3);
    assert_eq!(old.measures_of_run(RunId(1)).unwrap().len(), 2);
    drop(old);
    assert_eq!(fs::read(&path).unwrap(), before);
    // Its runs keep their numbers, and the next one goes on from there, whatever is removed.
    let mut history = History::open(&path).unwrap();
    assert!(folder.file("history.db.version-1").exists());
    let remove = "DELETE FROM run WHERE id = 3";
    history.connection.execute_batch(remove).unwrap();
    let added = history.add_run(&finished(1.0), "run", 1, None).unwrap();
    assert_eq!(added, Some(RunId(4)));
}

#[test]
fn a_migration_copies_the_file_first_and_is_whole_or_nothing() {
    let folder = Folder::new();
    let path = version_1(&folder);
    let mut connection = Connection::open(&path).unwrap();
    let fails = "ALTER TABLE run ADD COLUMN host TEXT; INSERT INTO nowhere VALUES (1);";
    let error = migrate(&mut connection, &path, &[MIGRATIONS[0], fails]).unwrap_err();
    assert!(error.to_string().contains("nowhere"), "{error}");
    let copy = folder.file("history.db.version-1");
    assert_eq!(
        History::open_read_only(&copy)
            .unwrap()
            .show(RunId(1))
            .unwrap()
            .id,
        RunId(1)
    );
    // Still version 1, without the column.
    drop(History::open_read_only(&path).unwrap());

    let works = "ALTER TABLE run ADD COLUMN host TEXT;";
    let all = [MIGRATIONS[0], MIGRATIONS[1], works];
    migrate(&mut connection, &path, &all).unwrap();
    assert!(folder.file("history.db.version-1.1").exists());
    let error = History::open(&path).unwrap_err();
    assert!(
        error.to_string().contains("version 3 of the tables"),
        "{error}"
    );
}

#[test]
fn threads_that_create_the_file_together_find_one() {
    let folder = Folder::new();
    let path = folder.file("history.db");
    std::thread::scope(|scope| {
        for number in 0..8 {
            let path = &path;
            scope.spawn(move || {
                let mut history = History::open(path).unwrap();
                let added = history.add_run(&finished(f64::from(number)), "run", 1, None);
                added.unwrap().unwrap();
            });
        }
    });
    let history = History::open_read_only(&path).unwrap();
    assert_eq!(history.list(&RunSelection::default()).unwrap().len(), 8);
}

#[test]
fn a_full_disk_and_a_lock_are_told_and_leave_nothing_behind() {
    let folder = Folder::new();
    let path = folder.file("history.db");
    let mut history = History::open(&path).unwrap();
    let pages = history
        .sql("SELECT page_count FROM pragma_page_count")
        .unwrap();
    let limit = format!("PRAGMA max_page_count = {}", pages.rows[0][0]);
    let unlimited = "PRAGMA max_page_count = 1000000";
    let read = |history: &History, pragma: &str| {
        history
            .connection
            .query_row(pragma, [], |row| row.get::<_, i64>(0))
            .unwrap()
    };
    read(&history, &limit);
    let mut large = finished(1.0);
    large.plan = "x".repeat(100_000);
    let error = history.add_run(&large, "run", 1, None).unwrap_err();
    assert!(matches!(error.problem(), HistoryProblem::Full), "{error}");
    assert!(error.to_string().contains("no space left"), "{error}");
    assert!(history.list(&RunSelection::default()).unwrap().is_empty());
    read(&history, unlimited);

    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    history.connection.busy_timeout(Duration::ZERO).unwrap();
    let error = history.add_run(&large, "run", 1, None).unwrap_err();
    assert!(matches!(error.problem(), HistoryProblem::Locked), "{error}");
    other.execute_batch("COMMIT").unwrap();
    assert!(history.add_run(&large, "run", 1, None).unwrap().is_some());
}

//! Tables of the history, and the migrations between their versions.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, TransactionBehavior};

use super::error::{HistoryError, HistoryProblem};
use super::place;

/// Migrations in order: the first makes version 1 of an empty file, the next version 2 of that. A
/// migration that was published never changes.
pub(super) const MIGRATIONS: [&str; 2] = [VERSION_1, VERSION_2];

/// Version of the tables that this program writes.
pub(super) const MIGRATED: i64 = MIGRATIONS.len().cast_signed() as i64;

/// First version that is read as it is: later ones add only what a writer needs.
pub(super) const READABLE: i64 = 1;

/// Reads the version of a file's tables, 0 for an empty file.
pub(super) fn check(connection: &Connection, path: &Path) -> Result<i64, HistoryError> {
    let at = HistoryError::at(path);
    // One view of the file: another process may be creating the tables.
    let view = connection.unchecked_transaction().map_err(&at)?;
    let read = |pragma: &str| view.pragma_query_value(None, pragma, |row| row.get(0));
    let application: i64 = read("application_id").map_err(&at)?;
    let version: i64 = read("user_version").map_err(&at)?;
    let tables = "SELECT count(*) FROM sqlite_schema";
    let tables: i64 = view.query_row(tables, [], |row| row.get(0)).map_err(&at)?;
    if application == 0 && tables > 0 {
        return Err(HistoryError::new(path, HistoryProblem::OfAnotherProgram));
    }
    check_numbers(path, application, version)
}

/// Checks the numbers in a file's header.
pub(super) fn check_numbers(
    path: &Path,
    application: i64,
    version: i64,
) -> Result<i64, HistoryError> {
    // Empty, or of a program that sets no numbers: its tables tell.
    if application == 0 && version == 0 {
        return Ok(0);
    }
    let problem = match application {
        APPLICATION_ID if version > MIGRATED => HistoryProblem::Newer(version),
        APPLICATION_ID if version > 0 => return Ok(version),
        _ => HistoryProblem::OfAnotherProgram,
    };
    Err(HistoryError::new(path, problem))
}

/// Brings a file to the version of the last migration. A file that has data is copied first.
pub(super) fn migrate(
    connection: &mut Connection,
    path: &Path,
    migrations: &[&str],
) -> Result<(), HistoryError> {
    let at = HistoryError::at(path);
    let mut found = version(connection).map_err(&at)?;
    if found > 0 && found < migrations.len() {
        let copy = place::plain(&free_copy_name(path, found))?;
        connection
            .execute("VACUUM INTO ?1", [copy.to_string_lossy()])
            .map_err(&at)?;
    }
    while found < migrations.len() {
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(&at)?;
        // Another process may have been faster.
        found = version(&transaction).map_err(&at)?;
        if let Some(migration) = migrations.get(found) {
            transaction.execute_batch(migration).map_err(&at)?;
            found += 1;
            let numbers =
                format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {found};");
            transaction.execute_batch(&numbers).map_err(&at)?;
        }
        transaction.commit().map_err(&at)?;
    }
    Ok(())
}

fn version(connection: &Connection) -> rusqlite::Result<usize> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok(usize::try_from(version).unwrap_or(usize::MAX))
}

/// Returns the name of the copy before a migration: `history.db.version-1`, or with a number.
fn free_copy_name(path: &Path, version: usize) -> PathBuf {
    let name = |number: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".version-{version}"));
        if number > 0 {
            name.push(format!(".{number}"));
        }
        PathBuf::from(name)
    };
    (0..)
        .map(name)
        .find(|name| !name.exists())
        .unwrap_or_else(|| name(0))
}

/// `Fthm`, in the file's header: `file` and SQLite's tools show it.
const APPLICATION_ID: i64 = 0x4674_686d;

/// Version 1. Times are milliseconds since 1970-01-01 UTC; seeds are the bits of an unsigned
/// number; `subject`, `axes` and `machine.json` are JSON, `zjson` is a zlib stream of JSON.
const VERSION_1: &str = "
CREATE TABLE plan(
    id INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL UNIQUE,
    text TEXT NOT NULL
) STRICT;
CREATE TABLE machine(
    id INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL UNIQUE,
    json TEXT NOT NULL
) STRICT;
CREATE TABLE lab(
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    file TEXT NOT NULL,
    file_sha256 TEXT NOT NULL REFERENCES plan(fingerprint),
    seed INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('running', 'done', 'abandoned')),
    begun_ms INTEGER NOT NULL,
    ended_ms INTEGER
) STRICT;
CREATE TABLE cell(
    id INTEGER PRIMARY KEY,
    lab INTEGER NOT NULL REFERENCES lab ON DELETE CASCADE,
    number INTEGER NOT NULL,
    axes TEXT NOT NULL,
    UNIQUE (lab, number)
) STRICT;
CREATE TABLE run(
    id INTEGER PRIMARY KEY,
    uuid TEXT NOT NULL UNIQUE,
    lab INTEGER REFERENCES lab ON DELETE CASCADE,
    cell INTEGER REFERENCES cell ON DELETE CASCADE,
    variant TEXT,
    repeat INTEGER,
    place INTEGER,
    role TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('planned', 'running', 'done', 'failed', 'cut')),
    seed INTEGER,
    begun_ms INTEGER,
    wall_ms INTEGER,
    plan INTEGER REFERENCES plan,
    machine INTEGER REFERENCES machine,
    subject TEXT,
    note TEXT
) STRICT;
CREATE INDEX run_comparable ON run(plan, machine, begun_ms);
CREATE INDEX run_of_lab ON run(lab, state);
CREATE INDEX run_of_cell ON run(cell);
CREATE TABLE measure(
    run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    grp TEXT NOT NULL,
    direction TEXT NOT NULL,
    metric TEXT NOT NULL,
    value REAL NOT NULL,
    low REAL,
    high REAL,
    PRIMARY KEY (run, grp, direction, metric)
) STRICT, WITHOUT ROWID;
CREATE TABLE record(
    run INTEGER PRIMARY KEY REFERENCES run ON DELETE CASCADE,
    version INTEGER NOT NULL,
    zjson BLOB NOT NULL
) STRICT;
CREATE TABLE tag(
    run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (run, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX tag_value ON tag(key, value);
CREATE TABLE verdict(
    lab INTEGER NOT NULL REFERENCES lab ON DELETE CASCADE,
    cell INTEGER NOT NULL REFERENCES cell ON DELETE CASCADE,
    variant TEXT NOT NULL,
    metric TEXT NOT NULL,
    estimate REAL,
    low REAL,
    high REAL,
    p REAL,
    p_holm REAL,
    repeats INTEGER NOT NULL,
    word TEXT NOT NULL,
    PRIMARY KEY (lab, cell, variant, metric)
) STRICT, WITHOUT ROWID;
CREATE INDEX verdict_of_cell ON verdict(cell);
";

/// Version 2: the largest number that a run, a plan or a machine ever had. A new one gets the next,
/// also after the last of them was removed: users and their scripts know runs by number.
const VERSION_2: &str = "
CREATE TABLE last_number(
    kind TEXT PRIMARY KEY,
    number INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO last_number SELECT 'run', coalesce(max(id), 0) FROM run;
INSERT INTO last_number SELECT 'plan', coalesce(max(id), 0) FROM plan;
INSERT INTO last_number SELECT 'machine', coalesce(max(id), 0) FROM machine;
CREATE TRIGGER run_number AFTER INSERT ON run BEGIN
    UPDATE last_number SET number = max(number, new.id) WHERE kind = 'run';
END;
CREATE TRIGGER plan_number AFTER INSERT ON plan BEGIN
    UPDATE last_number SET number = max(number, new.id) WHERE kind = 'plan';
END;
CREATE TRIGGER machine_number AFTER INSERT ON machine BEGIN
    UPDATE last_number SET number = max(number, new.id) WHERE kind = 'machine';
END;
";

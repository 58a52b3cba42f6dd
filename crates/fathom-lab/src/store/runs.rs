//! Runs: what an ended one leaves in the history, in one transaction.

use std::io::{Read as _, Write as _};

use fathom_record::{Measure, RECORD_VERSION, known_direction};
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use rusqlite::{OptionalExtension as _, Transaction, params};
use sha2::{Digest as _, Sha256};

use super::History;
use super::error::{HistoryError, HistoryProblem};
use super::labs::{LabId, RunId, stored};
use crate::finished::FinishedRun;

impl History {
    /// Marks a run of a lab as done and stores what it left.
    ///
    /// # Errors
    /// As [`open`](Self::open); the run stays as it was.
    pub fn finish_run(&mut self, run: RunId, ended: &FinishedRun) -> Result<(), HistoryError> {
        let zjson = compressed(ended.record.as_deref());
        self.write(|transaction| fill(transaction, run, ended, zjson.as_deref()))
    }

    /// Adds a run that belongs to no lab. With `uuid`, a run that is there already is not added:
    /// `None`.
    ///
    /// # Errors
    /// As [`open`](Self::open); nothing is added.
    pub fn add_run(
        &mut self,
        ended: &FinishedRun,
        role: &str,
        begun_ms: u64,
        uuid: Option<&str>,
    ) -> Result<Option<RunId>, HistoryError> {
        let zjson = compressed(ended.record.as_deref());
        self.write(|transaction| {
            let add = "INSERT INTO run(id, uuid, role, state, begun_ms)
                SELECT number + 1, coalesce(?1, lower(hex(randomblob(16)))), ?2, 'running', ?3
                FROM last_number WHERE kind = 'run'
                ON CONFLICT (uuid) DO NOTHING RETURNING id";
            let values = params![uuid, role, stored(begun_ms)];
            let added = transaction
                .query_row(add, values, |row| row.get(0))
                .optional()?;
            let Some(run) = added.map(RunId) else {
                return Ok(None);
            };
            fill(transaction, run, ended, zjson.as_deref()).map(|()| Some(run))
        })
    }

    /// Returns the metrics of all done runs of a lab, in the order of the runs.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn measures_of(&self, lab: LabId) -> Result<Vec<(RunId, Measure)>, HistoryError> {
        let select = "SELECT run, grp, direction, metric, value, low, high
            FROM measure JOIN run ON run.id = measure.run
            WHERE run.lab = ?1 AND run.state = 'done' ORDER BY run.id";
        self.measures(select, lab.0)
    }

    /// Returns the metrics of a run.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn measures_of_run(&self, run: RunId) -> Result<Vec<Measure>, HistoryError> {
        let select = "SELECT run, grp, direction, metric, value, low, high
            FROM measure WHERE run = ?1";
        let found = self.measures(select, run.0)?;
        Ok(found.into_iter().map(|(_, measure)| measure).collect())
    }

    /// Returns the value of a run's tag; `None` if it has no tag of that name.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn tag_of(&self, run: RunId, key: &str) -> Result<Option<String>, HistoryError> {
        let select = "SELECT value FROM tag WHERE run = ?1 AND key = ?2";
        Ok(self
            .rows(select, params![run.0, key], |row| row.get(0))?
            .pop())
    }

    /// Returns the record of a run as JSON; `None` if it left none.
    ///
    /// # Errors
    /// As [`open`](Self::open), or the record is damaged.
    pub fn record_of(&self, run: RunId) -> Result<Option<String>, HistoryError> {
        let select = "SELECT zjson FROM record WHERE run = ?1";
        let found = self.connection.query_row(select, [run.0], |row| row.get(0));
        let found: Option<Vec<u8>> = found.optional().map_err(self.failed())?;
        let damaged = |error: std::io::Error| {
            let why = format!("run {}: damaged record: {error}", run.0);
            HistoryError::new(&self.path, HistoryProblem::Record(why))
        };
        found
            .map(|zjson| inflated(&zjson).map_err(damaged))
            .transpose()
    }

    fn measures(&self, select: &str, of: i64) -> Result<Vec<(RunId, Measure)>, HistoryError> {
        let found = self.rows(select, [of], measure)?;
        // A direction that is none of ours has no place in a metric's name.
        Ok(found.into_iter().flatten().collect())
    }
}

/// Fills the row of a run.
fn fill(
    transaction: &Transaction<'_>,
    run: RunId,
    ended: &FinishedRun,
    zjson: Option<&[u8]>,
) -> rusqlite::Result<()> {
    let plan = known(transaction, "plan", "text", &ended.plan)?;
    let machine = known(transaction, "machine", "json", &ended.machine)?;
    let finish = "UPDATE run SET state = ?7, wall_ms = ?2, plan = ?3, machine = ?4,
        subject = ?5, note = ?6 WHERE id = ?1";
    transaction.execute(
        finish,
        params![
            run.0,
            stored(ended.wall_ms),
            plan,
            machine,
            ended.subject,
            ended.note,
            ended.end.word()
        ],
    )?;
    let mut add = transaction.prepare(
        "INSERT OR REPLACE INTO measure(run, grp, direction, metric, value, low, high)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    // Neither infinity nor NaN is a number to compare; the database takes NaN for a missing one.
    for one in ended.measures.iter().filter(|one| one.value.is_finite()) {
        add.execute(params![
            run.0,
            one.group,
            one.direction,
            one.metric,
            one.value,
            one.low,
            one.high
        ])?;
    }
    if let Some(zjson) = zjson {
        let add = "INSERT OR REPLACE INTO record(run, version, zjson) VALUES (?1, ?2, ?3)";
        transaction.execute(add, params![run.0, RECORD_VERSION, zjson])?;
    }
    let mut add =
        transaction.prepare("INSERT OR REPLACE INTO tag(run, key, value) VALUES (?1, ?2, ?3)")?;
    for (key, value) in &ended.tags {
        add.execute(params![run.0, key, value])?;
    }
    Ok(())
}

/// Returns the number of a text in a table of texts with fingerprints; adds it if it is new.
fn known(
    transaction: &Transaction<'_>,
    table: &str,
    column: &str,
    text: &str,
) -> rusqlite::Result<i64> {
    let fingerprint = sha256(text.as_bytes());
    let select = format!("SELECT id FROM {table} WHERE fingerprint = ?1");
    let found = transaction.query_row(&select, [&fingerprint], |row| row.get(0));
    if let Some(id) = found.optional()? {
        return Ok(id);
    }
    let add = format!(
        "INSERT INTO {table}(id, fingerprint, {column})
         SELECT number + 1, ?1, ?2 FROM last_number WHERE kind = '{table}'"
    );
    transaction.execute(&add, [fingerprint.as_str(), text])?;
    Ok(transaction.last_insert_rowid())
}

fn measure(row: &rusqlite::Row<'_>) -> rusqlite::Result<Option<(RunId, Measure)>> {
    let direction: String = row.get(2)?;
    let Some(direction) = known_direction(&direction) else {
        return Ok(None);
    };
    let measure = Measure {
        group: row.get(1)?,
        direction,
        metric: row.get(3)?,
        value: row.get(4)?,
        low: row.get(5)?,
        high: row.get(6)?,
    };
    Ok(Some((RunId(row.get(0)?), measure)))
}

/// Returns the SHA-256 of some text, in hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn compressed(json: Option<&str>) -> Option<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(json?.as_bytes()).ok()?;
    encoder.finish().ok()
}

fn inflated(zjson: &[u8]) -> std::io::Result<String> {
    let mut json = String::new();
    let mut decoder = ZlibDecoder::new(zjson).take(RECORD_BYTES_MAX);
    decoder.read_to_string(&mut json)?;
    Ok(json)
}

/// Largest record that is read: a stream of zeros must not fill the memory.
const RECORD_BYTES_MAX: u64 = 256 << 20;

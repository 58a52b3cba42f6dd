//! Labs: their order before the first run, their runs, their verdicts.

use rusqlite::{OptionalExtension as _, Params, Row, Transaction, TransactionBehavior, params};

use super::History;
use super::error::{HistoryError, HistoryProblem};
use super::runs::sha256;
use crate::finished::RunEnd;

/// Number of a lab in the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LabId(pub i64);

/// Number of a run in the history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(pub i64);

/// A lab to begin or to continue.
#[derive(Clone, Debug)]
pub struct LabRow<'a> {
    /// Name in the lab file.
    pub name: &'a str,
    /// Path of the lab file.
    pub file: &'a str,
    /// Text of the lab file, with everything that decides on its runs: a change is a change of the
    /// lab.
    pub text: &'a str,
    /// Seed of the order.
    pub seed: u64,
    /// Settings of each cell as JSON, in the order of their numbers, from 0.
    pub cells: &'a [String],
    /// Wall clock.
    pub now_ms: u64,
}

/// Outcome of [`History::begin_lab`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabStart {
    /// A new lab, without runs.
    Begun(LabId),
    /// The lab of this name and text that is in the history; it may be finished.
    Resumed(LabId),
    /// An unfinished lab of this name has another text. Nothing was changed.
    Changed {
        /// The unfinished lab.
        lab: LabId,
        /// Its text.
        text: String,
    },
}

/// A run before it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedRun {
    /// Number of its cell.
    pub cell: u32,
    /// Variant.
    pub variant: String,
    /// Repeat of the cell, from 0.
    pub repeat: u32,
    /// Place in its repeat, from 0.
    pub place: u32,
    /// Purpose: `measure`, `warm_up`, `precondition`, `probe`…
    pub role: String,
    /// Seed of the offsets.
    pub seed: u64,
}

/// A run of a lab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabRun {
    /// Its number.
    pub id: RunId,
    /// Its plan.
    pub planned: PlannedRun,
    /// State.
    pub state: RunState,
    /// Wall clock when it began.
    pub begun_ms: Option<u64>,
    /// Duration, ms.
    pub wall_ms: Option<u64>,
    /// Disturbance or failure.
    pub note: Option<String>,
}

/// State of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// Not begun.
    Planned,
    /// Started but not finished; interrupted, unless a process is running it.
    Running,
    /// Ended with numbers.
    Done,
    /// Ended with an error.
    Failed,
    /// Interrupted, or part of an interrupted repeat.
    Cut,
}

/// Verdict on a judged metric of a variant in a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct VerdictRow {
    /// Number of the cell.
    pub cell: u32,
    /// Variant, compared with the baseline.
    pub variant: String,
    /// Metric: `write.bw`.
    pub metric: String,
    /// Ratio to the baseline; `None` if there is none.
    pub estimate: Option<f64>,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end of its interval.
    pub high: Option<f64>,
    /// p value of the test.
    pub p: Option<f64>,
    /// The same, adjusted after Holm.
    pub p_holm: Option<f64>,
    /// Repeats from which it was drawn.
    pub repeats: u32,
    /// The verdict's word.
    pub word: String,
}

impl History {
    /// Begins a lab, or finds the one of the same name and text. With `fresh` it always begins, and
    /// unfinished labs of that name count as abandoned.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn begin_lab(&mut self, row: &LabRow<'_>, fresh: bool) -> Result<LabStart, HistoryError> {
        let sha256 = sha256(row.text.as_bytes());
        self.write(|transaction| {
            if fresh {
                let abandon = "UPDATE lab SET state = 'abandoned', ended_ms = ?2
                    WHERE name = ?1 AND state = 'running'";
                transaction.execute(abandon, params![row.name, stored(row.now_ms)])?;
            } else if let Some(start) = earlier(transaction, row.name, &sha256)? {
                return Ok(start);
            }
            insert(transaction, row, &sha256).map(LabStart::Begun)
        })
    }

    /// Ends a lab, when no run is left.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn end_lab(&mut self, lab: LabId, now_ms: u64) -> Result<(), HistoryError> {
        self.write(|transaction| {
            let end = "UPDATE lab SET state = 'done', ended_ms = ?2 WHERE id = ?1";
            transaction
                .execute(end, params![lab.0, stored(now_ms)])
                .map(drop)
        })
    }

    /// Returns whether a lab has ended.
    ///
    /// # Errors
    /// As [`open`](Self::open), or there is no such lab.
    pub fn has_ended(&self, lab: LabId) -> Result<bool, HistoryError> {
        let select = "SELECT state = 'done' FROM lab WHERE id = ?1";
        let found = self.connection.query_row(select, [lab.0], |row| row.get(0));
        found.map_err(self.failed())
    }

    /// Adds runs to a lab, in the order in which they are to be executed: all or none.
    ///
    /// # Errors
    /// As [`open`](Self::open), or the lab has no such cell.
    pub fn plan_runs(
        &mut self,
        lab: LabId,
        runs: &[PlannedRun],
    ) -> Result<Vec<RunId>, HistoryError> {
        self.write(|transaction| {
            let mut add = transaction.prepare(
                "INSERT INTO run(id, uuid, lab, cell, variant, repeat, place, role, state, seed)
                 SELECT last_number.number + 1, lower(hex(randomblob(16))), lab, id, ?3, ?4, ?5,
                    ?6, 'planned', ?7
                 FROM cell, last_number
                 WHERE lab = ?1 AND cell.number = ?2 AND last_number.kind = 'run'",
            )?;
            let added = runs.iter().map(|run| {
                let seed = run.seed.cast_signed();
                let values = params![
                    lab.0,
                    run.cell,
                    run.variant,
                    run.repeat,
                    run.place,
                    run.role,
                    seed
                ];
                add.insert(values).map(RunId)
            });
            added.collect()
        })
    }

    /// Returns the runs of a lab, in the order of their plan.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn runs_of(&self, lab: LabId) -> Result<Vec<LabRun>, HistoryError> {
        let select = "SELECT run.id, cell.number, variant, repeat, place, role, seed, state,
            begun_ms, wall_ms, note
            FROM run JOIN cell ON cell.id = run.cell WHERE run.lab = ?1 ORDER BY run.id";
        self.rows(select, [lab.0], lab_run)
    }

    /// Marks a run as begun.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn begin_run(&mut self, run: RunId, now_ms: u64) -> Result<(), HistoryError> {
        self.write(|transaction| {
            let begin = "UPDATE run SET state = 'running', begun_ms = ?2 WHERE id = ?1";
            transaction
                .execute(begin, params![run.0, stored(now_ms)])
                .map(drop)
        })
    }

    /// Marks a run as failed, with the reason.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn fail_run(&mut self, run: RunId, why: &str, wall_ms: u64) -> Result<(), HistoryError> {
        self.write(|transaction| {
            let fail = "UPDATE run SET state = 'failed', note = ?2, wall_ms = ?3 WHERE id = ?1";
            transaction
                .execute(fail, params![run.0, why, stored(wall_ms)])
                .map(drop)
        })
    }

    /// Marks runs as cut, such as all of a repeat that was interrupted; their numbers stay.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn cut_runs(&mut self, runs: &[RunId]) -> Result<(), HistoryError> {
        self.write(|transaction| {
            let mut cut = transaction.prepare("UPDATE run SET state = 'cut' WHERE id = ?1")?;
            runs.iter()
                .try_for_each(|run| cut.execute([run.0]).map(drop))
        })
    }

    /// Replaces the verdicts of a lab.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn put_verdicts(
        &mut self,
        lab: LabId,
        verdicts: &[VerdictRow],
    ) -> Result<(), HistoryError> {
        self.write(|transaction| {
            transaction.execute("DELETE FROM verdict WHERE lab = ?1", [lab.0])?;
            let mut add = transaction.prepare(
                "INSERT INTO verdict(lab, cell, variant, metric, estimate, low, high, p, p_holm,
                    repeats, word)
                 SELECT lab, id, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11
                 FROM cell WHERE lab = ?1 AND number = ?2",
            )?;
            verdicts.iter().try_for_each(|row| {
                let values = params![
                    lab.0,
                    row.cell,
                    row.variant,
                    row.metric,
                    row.estimate,
                    row.low,
                    row.high,
                    row.p,
                    row.p_holm,
                    row.repeats,
                    row.word
                ];
                add.execute(values).map(drop)
            })
        })
    }

    /// Returns the last lab of a name that was not abandoned.
    ///
    /// # Errors
    /// As [`open`](Self::open), or there is no such lab.
    pub fn lab_named(&self, name: &str) -> Result<LabId, HistoryError> {
        let select = "SELECT id FROM lab WHERE name = ?1 AND state <> 'abandoned'
            ORDER BY id DESC LIMIT 1";
        let found = self.connection.query_row(select, [name], |row| row.get(0));
        match found.optional().map_err(self.failed())? {
            Some(id) => Ok(LabId(id)),
            None => Err(self.not_found(format!("no lab `{name}`"))),
        }
    }

    /// Executes a write transaction.
    pub(super) fn write<T>(
        &mut self,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, HistoryError> {
        let execute = || {
            // Immediate: a lock that is asked for in the middle is not waited for.
            let behaviour = TransactionBehavior::Immediate;
            let transaction = self.connection.transaction_with_behavior(behaviour)?;
            let done = work(&transaction)?;
            transaction.commit()?;
            Ok(done)
        };
        let result = execute();
        result.map_err(self.failed())
    }

    /// Reads all rows of a query.
    pub(super) fn rows<T>(
        &self,
        select: &str,
        values: impl Params,
        of: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, HistoryError> {
        let read = || {
            let mut select = self.connection.prepare(select)?;
            let rows = select.query_map(values, of)?;
            rows.collect::<rusqlite::Result<Vec<T>>>()
        };
        read().map_err(self.failed())
    }

    pub(super) fn not_found(&self, what: String) -> HistoryError {
        HistoryError::new(&self.path, HistoryProblem::NotFound(what))
    }
}

impl RunState {
    /// Returns the word in the database.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Running => "running",
            Self::Done => RunEnd::Done.word(),
            Self::Failed => RunEnd::Failed.word(),
            Self::Cut => RunEnd::Cut.word(),
        }
    }

    fn of(word: &str) -> Self {
        match word {
            "planned" => Self::Planned,
            "running" => Self::Running,
            "done" => Self::Done,
            "failed" => Self::Failed,
            // The table permits no other word.
            _ => Self::Cut,
        }
    }
}

/// Finds the last lab of a name: the same text resumes it, another one if it is unfinished bars the
/// way.
fn earlier(
    transaction: &Transaction<'_>,
    name: &str,
    sha256: &str,
) -> rusqlite::Result<Option<LabStart>> {
    let select = "SELECT lab.id, lab.file_sha256, lab.state, plan.text
        FROM lab JOIN plan ON plan.fingerprint = lab.file_sha256
        WHERE name = ?1 AND state <> 'abandoned' ORDER BY lab.id DESC LIMIT 1";
    let found = transaction.query_row(select, [name], |row| {
        let text: (String, String, String) = (row.get(1)?, row.get(2)?, row.get(3)?);
        Ok((LabId(row.get(0)?), text))
    });
    Ok(match found.optional()? {
        Some((lab, (its, _, _))) if its == sha256 => Some(LabStart::Resumed(lab)),
        Some((lab, (_, state, text))) if state == "running" => {
            Some(LabStart::Changed { lab, text })
        }
        _ => None,
    })
}

fn insert(
    transaction: &Transaction<'_>,
    row: &LabRow<'_>,
    sha256: &str,
) -> rusqlite::Result<LabId> {
    let text = "INSERT INTO plan(id, fingerprint, text)
        SELECT number + 1, ?1, ?2 FROM last_number WHERE kind = 'plan'
        ON CONFLICT DO NOTHING";
    transaction.execute(text, [sha256, row.text])?;
    let lab = "INSERT INTO lab(name, file, file_sha256, seed, state, begun_ms)
        VALUES (?1, ?2, ?3, ?4, 'running', ?5)";
    let seed = row.seed.cast_signed();
    transaction.execute(
        lab,
        params![row.name, row.file, sha256, seed, stored(row.now_ms)],
    )?;
    let lab = transaction.last_insert_rowid();
    let mut cell =
        transaction.prepare("INSERT INTO cell(lab, number, axes) VALUES (?1, ?2, ?3)")?;
    for (number, axes) in row.cells.iter().enumerate() {
        cell.execute(params![lab, stored(number as u64), axes])?;
    }
    Ok(LabId(lab))
}

fn lab_run(row: &Row<'_>) -> rusqlite::Result<LabRun> {
    let planned = PlannedRun {
        cell: row.get(1)?,
        variant: row.get(2)?,
        repeat: row.get(3)?,
        place: row.get(4)?,
        role: row.get(5)?,
        seed: row.get::<_, i64>(6)?.cast_unsigned(),
    };
    let state: String = row.get(7)?;
    Ok(LabRun {
        id: RunId(row.get(0)?),
        planned,
        state: RunState::of(&state),
        begun_ms: row.get::<_, Option<i64>>(8)?.map(loaded),
        wall_ms: row.get::<_, Option<i64>>(9)?.map(loaded),
        note: row.get(10)?,
    })
}

/// Converts a time or a count for the database, whose integers are signed.
pub(super) fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Converts a time or a count of the database. A wall clock before 1970 counts as 1970.
pub(super) fn loaded(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

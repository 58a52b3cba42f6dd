//! Reading the history: lists, single runs, and the runs that a selection names.

use rusqlite::types::Value;
use rusqlite::{OptionalExtension as _, Row, params_from_iter};

use super::History;
use super::error::HistoryError;
use super::labs::{LabId, RunId, loaded};
use super::runs::sha256;

/// A run, as a list shows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunRow {
    /// Its number.
    pub id: RunId,
    /// Identity that it keeps in other histories.
    pub uuid: String,
    /// Number of its lab.
    pub lab_id: Option<i64>,
    /// Name of its lab.
    pub lab: Option<String>,
    /// Settings of its cell, as JSON.
    pub axes: Option<String>,
    /// Variant.
    pub variant: Option<String>,
    /// Repeat of its cell, from 0.
    pub repeat: Option<u32>,
    /// Purpose: `run`, `import`, `measure`…
    pub role: String,
    /// State.
    pub state: String,
    /// Seed of its offsets.
    pub seed: Option<u64>,
    /// Wall clock when it began.
    pub begun_ms: Option<u64>,
    /// The same in UTC, to the second.
    pub begun: Option<String>,
    /// Duration, ms.
    pub wall_ms: Option<u64>,
    /// Number of its plan.
    pub plan_id: Option<i64>,
    /// Number of its machine.
    pub machine_id: Option<i64>,
    /// Text of its plan.
    pub plan: Option<String>,
    /// Machine, as JSON.
    pub machine: Option<String>,
    /// Subject, as JSON.
    pub subject: Option<String>,
    /// Disturbance, failure, or another remark.
    pub note: Option<String>,
    /// The user's tags, as a JSON object.
    pub tags: String,
}

/// Selection of runs; an empty one has all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunSelection {
    /// Numbers.
    pub runs: Vec<RunId>,
    /// Name of a lab; of several, its last one that was not abandoned.
    pub lab: Option<String>,
    /// Variant of a lab.
    pub variant: Option<String>,
    /// Number of a plan.
    pub plan: Option<i64>,
    /// Number of a machine.
    pub machine: Option<i64>,
    /// Tags that a run must have.
    pub tags: Vec<(String, String)>,
    /// Only runs that are done and measure something.
    pub measured: bool,
    /// Only runs that ended, however that was, and were to measure something; of a lab the last
    /// attempt at each repeat.
    pub ended: bool,
    /// Only the last runs, if not 0.
    pub last: u32,
}

impl History {
    /// Returns the selected runs, the newest first: by the time when they began, those without one
    /// last, and by their numbers. A modelled run of a lab is as old as its lab.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn list(&self, selection: &RunSelection) -> Result<Vec<RunRow>, HistoryError> {
        let (condition, values) = selection.condition();
        let select =
            format!("SELECT {COLUMNS} WHERE {condition} ORDER BY {BEGUN} DESC, run.id DESC");
        let limit = match selection.last {
            0 => String::new(),
            last => format!(" LIMIT {last}"),
        };
        self.rows(&(select + &limit), params_from_iter(values), run_row)
    }

    /// Returns a run.
    ///
    /// # Errors
    /// As [`open`](Self::open), or there is no such run.
    pub fn show(&self, run: RunId) -> Result<RunRow, HistoryError> {
        let selection = RunSelection {
            runs: vec![run],
            ..RunSelection::default()
        };
        let found = self.list(&selection)?.pop();
        found.ok_or_else(|| self.not_found(format!("no run {}", run.0)))
    }

    /// Returns the last lab of a name and text that was not abandoned, if there is one.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn lab_of(&self, name: &str, text: &str) -> Result<Option<LabId>, HistoryError> {
        let select = "SELECT id FROM lab WHERE name = ?1 AND file_sha256 = ?2
            AND state <> 'abandoned' ORDER BY id DESC LIMIT 1";
        let sha256 = sha256(text.as_bytes());
        let found = self
            .connection
            .query_row(select, [name, &sha256], |row| row.get(0));
        Ok(found.optional().map_err(self.failed())?.map(LabId))
    }
}

impl RunSelection {
    /// Returns the condition in SQL, and the values of its parameters.
    pub(super) fn condition(&self) -> (String, Vec<Value>) {
        let mut all = vec!["true".to_owned()];
        let mut values = Vec::new();
        if !self.runs.is_empty() {
            let numbers = self.runs.iter().map(|run| run.0.to_string());
            all.push(format!(
                "run.id IN ({})",
                numbers.collect::<Vec<_>>().join(",")
            ));
        }
        if let Some(lab) = &self.lab {
            all.push(
                "run.lab = (SELECT max(id) FROM lab WHERE name = ? AND state <> 'abandoned')"
                    .into(),
            );
            values.push(lab.clone().into());
        }
        if let Some(variant) = &self.variant {
            all.push("run.variant = ?".into());
            values.push(variant.clone().into());
        }
        for (column, number) in [("plan", self.plan), ("machine", self.machine)] {
            if let Some(number) = number {
                all.push(format!("run.{column} = ?"));
                values.push(number.into());
            }
        }
        for (key, value) in &self.tags {
            all.push("run.id IN (SELECT run FROM tag WHERE key = ? AND value = ?)".into());
            values.extend([key.clone().into(), value.clone().into()]);
        }
        if self.measured {
            all.push("run.state = 'done' AND run.role IN ('run', 'import', 'measure')".into());
        }
        if self.ended {
            all.push(ENDED.into());
        }
        (all.join(" AND "), values)
    }
}

fn run_row(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    Ok(RunRow {
        id: RunId(row.get(0)?),
        uuid: row.get(1)?,
        lab: row.get(2)?,
        axes: row.get(3)?,
        variant: row.get(4)?,
        repeat: row.get(5)?,
        role: row.get(6)?,
        state: row.get(7)?,
        seed: row.get::<_, Option<i64>>(8)?.map(i64::cast_unsigned),
        begun_ms: row
            .get::<_, Option<i64>>(9)?
            .map(loaded)
            .filter(|&ms| ms > 0),
        begun: row.get(10)?,
        wall_ms: row.get::<_, Option<i64>>(11)?.map(loaded),
        plan: row.get(12)?,
        machine: row.get(13)?,
        subject: row.get(14)?,
        note: row.get(15)?,
        tags: row.get(16)?,
        lab_id: row.get(17)?,
        plan_id: row.get(18)?,
        machine_id: row.get(19)?,
    })
}

/// Condition of runs that ended and were to measure something, as far as they are the last attempt.
const ENDED: &str = "run.state IN ('done', 'failed', 'cut')
    AND run.role IN ('run', 'import', 'measure') AND NOT EXISTS (
        SELECT 1 FROM run AS later WHERE later.lab = run.lab AND later.cell = run.cell
        AND later.variant = run.variant AND later.repeat = run.repeat AND later.role = run.role
        AND later.id > run.id AND later.state IN ('done', 'failed', 'cut'))";

/// Time when a run began, or else its lab; `NULL`, the smallest value, if it is not known.
const BEGUN: &str = "coalesce(nullif(run.begun_ms, 0), lab.begun_ms)";

/// Columns of a [`RunRow`], and their tables.
const COLUMNS: &str = "run.id, run.uuid, lab.name, cell.axes, run.variant, run.repeat, run.role,
    run.state, run.seed, run.begun_ms,
    strftime('%Y-%m-%d %H:%M:%S', nullif(run.begun_ms, 0) / 1000, 'unixepoch'),
    run.wall_ms, plan.text, machine.json, run.subject, run.note,
    (SELECT json_group_object(key, value) FROM tag WHERE tag.run = run.id),
    run.lab, run.plan, run.machine
    FROM run LEFT JOIN lab ON lab.id = run.lab LEFT JOIN cell ON cell.id = run.cell
    LEFT JOIN plan ON plan.id = run.plan LEFT JOIN machine ON machine.id = run.machine";

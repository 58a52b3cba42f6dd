//! Labs of the history, to be read again.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{OptionalExtension as _, Row};

use super::History;
use super::error::HistoryError;
use super::labs::LabId;
use crate::subject;

/// Entry of a lab.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabEntry {
    /// Its number.
    pub id: i64,
    /// Name in the lab file.
    pub name: String,
    /// Path of the lab file, as it was named.
    pub file: String,
    /// Text of the lab file, with everything that decides on its runs.
    pub text: String,
    /// State: `running`, `done` or `abandoned`.
    pub state: String,
    /// Time when it began, in UTC, to the second.
    pub begun: String,
}

impl History {
    /// Returns the entry of a lab.
    ///
    /// # Errors
    /// As [`open`](Self::open), or there is no such lab.
    pub fn lab_entry(&self, lab: LabId) -> Result<LabEntry, HistoryError> {
        let select = format!("{SELECT} WHERE lab.id = ?1");
        let found = self.rows(&select, [lab.0], entry)?.pop();
        found.ok_or_else(|| self.not_found(format!("no lab {}", lab.0)))
    }

    /// Returns the last lab whose text is that of a lab file, with or without arguments and other
    /// files after it, and that was not abandoned.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn lab_of_text(&self, text: &str) -> Result<Option<LabId>, HistoryError> {
        // Each of those begins with `\n# `: what goes on otherwise is another lab file.
        let is_of_text = "?1 = CASE substr(plan.text, length(?1) + 1, 3)
            WHEN '' THEN plan.text
            WHEN char(10) || '# ' THEN substr(plan.text, 1, length(?1))
            END";
        self.last_lab(is_of_text, text)
    }

    /// Returns the last lab of a file, whatever its text was, that was not abandoned.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn lab_of_file(&self, path: &str) -> Result<Option<LabId>, HistoryError> {
        self.last_lab("lab.file = ?1", path)
    }

    /// Returns the names of all labs that were not abandoned, each once.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn lab_names(&self) -> Result<Vec<String>, HistoryError> {
        let select = "SELECT DISTINCT name FROM lab WHERE state <> 'abandoned' ORDER BY name";
        self.rows(select, [], |row| row.get(0))
    }

    /// Holds the state of the history: what this connection reads from now on is of one moment, and
    /// needs no lock for each query. It may no longer be written.
    pub(crate) fn hold(&self) -> Result<(), HistoryError> {
        let held = self.connection.execute_batch("BEGIN");
        held.map_err(self.failed())
    }

    /// Returns the facts about machines and subjects of a lab's runs that are done, each with the
    /// values that it had.
    pub(crate) fn circumstances_of(
        &self,
        lab: LabId,
    ) -> Result<BTreeMap<String, Vec<String>>, HistoryError> {
        let select = "SELECT DISTINCT machine.json, coalesce(run.subject, '{}')
            FROM run JOIN machine ON machine.id = run.machine
            WHERE run.lab = ?1 AND run.state = 'done'";
        let found: Vec<(String, String)> =
            self.rows(select, [lab.0], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (machine, of_subject) in found {
            let facts = [machine, of_subject].map(|json| subject::facts(&json));
            for (key, value) in facts.into_iter().flatten() {
                all.entry(key).or_default().insert(value);
            }
        }
        let all = all.into_iter();
        Ok(all
            .map(|(key, values)| (key, values.into_iter().collect()))
            .collect())
    }

    fn last_lab(&self, condition: &str, value: &str) -> Result<Option<LabId>, HistoryError> {
        let select = format!(
            "SELECT lab.id FROM lab JOIN plan ON plan.fingerprint = lab.file_sha256
             WHERE state <> 'abandoned' AND {condition} ORDER BY lab.id DESC LIMIT 1"
        );
        let found = self
            .connection
            .query_row(&select, [value], |row| row.get(0))
            .optional();
        Ok(found.map_err(self.failed())?.map(LabId))
    }
}

fn entry(row: &Row<'_>) -> rusqlite::Result<LabEntry> {
    Ok(LabEntry {
        id: row.get(0)?,
        name: row.get(1)?,
        file: row.get(2)?,
        text: row.get(3)?,
        state: row.get(4)?,
        begun: row.get(5)?,
    })
}

const SELECT: &str = "SELECT lab.id, lab.name, lab.file, plan.text, lab.state,
    strftime('%Y-%m-%d %H:%M:%S', lab.begun_ms / 1000, 'unixepoch')
    FROM lab JOIN plan ON plan.fingerprint = lab.file_sha256";

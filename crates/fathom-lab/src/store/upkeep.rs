//! Upkeep of the history: copies, removal of old runs, transfer to other histories.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::params_from_iter;
use serde_json::Value;

use super::error::{HistoryError, HistoryProblem};
use super::labs::{RunId, loaded, stored};
use super::query::{RunRow, RunSelection};
use super::runs::sha256;
use super::{FinishedRun, History, place};
use crate::finished::RunEnd;
use crate::import::{ImportedRun, exported};

/// Runs to remove, or whose records to remove.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prune {
    /// Only runs that began before this wall clock, and labs of which all did.
    pub before_ms: u64,
    /// Removes the records and keeps runs and metrics.
    pub records_only: bool,
    /// Removes nothing.
    pub dry_run: bool,
}

/// Result of a removal.
#[derive(Debug)]
pub struct Pruned {
    /// Number of runs, or of their records.
    pub count: u64,
    /// Number of runs that are old enough and stay with newer ones of their labs.
    pub kept_with_labs: u64,
    /// Reason why the file is as large as before. What is added later takes the space.
    pub not_shrunk: Option<HistoryError>,
}

impl History {
    /// Copies the whole history into a new file.
    ///
    /// # Errors
    /// As [`open`](Self::open), or there is a file or a link of that name.
    pub fn backup(&self, to: &Path) -> Result<(), HistoryError> {
        // A link that leads nowhere is somebody's, too, and would be removed with a partial copy.
        if to.symlink_metadata().is_ok() {
            return Err(HistoryError::new(to, HistoryProblem::Exists));
        }
        let plain = place::plain(to)?;
        // SQLite would say of a missing directory that it cannot open the file, and no more.
        if let Some(folder) = plain.parent() {
            let found = std::fs::metadata(folder).map(drop);
            found.map_err(|error| HistoryError::new(folder, HistoryProblem::Folder(error)))?;
        }
        let Some(name) = plain.to_str() else {
            let why = std::io::Error::other("not a name in UTF-8");
            return Err(HistoryError::new(to, HistoryProblem::Folder(why)));
        };
        let copied = self.connection.execute("VACUUM INTO ?1", [name]);
        copied.map(drop).map_err(|error| {
            // There was no such file before.
            let _partial = std::fs::remove_file(to);
            HistoryError::at(to)(error)
        })
    }

    /// Removes old runs, or their records, and returns how many there were. A lab's runs go
    /// together: with a part of them it would measure the others again. Those of labs that are not
    /// finished stay, and so do the seeds, plans and machines of the others. Dry, it needs a
    /// history for reading only.
    ///
    /// # Errors
    /// As [`open`](Self::open); nothing is removed.
    pub fn prune(&mut self, prune: &Prune) -> Result<Pruned, HistoryError> {
        let (of, remove) = match prune.records_only {
            true => ("run JOIN record ON record.run = run.id", "record WHERE run"),
            false => ("run", "run WHERE id"),
        };
        let count = format!(
            "SELECT count(*) FILTER (WHERE {OLD}), count(*) FILTER (WHERE {KEPT_WITH_LAB})
            FROM {of}"
        );
        let remove = format!("DELETE FROM {remove} IN (SELECT run.id FROM run WHERE {OLD})");
        let before = stored(prune.before_ms);
        let counted = |row: &rusqlite::Row<'_>| {
            Ok(Pruned {
                count: loaded(row.get(0)?),
                kept_with_labs: loaded(row.get(1)?),
                not_shrunk: None,
            })
        };
        if prune.dry_run {
            let found = self.connection.query_row(&count, [before], counted);
            return found.map_err(self.failed());
        }
        let mut pruned = self.write(|transaction| {
            let pruned = transaction.query_row(&count, [before], counted)?;
            transaction.execute(&remove, [before])?;
            transaction.execute_batch(REMOVE_UNUSED)?;
            Ok(pruned)
        })?;
        // Gives the space back to the file system; needs as much as is left, for a copy.
        if pruned.count > 0 {
            let emptied = self.connection.execute_batch("VACUUM");
            pruned.not_shrunk = emptied.map_err(self.failed()).err();
        }
        Ok(pruned)
    }

    /// Adds a run that was read from a file, and returns its number; `None` if it is there already.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn add_imported(&mut self, run: &ImportedRun) -> Result<Option<RunId>, HistoryError> {
        // Labels are the user's, not the run's.
        let of_content = || {
            let untagged = FinishedRun {
                tags: Vec::new(),
                ..run.run.clone()
            };
            let content = exported::to_value(None, run.begun_ms, &untagged).to_string();
            sha256(content.as_bytes())[..UUID_DIGITS].to_owned()
        };
        let uuid = run.uuid.clone().unwrap_or_else(of_content);
        let mut ended = run.run.clone();
        if !run.notes.is_empty() {
            let own = ended.note.into_iter();
            ended.note = Some(own.chain(run.notes.clone()).collect::<Vec<_>>().join("; "));
        }
        let begun_ms = run.begun_ms.unwrap_or(0);
        self.add_run(&ended, "import", begun_ms, Some(&uuid))
    }

    /// Passes the selected runs that have ended, however that was, on as JSON documents, in the
    /// order in which they were added and in the form that `fathom history import` reads.
    ///
    /// # Errors
    /// As [`open`](Self::open), or the first error of `write`.
    pub fn export<E: From<HistoryError>>(
        &self,
        selection: &RunSelection,
        mut write: impl FnMut(&Value) -> Result<(), E>,
    ) -> Result<(), E> {
        let (condition, values) = selection.condition();
        let select = format!(
            "SELECT run.id FROM run WHERE {condition} AND run.state IN ('done', 'failed', 'cut')
             ORDER BY run.id"
        );
        let ids = self.rows(&select, params_from_iter(values), |row| row.get(0))?;
        for id in ids.into_iter().map(RunId) {
            let row = self.show(id)?;
            let run = self.finished(&row)?;
            write(&exported::to_value(Some(&row.uuid), row.begun_ms, &run))?;
        }
        Ok(())
    }

    /// Returns the selected runs that ended and were to measure something, the oldest first, for a
    /// comparison. Those that failed or were cut have no numbers.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn measured(&self, selection: &RunSelection) -> Result<Vec<ImportedRun>, HistoryError> {
        let selection = RunSelection {
            ended: true,
            ..selection.clone()
        };
        let mut rows = self.list(&selection)?;
        rows.reverse();
        let run = |row: RunRow| {
            let mut run = self.finished(&row)?;
            if run.end != RunEnd::Done {
                run.measures.clear();
                run.record = None;
            }
            Ok(ImportedRun {
                run,
                repeat: row.lab_id.zip(row.repeat),
                uuid: Some(row.uuid),
                begun_ms: row.begun_ms,
                notes: Vec::new(),
            })
        };
        rows.into_iter().map(run).collect()
    }

    /// Returns an ended run with everything that the history has of it.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn finished(&self, row: &RunRow) -> Result<FinishedRun, HistoryError> {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Ok(FinishedRun {
            wall_ms: row.wall_ms.unwrap_or(0),
            end: RunEnd::of(&row.state),
            plan: text(&row.plan),
            machine: text(&row.machine),
            subject: text(&row.subject),
            note: row.note.clone(),
            measures: self.measures_of_run(row.id)?,
            record: self.record_of(row.id)?,
            tags: tags(row),
        })
    }
}

/// Returns the tags of a run; one of a lab is tagged with its place there, too.
fn tags(row: &RunRow) -> Vec<(String, String)> {
    let own: BTreeMap<String, String> = serde_json::from_str(&row.tags).unwrap_or_default();
    let of_lab = [
        ("lab", &row.lab),
        ("variant", &row.variant),
        ("axes", &row.axes),
    ];
    let of_lab = of_lab
        .into_iter()
        .filter(|(key, _)| !own.contains_key(*key));
    let of_lab = of_lab.filter_map(|(key, value)| Some((key.to_owned(), value.clone()?)));
    let of_lab: Vec<_> = of_lab.collect();
    own.into_iter().chain(of_lab).collect()
}

/// Runs to remove: those of labs by the newest of their lab. Modelled ones of a lab have no time of
/// their own, only their lab has. Others without one, such as those that earlier builds kept, are
/// older than the next run that was not imported.
const OLD: &str = "iif(run.lab IS NULL,
    run.state NOT IN ('planned', 'running') AND coalesce(nullif(run.begun_ms, 0),
        (SELECT min(next.begun_ms) FROM run AS next
            WHERE next.id > run.id AND next.begun_ms > 0 AND next.role <> 'import')) < ?1,
    run.lab IN (SELECT lab.id FROM lab JOIN run AS own ON own.lab = lab.id
        WHERE lab.state <> 'running'
        GROUP BY lab.id HAVING max(coalesce(nullif(own.begun_ms, 0), lab.begun_ms)) < ?1))";

/// Runs that are old enough and stay, as newer ones of their lab do.
const KEPT_WITH_LAB: &str = "nullif(run.begun_ms, 0) < ?1 AND run.lab IN (
    SELECT lab.id FROM lab JOIN run AS own ON own.lab = lab.id
        WHERE lab.state <> 'running'
        GROUP BY lab.id HAVING max(coalesce(nullif(own.begun_ms, 0), lab.begun_ms)) >= ?1)";

/// Removes labs without runs that are over, and texts that nothing refers to.
const REMOVE_UNUSED: &str = "
DELETE FROM lab WHERE state <> 'running' AND id NOT IN (SELECT lab FROM run WHERE lab IS NOT NULL);
DELETE FROM plan WHERE id NOT IN (SELECT plan FROM run WHERE plan IS NOT NULL)
    AND fingerprint NOT IN (SELECT file_sha256 FROM lab);
DELETE FROM machine WHERE id NOT IN (SELECT machine FROM run WHERE machine IS NOT NULL);
";

/// Digits of a run's identity.
const UUID_DIGITS: usize = 32;

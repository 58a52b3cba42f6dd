//! Reading of many runs for an export: one view of the history, run by run.

use std::collections::BTreeMap;

use fathom_record::{Measure, Record, known_direction};
use rusqlite::types::Value;
use rusqlite::{Transaction, params_from_iter};

use super::History;
use super::error::{HistoryError, HistoryProblem};
use super::labs::RunId;
use super::query::{RunRow, RunSelection};

/// Selected runs that measured something, in the order in which they began.
///
/// All reads see the history as it was when they were selected, so that columns and rows fit
/// together. Memory is needed for one run at a time, and for a number of each.
#[derive(Debug)]
pub struct StoredRuns<'a> {
    history: &'a History,
    ids: Vec<RunId>,
    /// Condition in SQL that selects them, and the values of its parameters.
    condition: (String, Vec<Value>),
    /// Ends the view when it is dropped.
    _view: Transaction<'a>,
}

/// A run with its metrics.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredRun {
    /// The run.
    pub row: RunRow,
    /// Its metrics.
    pub measures: Vec<Measure>,
}

/// Metric that some of the runs measured.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredMetric {
    /// The metric, without a value.
    pub measure: Measure,
    /// Number of runs that measured it.
    pub runs: u64,
    /// A run has an interval of it.
    pub has_interval: bool,
}

impl History {
    /// Selects runs for an export; those that are not done or measure nothing are left out.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn stored_runs(&self, selection: &RunSelection) -> Result<StoredRuns<'_>, HistoryError> {
        let view = self.connection.unchecked_transaction();
        let view = view.map_err(self.failed())?;
        let measured = RunSelection {
            measured: true,
            ..selection.clone()
        };
        let (condition, values) = measured.condition();
        let select =
            format!("SELECT run.id FROM run WHERE {condition} ORDER BY run.begun_ms, run.id");
        let ids = self.rows(&select, params_from_iter(values.clone()), |row| row.get(0))?;
        Ok(StoredRuns {
            history: self,
            ids: ids.into_iter().map(RunId).collect(),
            condition: (condition, values),
            _view: view,
        })
    }
}

impl StoredRuns<'_> {
    /// Returns the number of runs.
    #[must_use]
    pub fn count(&self) -> usize {
        self.ids.len()
    }

    /// Returns the metrics of the runs, by group and name.
    ///
    /// # Errors
    /// As [`History::open`].
    pub fn metrics(&self) -> Result<Vec<StoredMetric>, HistoryError> {
        let (condition, values) = &self.condition;
        let select = format!(
            "SELECT grp, direction, metric, count(*), coalesce(max(low IS NOT NULL), 0)
             FROM measure WHERE run IN (SELECT run.id FROM run WHERE {condition})
             GROUP BY grp, direction, metric ORDER BY grp, direction, metric"
        );
        let found = self
            .history
            .rows(&select, params_from_iter(values), |row| {
                let direction: String = row.get(1)?;
                let Some(direction) = known_direction(&direction) else {
                    return Ok(None);
                };
                Ok(Some(StoredMetric {
                    measure: Measure {
                        group: row.get(0)?,
                        direction,
                        metric: row.get(2)?,
                        value: 0.0,
                        low: None,
                        high: None,
                    },
                    runs: row.get::<_, i64>(3)?.unsigned_abs(),
                    has_interval: row.get(4)?,
                }))
            })?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Returns the names of the runs' tags.
    ///
    /// # Errors
    /// As [`History::open`].
    pub fn tag_names(&self) -> Result<Vec<String>, HistoryError> {
        let (condition, values) = &self.condition;
        let select = format!(
            "SELECT DISTINCT key FROM tag
             WHERE run IN (SELECT run.id FROM run WHERE {condition}) ORDER BY key"
        );
        let values = params_from_iter(values);
        self.history.rows(&select, values, |row| row.get(0))
    }

    /// Passes on run by run.
    ///
    /// # Errors
    /// As [`History::open`], or the first error of `take`.
    pub fn each<E: From<HistoryError>>(
        &self,
        mut take: impl FnMut(StoredRun) -> Result<(), E>,
    ) -> Result<(), E> {
        for &id in &self.ids {
            let row = self.history.show(id)?;
            let mut measures = self.history.measures_of_run(id)?;
            // Formats of numbers have no infinity, and the program stores none.
            measures.retain(|measure| measure.value.is_finite());
            take(StoredRun { row, measures })?;
        }
        Ok(())
    }

    /// Returns the record of a run; `None` if it has none.
    ///
    /// # Errors
    /// As [`History::open`], or the record is damaged.
    pub fn record(&self, run: RunId) -> Result<Option<Record>, HistoryError> {
        let Some(json) = self.history.record_of(run)? else {
            return Ok(None);
        };
        let record = Record::from_json(&json).map_err(|error| {
            let why = format!("run {}: {error}", run.0);
            HistoryError::new(&self.history.path, HistoryProblem::Record(why))
        });
        record.map(Some)
    }
}

impl StoredRun {
    /// Returns the tags.
    #[must_use]
    pub fn tags(&self) -> BTreeMap<String, String> {
        serde_json::from_str(&self.row.tags).unwrap_or_default()
    }
}

//! Series of a metric over comparable runs.

use fathom_record::{MetricName, Record};
use rusqlite::params_from_iter;
use rusqlite::types::Value;

use super::History;
use super::error::HistoryError;
use super::labs::{RunId, loaded};

/// Values of a metric in comparable runs, in the order in which the runs began.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunSeries {
    /// Circumstances that all of the runs share.
    pub of: SeriesKey,
    /// Runs that are done and have the metric.
    pub points: Vec<SeriesPoint>,
    /// Number of the others.
    pub left_out: usize,
    /// Number of these among them that failed or were cut.
    pub not_done: usize,
    /// Number of these among the others that are newer than all runs with the metric.
    pub left_out_last: usize,
}

/// Circumstances that make runs comparable.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SeriesKey {
    /// Number of the plan.
    pub plan: i64,
    /// Number of the machine.
    pub machine: i64,
    /// Name of a lab, the settings of its cell as JSON, and the variant.
    pub lab: Option<(String, String, String)>,
}

/// Value of a metric in one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeriesPoint {
    /// Number of the run.
    pub run: RunId,
    /// Wall clock when it began, ms.
    pub begun_ms: Option<u64>,
    /// Value, in the unit in which it is stored.
    pub value: f64,
}

/// Selection of series; an empty one has all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeriesSelection {
    /// Number of the plan.
    pub plan: Option<i64>,
    /// Number of the machine.
    pub machine: Option<i64>,
}

impl History {
    /// Returns the series of a metric: one for each plan on each machine, and of the runs of labs
    /// one for each variant and cell, if any of its runs has the metric. The cost grows with the
    /// number of runs: 10,000 take some ten milliseconds. A rate that a run lacks is looked for in
    /// its record, where one of 0 can be found.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn series(
        &self,
        metric: &MetricName,
        selection: SeriesSelection,
    ) -> Result<Vec<RunSeries>, HistoryError> {
        let mut values: Vec<Value> = vec![
            metric.group.clone().into(),
            metric.direction.to_owned().into(),
            metric.metric.clone().into(),
        ];
        let mut select = SELECT.to_owned();
        let conditions = [("plan", selection.plan), ("machine", selection.machine)];
        for (column, number) in conditions {
            if let Some(number) = number {
                select.push_str(&format!(" AND run.{column} = ?"));
                values.push(number.into());
            }
        }
        let rows = self.rows(&(select + ORDER), params_from_iter(values), series_row)?;
        let mut all = Vec::new();
        for runs in rows.chunk_by(|one, next| one.of == next.of) {
            if runs.iter().any(|run| run.value.is_some()) {
                all.push(self.one_series(metric, runs)?);
            }
        }
        Ok(all)
    }

    /// Makes a series of runs that share their circumstances.
    fn one_series(&self, metric: &MetricName, runs: &[Row]) -> Result<RunSeries, HistoryError> {
        let mut series = RunSeries {
            of: runs.first().map(|run| run.of.clone()).unwrap_or_default(),
            ..RunSeries::default()
        };
        for run in runs {
            series.not_done += usize::from(!run.is_done);
            let value = match run.value {
                None if run.is_done && metric.is_rate() => self.computed(metric, run.id)?,
                value => value,
            };
            if let Some(value) = value {
                series.left_out_last = 0;
                series.points.push(SeriesPoint {
                    run: run.id,
                    begun_ms: run.begun_ms,
                    value,
                });
            } else {
                series.left_out += 1;
                series.left_out_last += 1;
            }
        }
        Ok(series)
    }

    /// Computes a metric from the record of a run, if it left one that can be read.
    fn computed(&self, metric: &MetricName, run: RunId) -> Result<Option<f64>, HistoryError> {
        let json = self.record_of(run)?;
        let record = json.and_then(|json| Record::from_json(&json).ok());
        Ok(record.and_then(|record| metric.value(&record)))
    }

    /// Returns the metrics that runs measured in all their jobs together, as `read.bw`.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn measured_metrics(&self) -> Result<Vec<String>, HistoryError> {
        let select = "SELECT DISTINCT direction || '.' || metric FROM measure WHERE grp = ''";
        self.rows(select, [], |row| row.get(0))
    }

    /// Returns the text of a plan.
    ///
    /// # Errors
    /// As [`open`](Self::open), or there is no such plan.
    pub fn plan_text(&self, plan: i64) -> Result<String, HistoryError> {
        let found = self.rows("SELECT text FROM plan WHERE id = ?1", [plan], |row| {
            row.get(0)
        })?;
        let found = found.into_iter().next();
        found.ok_or_else(|| self.not_found(format!("no plan {plan}")))
    }
}

/// Run of a series.
struct Row {
    id: RunId,
    begun_ms: Option<u64>,
    is_done: bool,
    value: Option<f64>,
    of: SeriesKey,
}

fn series_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Row> {
    let lab: Option<String> = row.get(5)?;
    let of = SeriesKey {
        plan: row.get(3)?,
        machine: row.get(4)?,
        lab: match lab {
            Some(name) => Some((name, row.get(6)?, row.get(7)?)),
            None => None,
        },
    };
    let begun_ms: Option<i64> = row.get(1)?;
    Ok(Row {
        id: RunId(row.get(0)?),
        begun_ms: begun_ms.map(loaded).filter(|&ms| ms > 0),
        is_done: row.get(8)?,
        value: row.get(2)?,
        of,
    })
}

/// Runs that ended, with the value of a metric, if they are done and have it, and what makes them
/// comparable. What a lab has of repeats that were cut does not count: it does them again. An
/// imported run of a lab has its place there as tags, which an export writes together; one of these
/// tags alone is a user's.
const SELECT: &str = "SELECT run.id, run.begun_ms, measure.value, run.plan, run.machine,
    coalesce(lab.name, iif(own_axes.value IS NULL OR own_variant.value IS NULL,
        NULL, own_lab.value)) AS lab_name,
    coalesce(cell.axes, iif(own_lab.value IS NULL OR own_variant.value IS NULL,
        NULL, own_axes.value), '') AS axes,
    coalesce(run.variant, iif(own_lab.value IS NULL OR own_axes.value IS NULL,
        NULL, own_variant.value), '') AS variant,
    run.state = 'done'
    FROM run LEFT JOIN measure ON measure.run = run.id AND run.state = 'done'
        AND measure.grp = ? AND measure.direction = ? AND measure.metric = ?
    LEFT JOIN lab ON lab.id = run.lab LEFT JOIN cell ON cell.id = run.cell
    LEFT JOIN tag AS own_lab ON own_lab.run = run.id AND own_lab.key = 'lab'
        AND run.role = 'import'
    LEFT JOIN tag AS own_axes ON own_axes.run = run.id AND own_axes.key = 'axes'
        AND run.role = 'import'
    LEFT JOIN tag AS own_variant ON own_variant.run = run.id AND own_variant.key = 'variant'
        AND run.role = 'import'
    WHERE (run.state IN ('done', 'failed') OR run.state = 'cut' AND run.lab IS NULL)
    AND run.role IN ('run', 'import', 'measure')
    AND run.plan IS NOT NULL AND run.machine IS NOT NULL";

/// Order in which the runs of a series follow each other. A run may be added long after it began,
/// from a file.
const ORDER: &str = " ORDER BY run.plan, run.machine, lab_name, axes, variant,
    run.begun_ms, run.id";

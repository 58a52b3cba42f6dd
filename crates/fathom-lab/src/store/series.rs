//! Series of a metric over comparable runs.

use fathom_record::MetricName;
use rusqlite::types::Value;
use rusqlite::{Row, params_from_iter};

use super::History;
use super::error::HistoryError;
use super::labs::{RunId, loaded};

/// Values of a metric in comparable runs, in the order in which the runs began.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunSeries {
    /// Circumstances that all of the runs share.
    pub of: SeriesKey,
    /// Runs.
    pub points: Vec<SeriesPoint>,
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
    /// one for each variant and cell. The cost grows with the number of runs: 10,000 take some ten
    /// milliseconds.
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
        let mut all: Vec<RunSeries> = Vec::new();
        for (of, point) in rows {
            match all.last_mut() {
                Some(last) if last.of == of => last.points.push(point),
                _ => all.push(RunSeries {
                    of,
                    points: vec![point],
                }),
            }
        }
        Ok(all)
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

fn series_row(row: &Row<'_>) -> rusqlite::Result<(SeriesKey, SeriesPoint)> {
    let lab: Option<String> = row.get(5)?;
    let of = SeriesKey {
        plan: row.get(3)?,
        machine: row.get(4)?,
        lab: match lab {
            Some(name) => Some((name, row.get(6)?, row.get(7)?)),
            None => None,
        },
    };
    let point = SeriesPoint {
        run: RunId(row.get(0)?),
        begun_ms: row
            .get::<_, Option<i64>>(1)?
            .map(loaded)
            .filter(|&ms| ms > 0),
        value: row.get(2)?,
    };
    Ok((of, point))
}

/// Values of a metric in runs that are done, with what makes them comparable.
const SELECT: &str = "SELECT run.id, run.begun_ms, measure.value, run.plan, run.machine,
    lab.name, coalesce(cell.axes, ''), coalesce(run.variant, '')
    FROM run JOIN measure ON measure.run = run.id
    LEFT JOIN lab ON lab.id = run.lab LEFT JOIN cell ON cell.id = run.cell
    WHERE measure.grp = ? AND measure.direction = ? AND measure.metric = ?
    AND run.state = 'done' AND run.role IN ('run', 'import', 'measure')
    AND run.plan IS NOT NULL AND run.machine IS NOT NULL";

/// Order in which the runs of a series follow each other. A run may be added long after it began,
/// from a file.
const ORDER: &str = " ORDER BY run.plan, run.machine, lab.name, cell.axes, run.variant,
    run.begun_ms, run.id";

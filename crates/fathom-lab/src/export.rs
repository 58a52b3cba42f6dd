//! Exports of stored runs in the formats of other programs.
//!
//! | format | a run is |
//! |---|---|
//! | table (`csv`, `parquet`) | a row; a metric is a column, with its unit in the heading |
//! | `openmetrics` | a sample of each metric, at the moment when it began |
//! | `otlp` | a line: an `ExportMetricsServiceRequest` as JSON |
//! | `otava` | a row of one series of comparable runs |
//!
//! Everything here makes text or cells of rows of the history, and does no I/O. Names are the
//! user's and may have any characters: each format escapes them in its own way.

mod csv;
mod openmetrics;
mod otava;
mod otlp;
mod table;

#[cfg(test)]
mod tests;

pub use csv::csv_line;
pub use openmetrics::MetricsExport;
pub use otava::OtavaExport;
pub use otlp::otlp_line;
pub use table::{ExportCell, ExportColumn, ExportKind, ExportTable};

use fathom_record::{Measure, MetricName};
use serde_json::Value;

use crate::store::{RunRow, StoredRun};

/// Circumstances that make runs comparable, as labels: plan, machine, lab, cell and variant.
fn series_labels(row: &RunRow) -> Vec<(&'static str, String)> {
    let number = |number: Option<i64>| number.map(|number| number.to_string());
    let labels = [
        ("plan", number(row.plan_id)),
        ("machine", number(row.machine_id)),
        ("lab", row.lab.clone()),
        ("cell", row.axes.clone()),
        ("variant", row.variant.clone()),
    ];
    let known = labels.into_iter();
    known
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}

/// Returns the unit of a stored metric; empty for numbers of services, and of metrics that only
/// another version of this program knows.
fn unit(measure: &Measure) -> &'static str {
    MetricName::parse(&measure.name()).map_or("", |name| name.unit())
}

/// Returns the text of a fact of a run's subject: of `firmware`, that of all devices.
fn fact(run: &StoredRun, name: &str) -> Option<String> {
    let subject: Value = serde_json::from_str(run.row.subject.as_deref()?).ok()?;
    match &subject[name] {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Object(each) if each.is_empty() => None,
        other => Some(other.to_string()),
    }
}

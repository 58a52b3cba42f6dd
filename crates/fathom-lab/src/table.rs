//! Result of an experiment: rows with named columns, printed as text or JSON.

use fathom_report::aligned;
use serde_json::{Map, Value, json};

use crate::plot::{Panel, Plot};

/// Experiment that can be selected by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Experiment {
    /// Name.
    pub name: &'static str,
    /// Measured quantity and conditions.
    pub about: &'static str,
    /// Source of the published figures.
    pub origin: &'static str,
    /// Its table can be drawn.
    pub has_plot: bool,
}

/// Value in a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Text.
    Text(String),
    /// Integer.
    Count(u64),
    /// Number printed without decimals.
    Rate(f64),
    /// Number printed with one decimal.
    Tenths(f64),
    /// Ratio, printed with three decimals.
    Ratio(f64),
    /// Not measured.
    Missing,
}

/// Result of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The experiment.
    pub experiment: Experiment,
    /// Column names with units, as in JSON.
    pub columns: Vec<String>,
    /// Rows of one cell per column.
    pub rows: Vec<Vec<Cell>>,
    /// Conditions of the measurement, one per line.
    pub notes: Vec<String>,
    /// Panels of a plot.
    pub panels: Vec<Panel>,
}

impl Table {
    /// Formats the table as text, without columns that have no value in any row.
    #[must_use]
    pub fn text(&self) -> String {
        let is_shown = |column: &usize| self.rows.iter().any(|row| row[*column] != Cell::Missing);
        let shown: Vec<usize> = (0..self.columns.len()).filter(is_shown).collect();
        let heads = shown.iter().map(|&column| self.columns[column].clone());
        let rows = self.rows.iter();
        let rows = rows.map(|row| shown.iter().map(|&column| row[column].text()).collect());
        let rows: Vec<Vec<String>> = std::iter::once(heads.collect()).chain(rows).collect();
        let notes = self.notes.iter().map(|note| format!("{note}\n"));
        format!(
            "{}\n{}published: {}\n\n{}",
            self.experiment.about,
            notes.collect::<String>(),
            self.experiment.origin,
            aligned(&rows),
        )
    }

    /// Formats the table as JSON, with an object per row.
    #[must_use]
    pub fn json(&self) -> String {
        let row = |row: &Vec<Cell>| {
            let cells = self.columns.iter().zip(row);
            let cells = cells.map(|(name, cell)| (name.clone(), cell.json()));
            Value::Object(cells.collect::<Map<_, _>>())
        };
        let value = json!({
            "table": self.experiment.name,
            "about": self.experiment.about,
            "published": self.experiment.origin,
            "notes": self.notes,
            "rows": self.rows.iter().map(row).collect::<Vec<_>>(),
        });
        format!("{value:#}\n")
    }

    /// Draws the plot as SVG.
    #[must_use]
    pub fn svg(&self) -> String {
        Plot {
            title: self.experiment.about.into(),
            panels: self.panels.clone(),
        }
        .svg()
    }
}

impl Cell {
    /// Returns the value of a cell that holds a number.
    #[expect(clippy::cast_precision_loss, reason = "a coordinate in a plot")]
    pub(crate) const fn number(&self) -> Option<f64> {
        match self {
            Self::Count(number) => Some(*number as f64),
            Self::Rate(number) | Self::Tenths(number) | Self::Ratio(number) => Some(*number),
            Self::Text(_) | Self::Missing => None,
        }
    }

    pub(crate) fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Count(number) => number.to_string(),
            Self::Rate(number) => format!("{number:.0}"),
            Self::Tenths(number) => format!("{number:.1}"),
            Self::Ratio(number) => format!("{number:.3}"),
            Self::Missing => "-".into(),
        }
    }

    fn json(&self) -> Value {
        match self {
            Self::Text(text) => json!(text),
            Self::Count(number) => json!(number),
            Self::Rate(number) => json!(number.round()),
            Self::Tenths(number) => json!((number * 10.0).round() / 10.0),
            Self::Ratio(number) => json!((number * 1e3).round() / 1e3),
            Self::Missing => Value::Null,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_objects_and_gaps_are_null() {
        let table = Table {
            experiment: Experiment {
                name: "reads",
                about: "reads by depth",
                origin: "nowhere",
                has_plot: false,
            },
            columns: vec!["depth".into(), "iops".into(), "published_iops".into()],
            rows: vec![
                vec![Cell::Count(1), Cell::Rate(2.4), Cell::Missing],
                vec![Cell::Count(2), Cell::Missing, Cell::Missing],
            ],
            notes: Vec::new(),
            panels: Vec::new(),
        };
        let value: Value = serde_json::from_str(&table.json()).unwrap();
        assert_eq!(
            value["rows"][0],
            json!({"depth": 1, "iops": 2.0, "published_iops": null})
        );
        assert_eq!(value["rows"][1]["iops"], Value::Null);
        assert!(
            table
                .text()
                .ends_with("depth  iops\n    1     2\n    2     -\n")
        );
    }
}

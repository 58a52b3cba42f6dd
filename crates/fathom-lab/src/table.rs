//! What an experiment gives: rows of data with named columns, printed for people or as JSON.

use fathom_report::aligned;
use serde_json::{Map, Value, json};

use crate::plot::{Panel, svg};

/// An experiment that can be asked for by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Experiment {
    /// Its name.
    pub name: &'static str,
    /// What it measures.
    pub about: &'static str,
    /// Where the published figures come from.
    pub origin: &'static str,
}

/// All of them.
#[must_use]
pub const fn experiments() -> &'static [Experiment] {
    &EXPERIMENTS
}

const EXPERIMENTS: [Experiment; 7] = [
    crate::uring_irq::EXPERIMENT,
    crate::log_entries::EXPERIMENT,
    crate::aio_submit::EXPERIMENT,
    crate::micro::TASK_LIST,
    crate::hdd_single::EXPERIMENT,
    crate::hdd_tags::EXPERIMENT,
    crate::hdd_seeks::EXPERIMENT,
];

/// One value of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A word.
    Text(String),
    /// A whole number.
    Count(u64),
    /// A number that is printed whole.
    Rate(f64),
    /// A number that is printed with one decimal.
    Tenths(f64),
    /// A number of times.
    Ratio(f64),
    /// Not measured.
    Missing,
}

/// An experiment's result.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Which one.
    pub experiment: Experiment,
    /// Names with units, as in JSON.
    pub columns: Vec<String>,
    /// As many cells each as there are columns.
    pub rows: Vec<Vec<Cell>>,
    /// How it was measured, line by line.
    pub notes: Vec<String>,
    /// What a plot of it shows.
    pub panels: Vec<Panel>,
}

impl Table {
    /// For people.
    #[must_use]
    pub fn text(&self) -> String {
        let heads = self.columns.clone();
        let rows = self
            .rows
            .iter()
            .map(|row| row.iter().map(Cell::text).collect());
        let rows: Vec<Vec<String>> = std::iter::once(heads).chain(rows).collect();
        let notes = self.notes.iter().map(|note| format!("{note}\n"));
        format!(
            "{}\n{}published: {}\n\n{}",
            self.experiment.about,
            notes.collect::<String>(),
            self.experiment.origin,
            aligned(&rows),
        )
    }

    /// As data: an object for each row.
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

    /// As a picture.
    #[must_use]
    pub fn svg(&self) -> String {
        svg(self.experiment.about, &self.panels)
    }
}

impl Cell {
    fn text(&self) -> String {
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
            experiment: EXPERIMENTS[0],
            columns: vec!["depth".into(), "iops".into()],
            rows: vec![
                vec![Cell::Count(1), Cell::Rate(2.4)],
                vec![Cell::Count(2), Cell::Missing],
            ],
            notes: Vec::new(),
            panels: Vec::new(),
        };
        let value: Value = serde_json::from_str(&table.json()).unwrap();
        assert_eq!(value["rows"][0], json!({"depth": 1, "iops": 2.0}));
        assert_eq!(value["rows"][1]["iops"], Value::Null);
        assert!(
            table
                .text()
                .ends_with("depth  iops\n    1     2\n    2     -\n")
        );
    }
}

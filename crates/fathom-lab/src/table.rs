//! Result of an experiment: rows with named columns, as text, JSON, CSV, Markdown or a plot.

#[cfg(test)]
pub(crate) mod check;
mod column;
mod formats;
#[cfg(test)]
mod tests;
mod text;

use serde_json::{Value, json};

use fathom_report::plot::{Panel, Plot};

pub(crate) use column::with_distinct_keys;

pub use column::Column;

use crate::figure::printable;

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

/// Name and description of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableHead {
    /// Name.
    pub name: String,
    /// Measured quantity and conditions.
    pub about: String,
    /// Source of the published figures; empty if there are none.
    pub origin: String,
    /// The table can be drawn.
    pub has_plot: bool,
}

impl From<Experiment> for TableHead {
    fn from(experiment: Experiment) -> Self {
        Self {
            name: experiment.name.into(),
            about: experiment.about.into(),
            origin: experiment.origin.into(),
            has_plot: experiment.has_plot,
        }
    }
}

/// Value in a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Text.
    Text(String),
    /// One of a few words in JSON and CSV, with a name for people.
    Named {
        /// The word.
        word: &'static str,
        /// The name.
        name: String,
    },
    /// Integer.
    Count(u64),
    /// Number printed without decimals.
    Rate(f64),
    /// Number printed with one decimal.
    Tenths(f64),
    /// Ratio, printed with three decimals.
    Ratio(f64),
    /// Number for programs; printed with six decimals.
    Exact(f64),
    /// Not measured.
    Missing,
}

/// Result of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Name and description.
    pub head: TableHead,
    /// Columns.
    pub columns: Vec<Column>,
    /// Rows of one cell per column.
    pub rows: Vec<Vec<Cell>>,
    /// Conditions of the measurement, one per line.
    pub notes: Vec<String>,
    /// Panels of a plot.
    pub panels: Vec<Panel>,
}

impl Table {
    /// Formats the table as text in lines of at most `width` characters, without columns that have
    /// no value in any row.
    #[must_use]
    pub fn text(&self, width: usize) -> String {
        text::text(&self.for_people(), width)
    }

    /// Formats the table as JSON, with an object per row.
    #[must_use]
    pub fn json(&self) -> String {
        formats::json(self)
    }

    /// Formats the rows as CSV, with the keys of JSON.
    #[must_use]
    pub fn csv(&self) -> String {
        formats::csv(self)
    }

    /// Returns headings and cells for people, without columns that have no value in any row.
    pub(crate) fn shown(&self) -> (Vec<String>, Vec<Vec<String>>) {
        formats::shown(&self.for_people())
    }

    /// Formats the table as Markdown, with the headings of the text.
    #[must_use]
    pub fn markdown(&self) -> String {
        formats::markdown(&self.for_people())
    }

    /// Returns the table with the characters written out that act on a terminal or turn the
    /// direction of writing: names and values are the user's.
    fn for_people(&self) -> Self {
        let mut table = self.clone();
        for text in [&mut table.head.about, &mut table.head.origin] {
            *text = printable(text);
        }
        for note in &mut table.notes {
            *note = printable(note);
        }
        for column in &mut table.columns {
            column.write_out();
        }
        for cell in table.rows.iter_mut().flatten() {
            if let Cell::Text(text) | Cell::Named { name: text, .. } = cell {
                *text = printable(text);
            }
        }
        table
    }

    /// Draws the plot as SVG.
    #[must_use]
    pub fn svg(&self) -> String {
        Plot {
            title: self.head.about.clone(),
            panels: self.panels.clone(),
        }
        .svg()
    }
}

impl Cell {
    /// Returns the value of a cell that holds a number.
    #[expect(clippy::cast_precision_loss, reason = "a number for people")]
    pub(crate) const fn number(&self) -> Option<f64> {
        match self {
            Self::Count(number) => Some(*number as f64),
            Self::Rate(number)
            | Self::Tenths(number)
            | Self::Ratio(number)
            | Self::Exact(number) => Some(*number),
            Self::Text(_) | Self::Named { .. } | Self::Missing => None,
        }
    }

    /// Formats the cell for people.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Text(text) | Self::Named { name: text, .. } => text.clone(),
            Self::Count(number) => number.to_string(),
            Self::Rate(number) => format!("{number:.0}"),
            Self::Tenths(number) => format!("{number:.1}"),
            Self::Ratio(number) => format!("{number:.3}"),
            Self::Exact(number) => format!("{number:.6}"),
            Self::Missing => "-".into(),
        }
    }

    fn json(&self) -> Value {
        match self {
            Self::Text(text) => json!(text),
            Self::Named { word, .. } => json!(word),
            Self::Count(number) => json!(number),
            // Programs get numbers in full: rounding is for people.
            Self::Rate(number)
            | Self::Tenths(number)
            | Self::Ratio(number)
            | Self::Exact(number) => json!(number),
            Self::Missing => Value::Null,
        }
    }
}

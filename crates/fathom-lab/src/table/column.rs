//! Columns: a key for programs, a heading with a unit for people.

use std::collections::HashSet;

use super::Cell;
use crate::figure::printable;

/// Column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Name with its unit, in JSON and CSV.
    pub key: String,
    role: Role,
    heading: String,
    group: String,
    format: Format,
}

/// Part of a column in the text of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Splits the rows into sections, titled by its value.
    Section,
    /// Identifies the row; begins each block of columns.
    Key,
    /// Shown, in its group.
    Figure,
    /// Left to JSON and CSV.
    Hidden,
}

/// Format of a column's numbers in text; without one, that of the cell.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Format {
    OfCell,
    /// Divided by the unit of the heading, with a number of decimals.
    Scaled(f64, usize),
    /// A number of KiB, with the unit that fits it.
    Kib,
}

impl Column {
    /// Creates a column that says which row it is.
    pub(crate) fn key(key: impl Into<String>, heading: &str) -> Self {
        Self::new(key, Role::Key, heading)
    }

    /// Creates a column that splits the rows into sections.
    pub(crate) fn section(key: impl Into<String>) -> Self {
        Self::new(key, Role::Section, "")
    }

    /// Creates a column of figures; its unit is in the heading of the column or of its group.
    pub(crate) fn figure(key: impl Into<String>, heading: &str) -> Self {
        Self::new(key, Role::Figure, heading)
    }

    /// Creates a column that only JSON and CSV have.
    pub(crate) fn hidden(key: impl Into<String>) -> Self {
        Self::new(key, Role::Hidden, "")
    }

    /// Puts the column into a group, which has a heading of its own. Groups are shown in the order
    /// of their first columns.
    pub(crate) fn in_group(mut self, group: impl Into<String>) -> Self {
        self.group = group.into();
        self
    }

    /// Shows the numbers in multiples of `unit`, with a number of decimals.
    pub(crate) const fn in_units_of(mut self, unit: f64, decimals: usize) -> Self {
        self.format = Format::Scaled(unit, decimals);
        self
    }

    /// Shows numbers of KiB as sizes.
    pub(crate) const fn in_kib(mut self) -> Self {
        self.format = Format::Kib;
        self
    }

    /// Writes out the characters of heading and group that act on a terminal. A key without a
    /// heading is one.
    pub(super) fn write_out(&mut self) {
        for text in [&mut self.key, &mut self.heading, &mut self.group] {
            *text = printable(text);
        }
    }

    fn new(key: impl Into<String>, role: Role, heading: &str) -> Self {
        Self {
            key: key.into(),
            role,
            heading: heading.to_owned(),
            group: String::new(),
            format: Format::OfCell,
        }
    }

    pub(super) const fn role(&self) -> Role {
        self.role
    }

    pub(super) fn heading(&self) -> &str {
        &self.heading
    }

    pub(super) fn group(&self) -> &str {
        &self.group
    }

    /// Formats one of its cells for people.
    pub(super) fn text(&self, cell: &Cell) -> String {
        match (self.format, cell.number()) {
            (Format::Scaled(unit, decimals), Some(number)) => {
                format!("{:.decimals$}", number / unit)
            }
            (Format::Kib, Some(kib)) => size(kib),
            _ => cell.text(),
        }
    }
}

/// Gives columns a number whose key an earlier one has: rows are objects, and readers find columns
/// by their keys.
pub(crate) fn with_distinct_keys(mut columns: Vec<Column>) -> Vec<Column> {
    let mut taken: HashSet<String> = HashSet::new();
    for column in &mut columns {
        let key = column.key.clone();
        let mut number = 2;
        while !taken.insert(column.key.clone()) {
            column.key = format!("{key}_{number}");
            number += 1;
        }
    }
    columns
}

/// Formats a number of KiB.
fn size(kib: f64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    let mut rest = kib;
    let mut unit = 0;
    while rest >= 1024.0 && unit + 1 < units.len() {
        rest /= 1024.0;
        unit += 1;
    }
    format!("{rest} {}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_are_taken_get_a_number() {
        let columns = ["a", "b", "a", "a_2", "a"].map(|key| Column::figure(key, "x"));
        let columns = with_distinct_keys(columns.into());
        let keys: Vec<&str> = columns.iter().map(|column| column.key.as_str()).collect();
        assert_eq!(keys, ["a", "b", "a_2", "a_2_2", "a_3"]);
    }

    #[test]
    fn numbers_are_shown_in_the_unit_of_the_heading() {
        let column = Column::figure("p50_ns", "p50, µs").in_units_of(1e3, 1);
        assert_eq!(column.text(&Cell::Count(4036)), "4.0");
        assert_eq!(column.text(&Cell::Missing), "-");
        assert_eq!(column.text(&Cell::Text("x".into())), "x");
        let column = Column::key("to_kib", "to").in_kib();
        let sizes = [0, 512, 1024, 1280, 536_870_912].map(|kib| column.text(&Cell::Count(kib)));
        assert_eq!(sizes, ["0 KiB", "512 KiB", "1 MiB", "1.25 MiB", "512 GiB"]);
    }
}

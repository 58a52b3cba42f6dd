//! Checks on what people see of a table, for the tests of each experiment.

use super::Table;
use crate::plot::check::check_plot;

/// Checks that rows are complete, that text fits common terminals, and that the plot is as the
/// experiment says.
#[track_caller]
pub(crate) fn check_table(table: &Table) {
    let width = table.columns.len();
    assert!(table.rows.iter().all(|row| row.len() == width));
    for columns in [80, 200] {
        let text = table.text(columns);
        let long = text.lines().find(|line| line.chars().count() > columns);
        assert_eq!(long, None, "{columns}: {text}");
    }
    assert_eq!(table.head.has_plot, !table.panels.is_empty());
    if table.head.has_plot {
        check_plot(table);
    }
}

/// Returns the place of the column with a key.
#[track_caller]
pub(crate) fn column(table: &Table, key: &str) -> usize {
    let at = table.columns.iter().position(|column| column.key == key);
    at.unwrap_or_else(|| panic!("no column {key}"))
}

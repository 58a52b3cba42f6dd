//! Checks on what people see of a table, for the tests of each experiment.

use fathom_report::plot::{Panel, Series, faults};

use super::Table;

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

/// Checks the plot of a table for faults.
#[track_caller]
fn check_plot(table: &Table) {
    let drawn = |panel: &Panel| panel.series.iter().any(Series::has_values);
    assert!(table.panels.iter().all(drawn), "a panel without a value");
    let svg = table.svg();
    assert_eq!(faults(&svg), [""; 0], "{svg}");
}

/// Returns the place of the column with a key.
#[track_caller]
pub(crate) fn column(table: &Table, key: &str) -> usize {
    let at = table.columns.iter().position(|column| column.key == key);
    at.unwrap_or_else(|| panic!("no column {key}"))
}

#[test]
fn committed_plots_have_no_faults() {
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/gallery");
    let plots = std::fs::read_dir(docs)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let plots: Vec<_> = plots
        .filter(|path| path.extension().is_some_and(|end| end == "svg"))
        .collect();
    assert!(!plots.is_empty());
    for path in plots {
        let svg = std::fs::read_to_string(&path).unwrap();
        assert_eq!(faults(&svg), [""; 0], "{}", path.display());
    }
}

//! Tables for programs and documents: JSON, CSV, Markdown.

use serde_json::{Map, Value, json};

use super::column::Role;
use super::{Cell, Column, Table};

/// Formats a table as JSON, with an object per row.
pub(super) fn json(table: &Table) -> String {
    let row = |row: &Vec<Cell>| {
        let cells = table.columns.iter().zip(row);
        let cells = cells.map(|(column, cell)| (column.key.clone(), cell.json()));
        Value::Object(cells.collect::<Map<_, _>>())
    };
    let value = json!({
        "table": table.head.name,
        "about": table.head.about,
        "published": table.head.origin,
        "notes": table.notes,
        "rows": table.rows.iter().map(row).collect::<Vec<_>>(),
    });
    format!("{value:#}\n")
}

/// Formats a table as CSV: the keys of JSON, then the values of JSON; a missing one is empty.
pub(super) fn csv(table: &Table) -> String {
    let heads = table.columns.iter().map(|column| quoted(&column.key));
    let mut text = line(heads.collect());
    for row in &table.rows {
        let cells = row.iter().map(|cell| match cell.json() {
            Value::Null => String::new(),
            Value::String(text) => quoted(&text),
            value => value.to_string(),
        });
        text.push_str(&line(cells.collect()));
    }
    text
}

fn line(cells: Vec<String>) -> String {
    cells.join(",") + "\n"
}

/// Quotes a field that would be read as several, as RFC 4180 has it.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

/// Formats a table as Markdown, with the headings of the text.
pub(super) fn markdown(table: &Table) -> String {
    let shown = shown_columns(table);
    let (heads, rows) = self::shown(table);
    let is_number = |at: usize| table.rows.iter().any(|row| row[at].number().is_some());
    let ends = shown
        .iter()
        .map(|(at, _)| if is_number(*at) { "--:" } else { "---" });
    let mut text = format!("{}\n\n", escaped(&table.head.about));
    text.push_str(&markdown_line(&heads));
    text.push_str(&format!("|{}|\n", ends.collect::<Vec<_>>().join("|")));
    for row in rows {
        text.push_str(&markdown_line(&row));
    }
    text.push('\n');
    for note in &table.notes {
        text.push_str(&format!("- {}\n", escaped(note)));
    }
    if !table.head.origin.is_empty() {
        let origin = escaped(&table.head.origin);
        text.push_str(&format!("- published: {origin}\n"));
    }
    text
}

/// Returns headings and cells, as Markdown has them.
pub(super) fn shown(table: &Table) -> (Vec<String>, Vec<Vec<String>>) {
    let shown = shown_columns(table);
    let heads = shown.iter().map(|(_, column)| heading(column));
    let row = |row: &Vec<Cell>| {
        let cells = shown.iter().map(|(at, column)| column.text(&row[*at]));
        cells.collect()
    };
    (heads.collect(), table.rows.iter().map(row).collect())
}

/// Returns the columns for people that have a value in some row.
fn shown_columns(table: &Table) -> Vec<(usize, &Column)> {
    let columns = table.columns.iter().enumerate();
    let shown = columns.filter(|(at, column)| {
        let has_value = table.rows.iter().any(|row| row[*at] != Cell::Missing);
        column.role() != Role::Hidden && has_value
    });
    shown.collect()
}

/// Returns the heading of a column with that of its group, since Markdown has one line for both.
fn heading(column: &Column) -> String {
    match (column.group(), column.heading()) {
        (_, "") => column.key.clone(),
        ("", heading) => heading.to_owned(),
        (group, heading) => format!("{group}: {heading}"),
    }
}

fn markdown_line(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| escaped(cell)).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// Makes a text harmless in Markdown, also in one that is shown as HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('|', "\\|")
}

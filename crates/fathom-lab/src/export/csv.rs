//! Lines of comma-separated values, after RFC 4180 but with a line feed at the end.

use super::table::ExportCell;

/// Formats a line; a value that a run does not have is an empty cell.
///
/// A text that a spreadsheet would take for a formula begins with an apostrophe, by which
/// spreadsheets know it as text: a job may have any name. Control characters but tabs and line
/// feeds are replaced, because CSV has no escapes for them and a terminal obeys them.
#[must_use]
pub fn csv_line(cells: &[ExportCell]) -> String {
    let cells: Vec<String> = cells.iter().map(cell).collect();
    cells.join(",") + "\n"
}

fn cell(cell: &ExportCell) -> String {
    match cell {
        ExportCell::Whole(number) => number.map_or_else(String::new, |number| number.to_string()),
        ExportCell::Number(number) => number.map_or_else(String::new, |number| number.to_string()),
        ExportCell::Moment(moment) => moment
            .as_ref()
            .map_or_else(String::new, |one| one.1.clone()),
        ExportCell::Text(text) => text.as_deref().map_or_else(String::new, quoted),
    }
}

fn quoted(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let apostrophe = if is_formula { "'" } else { "" };
    let mut plain = String::from(apostrophe);
    plain.extend(text.chars().map(|one| match one {
        '\t' | '\n' => one,
        one if one.is_control() => char::REPLACEMENT_CHARACTER,
        one => one,
    }));
    // A space at an end is lost in some readers, too, if it is not quoted.
    let needs_quotes = plain.contains([',', '"', '\n', '\t']) || plain.trim() != plain;
    match needs_quotes {
        true => format!("\"{}\"", plain.replace('"', "\"\"")),
        false => plain,
    }
}

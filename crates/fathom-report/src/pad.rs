//! Cells of tables, filled up with spaces.
//!
//! Not by a width in `format!`, which panics from 65,536 on: names of hosts, jobs and columns that
//! come from a record have no limit.

/// Returns the text padded with spaces on the right, up to `width` characters.
#[must_use]
pub fn left(text: &str, width: usize) -> String {
    text.to_owned() + &spaces(text, width)
}

/// Returns the text with spaces in front of it, up to `width` characters.
#[must_use]
pub fn right(text: &str, width: usize) -> String {
    spaces(text, width) + text
}

fn spaces(text: &str, width: usize) -> String {
    " ".repeat(width.saturating_sub(text.chars().count()))
}

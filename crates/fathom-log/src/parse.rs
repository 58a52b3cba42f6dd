//! Parser of text logs: fio's, and CSV with a header.

use std::fmt;
use std::io::{self, BufRead};

use super::row::{LogRow, Shape, WORDS, Words};

/// Columns of a text log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TextLayout {
    pub(super) shape: Shape,
    /// Index of each column among a row's words.
    places: Vec<usize>,
    /// Lines before the first row.
    pub(super) skip: usize,
}

/// Returns the layout that a header describes.
pub(super) fn header(line: &str) -> io::Result<TextLayout> {
    let names = line.trim_end().split(',').map(str::trim);
    match Shape::of_columns(names) {
        Some((shape, places)) => Ok(TextLayout {
            shape,
            places,
            skip: 1,
        }),
        None => Err(bad("its columns are not those of a log")),
    }
}

impl TextLayout {
    /// Returns the layout consistent with all lines. fio's logs have no header, and only the values
    /// tell whether a sixth column is a maximum or an offset.
    pub(super) fn detect(from: impl BufRead) -> io::Result<Self> {
        let mut left: Option<Vec<Self>> = None;
        for (number, line) in (1..).zip(from.lines()) {
            let line = line?;
            let candidates = left.get_or_insert_with(|| Self::all(&line));
            candidates.retain(|layout| matches(&line, layout));
            if candidates.is_empty() {
                let columns = line.split(',').count();
                return Err(bad(&match columns {
                    0..=8 => format!("line {number} is not one of a log"),
                    _ => format!("line {number} has {columns} columns: histograms have no rows"),
                }));
            }
        }
        let candidates = left.unwrap_or_else(|| Self::all("0, 0, 0, 0, 0"));
        let first = candidates.into_iter().next();
        first.ok_or_else(|| bad("it has no lines of a log"))
    }

    /// Returns all layouts with as many columns as this line, the most likely first.
    fn all(line: &str) -> Vec<Self> {
        let columns = line.split(',').count();
        let priority = line.contains("0x");
        let shapes = [
            (false, false, false),
            (false, true, false),
            (true, false, false),
            (true, true, false),
            (false, true, true),
            (true, true, true),
        ];
        let shapes = shapes.map(|(max, offset, issued)| Shape {
            max,
            offset,
            priority,
            issued,
        });
        let layouts = shapes.into_iter().map(|shape| Self {
            shape,
            places: shape
                .columns("")
                .into_iter()
                .map(|(place, _)| place)
                .collect(),
            skip: 0,
        });
        layouts
            .filter(|layout| layout.places.len() == columns)
            .collect()
    }
}

fn matches(line: &str, layout: &TextLayout) -> bool {
    row(line, layout).is_ok_and(|row| !layout.shape.max || row.max >= row.value)
}

/// Parses a line.
pub(super) fn row(line: &str, layout: &TextLayout) -> Result<LogRow, LineError> {
    let mut words: Words = [0; WORDS];
    let mut columns = line.split(',').map(str::trim);
    for &place in &layout.places {
        let column = columns.next().ok_or(LineError::TooFewColumns)?;
        let number = match column.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => column.parse(),
        };
        words[place] = number.map_err(|_| LineError::NotANumber(column.to_owned()))?;
    }
    if columns.next().is_some() {
        return Err(LineError::TooManyColumns);
    }
    LogRow::of_words(words, layout.shape).ok_or(LineError::TooLarge)
}

/// Reason why a line is not one of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LineError {
    TooFewColumns,
    TooManyColumns,
    /// The column's text.
    NotANumber(String),
    /// A number is outside its column's range.
    TooLarge,
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFewColumns => f.write_str("it has too few columns"),
            Self::TooManyColumns => f.write_str("it has too many columns"),
            // Escaped: control characters would reach a terminal.
            Self::NotANumber(text) => write!(f, "`{}` is not a number", text.escape_debug()),
            Self::TooLarge => f.write_str("a number is too large"),
        }
    }
}

fn bad(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, columns: &[&str]) {
        let layout = TextLayout::detect(text.as_bytes()).expect(text);
        let names = layout.shape.columns("v");
        let names: Vec<_> = names.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, columns, "{text}");
        for line in text.lines() {
            let row = row(line, &layout).expect(line);
            let mut printed = Vec::new();
            row.print(layout.shape, &mut printed).expect("memory");
            assert_eq!(String::from_utf8_lossy(&printed).trim_end(), line);
        }
    }

    #[test]
    fn layouts_are_told_apart_by_all_lines() {
        let (time, bytes, offset) = ("time_ms", "bytes", "offset_bytes");
        let plain = [time, "v", "direction", bytes, "realtime"];
        check("", &plain);
        check("1, 700, 0, 4096, 0\n2, 3, 2, 512, 1", &plain);
        check(
            "1, 700, 0, 4096, 0x2003",
            &[time, "v", "direction", bytes, "priority"],
        );
        let with_offset = [time, "v", "direction", bytes, offset, "realtime"];
        check("1, 700, 0, 4096, 8192, 0\n1, 700, 1, 2, 0, 0", &with_offset);
        // The first line alone is ambiguous.
        let with_max = [time, "v", "v_max", "direction", bytes, "realtime"];
        check("1, 0, 0, 0, 0, 0\n2, 5, 9, 1, 0, 0", &with_max);
        let both = [time, "v", "v_max", "direction", bytes, offset, "priority"];
        check("1, 700, 800, 1, 4096, 8192, 0x0000", &both);
        let issued = [
            time,
            "v",
            "direction",
            bytes,
            offset,
            "realtime",
            "issued_ns",
        ];
        check("1, 700, 1, 4096, 8192, 0, 123456", &issued);
    }

    #[test]
    fn what_is_no_log_is_refused() {
        let histogram = "1, 0, 4096, ".to_owned() + &["0"; 58].join(", ");
        for (text, why) in [
            ("hello", "line 1 is not one of a log"),
            ("1, 2, 0, 4096, 0\n1, 2, 7, 4096, 0", "line 2 is not"),
            ("1, 2, 0, 4096, 0\n\n", "line 2 is not"),
            (histogram.as_str(), "61 columns: histograms have no rows"),
        ] {
            let error = TextLayout::detect(text.as_bytes())
                .expect_err(text)
                .to_string();
            assert!(error.contains(why), "{error}");
        }
        assert!(header("time_ms,x").is_err());
        let layout = header("time_ms,lat_ns,direction,bytes,realtime").expect("a log's columns");
        let error = row("1,\u{1b}[2J,0,4096,0", &layout).expect_err("no number");
        let error = error.to_string();
        assert!(
            !error.contains('\u{1b}'),
            "{error:?} would reach a terminal"
        );
    }
}

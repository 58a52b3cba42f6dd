//! Columns of text logs: fio's, which have no header, and those of CSV with one.

use std::io;

use super::numbers::{LineError, Numbers};
use super::row::{LogRow, Shape, WORDS, Words};

/// Columns of a text log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TextLayout {
    pub(super) shape: Shape,
    /// Index of each column among a row's words.
    places: Vec<usize>,
    /// The file begins with the names of the columns.
    pub(super) has_header: bool,
}

/// Returns the layout that a header describes.
pub(super) fn header(line: &str) -> io::Result<TextLayout> {
    match Shape::of_columns(names(line)) {
        Some((shape, places)) => Ok(TextLayout {
            shape,
            places,
            has_header: true,
        }),
        None => {
            let why = "its columns are not those of a log";
            Err(io::Error::new(io::ErrorKind::InvalidData, why))
        }
    }
}

/// Returns the names in a header.
pub(super) fn names(header: &str) -> impl Iterator<Item = &str> {
    header.trim_end().split(',').map(str::trim)
}

impl TextLayout {
    /// Returns all layouts of a first line, the most likely first. fio's logs have no header, and
    /// only the values tell whether a sixth column is a maximum or an offset.
    pub(super) fn all(first: &Numbers) -> Vec<Self> {
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
            priority: first.has_hex,
            issued,
        });
        let layouts = shapes.into_iter().map(|shape| Self {
            shape,
            places: shape
                .columns("")
                .into_iter()
                .map(|(place, _)| place)
                .collect(),
            has_header: false,
        });
        layouts
            .filter(|layout| layout.places.len() == first.count)
            .collect()
    }

    /// Returns the row of a line's numbers.
    #[inline]
    pub(super) fn row(&self, numbers: &Numbers) -> Result<LogRow, LineError> {
        if numbers.count != self.places.len() {
            return Err(match numbers.count < self.places.len() {
                true => LineError::TooFewColumns,
                false => LineError::TooManyColumns(numbers.count),
            });
        }
        let mut words: Words = [0; WORDS];
        for (&place, &word) in self.places.iter().zip(&numbers.words) {
            words[place] = word;
        }
        let row = LogRow::of_words(words, self.shape).ok_or_else(|| LineError::of_words(words))?;
        // A header names the maximum; without one only this distinguishes it from other columns.
        if self.shape.max && !self.has_header && row.max < row.value {
            return Err(LineError::MaximumTooSmall);
        }
        Ok(row)
    }
}

#[cfg(test)]
mod tests {
    use super::super::numbers::numbers;
    use super::*;

    #[test]
    fn the_names_of_columns_give_their_order() {
        assert!(header("time_ms,x").is_err());
        let layout = header("bytes, time_ms,realtime,lat_ns,direction\r\n").expect("a log's");
        let row = layout.row(&numbers(b"4096,1,0,700,2").expect("numbers"));
        let row = row.expect("a row");
        assert_eq!(
            (row.time_ms, row.value, row.direction, row.bytes),
            (1, 700, 2, 4096)
        );
    }

    #[test]
    fn a_row_has_the_columns_of_its_log() {
        let layout = header("time_ms,lat_ns,direction,bytes,realtime").expect("a log's columns");
        let check = |line: &str, want| {
            let found = layout.row(&numbers(line.as_bytes()).expect(line));
            assert_eq!(found.err(), want, "{line}");
        };
        check("1, 2, 0, 4096, 0", None);
        check("1, 2, 0, 4096", Some(LineError::TooFewColumns));
        check("1, 2, 0, 4096, 0, 0", Some(LineError::TooManyColumns(6)));
        check("1, 2, 3, 4096, 0", Some(LineError::UnknownDirection(3)));
        check("1, 2, 0, 4096, 2", Some(LineError::TooLarge));
    }
}

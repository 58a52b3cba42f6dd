//! Numbers of a line of a text log: a fast parser for the common form, and one for every form.

use std::fmt;

use super::row::{WORDS, Words, unknown_direction};

/// Numbers of a line, in the order of its columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Numbers {
    /// Only the first `count` are of the line.
    pub(super) words: Words,
    pub(super) count: usize,
    /// One of them is hexadecimal: only priorities are (`log_prio`).
    pub(super) has_hex: bool,
}

/// Parses the line at the start of `bytes` and returns its length with its end; `None` if it is
/// not of the common form, or does not end within `bytes`.
///
/// The common form is what fio and Fathom write: unsigned numbers of at most 19 digits, the comma
/// followed by at most one space, no other byte. Whatever it accepts, [`numbers`] parses alike.
#[inline]
pub(super) fn common_numbers(bytes: &[u8]) -> Option<(Numbers, usize)> {
    let mut found = Numbers::default();
    let mut at = 0;
    loop {
        let word = found.words.get_mut(found.count)?;
        let (value, after) = match decimal(bytes, at) {
            (0, after) if bytes.get(after) == Some(&b'x') => {
                found.has_hex = true;
                hexadecimal(bytes, at, after + 1)?
            }
            (value, after) => (value, after),
        };
        // No digit, or more than fit for certain.
        if after == at || after > at + DIGITS_MAX {
            return None;
        }
        *word = value;
        found.count += 1;
        match bytes.get(after)? {
            b',' => at = after + 1 + usize::from(bytes.get(after + 1) == Some(&b' ')),
            b'\n' => return Some((found, after + 1)),
            b'\r' if bytes.get(after + 1) == Some(&b'\n') => return Some((found, after + 2)),
            _ => return None,
        }
    }
}

/// Returns the value of the digits from `at` on, and the place after them. The value is right for
/// at most [`DIGITS_MAX`] digits.
#[inline]
fn decimal(bytes: &[u8], at: usize) -> (u64, usize) {
    let (mut value, mut after) = (0_u64, at);
    while let Some(digit) = bytes.get(after).map(|byte| byte.wrapping_sub(b'0')) {
        if digit > 9 {
            break;
        }
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        after += 1;
    }
    (value, after)
}

/// Returns the value of the hexadecimal digits from `from` on, after `0x` at `at`, and the place
/// after them; `None` unless there are 1 to 8.
#[cold]
fn hexadecimal(bytes: &[u8], at: usize, from: usize) -> Option<(u64, usize)> {
    // `00x` is not a prefix.
    if from != at + 2 {
        return None;
    }
    let digits = bytes.get(from..)?.iter().take(9);
    let digits = digits.take_while(|byte| byte.is_ascii_hexdigit()).count();
    if digits == 0 || digits > 8 {
        return None;
    }
    let text = std::str::from_utf8(&bytes[from..from + digits]).ok()?;
    let value = u64::from_str_radix(text, 16).ok()?;
    Some((value, from + digits))
}

/// Parses a line of any form, with or without its end.
pub(super) fn numbers(line: &[u8]) -> Result<Numbers, LineError> {
    let line = std::str::from_utf8(line).map_err(|_| LineError::NotText)?;
    if line.trim().is_empty() {
        return Err(LineError::Empty);
    }
    let mut found = Numbers::default();
    for column in line.split(',').map(str::trim) {
        let Some(word) = found.words.get_mut(found.count) else {
            return Err(LineError::TooManyColumns(line.split(',').count()));
        };
        found.has_hex |= column.starts_with("0x");
        *word = LineError::number(column)?;
        found.count += 1;
    }
    Ok(found)
}

/// Returns as much of a text as a message needs.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Reason why a line is not one of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LineError {
    Empty,
    NotText,
    TooLong,
    TooFewColumns,
    TooManyColumns(usize),
    /// As many columns, of a log of histograms whose first line has another number.
    OtherCount(usize),
    /// The column's text.
    NotANumber(String),
    /// A number is outside its column's range.
    TooLarge,
    /// A number that stands for no direction.
    UnknownDirection(u64),
    /// The maximum of a window is below its value.
    MaximumTooSmall,
}

impl LineError {
    /// Returns why words are no row.
    pub(super) fn of_words(words: Words) -> Self {
        unknown_direction(words).map_or(Self::TooLarge, Self::UnknownDirection)
    }

    /// Parses the number of a column, decimal or hexadecimal.
    pub(super) fn number(column: &str) -> Result<u64, Self> {
        let number = match column.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => column.parse(),
        };
        number.map_err(|error| match error.kind() {
            std::num::IntErrorKind::PosOverflow => Self::TooLarge,
            _ => Self::NotANumber(shortened(column)),
        })
    }
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("it is empty"),
            Self::NotText => f.write_str("it is not text"),
            Self::TooLong => f.write_str("it is too long"),
            Self::TooFewColumns => f.write_str("it has too few columns"),
            // Nine and more: those of a histogram are counts.
            Self::TooManyColumns(count) if *count > WORDS => {
                write!(
                    f,
                    "it has {count} columns: histograms have no rows; `fathom report` draws them"
                )
            }
            Self::OtherCount(count) => {
                write!(f, "it has {count} columns, the first line another number")
            }
            Self::TooManyColumns(_) => f.write_str("it has too many columns"),
            // Escaped: control characters would reach a terminal.
            Self::NotANumber(text) => write!(f, "`{}` is not a number", text.escape_debug()),
            Self::TooLarge => f.write_str("a number is too large"),
            Self::UnknownDirection(number) => write!(
                f,
                "direction {number} is unknown: 0 is a read, 1 a write, 2 a trim"
            ),
            Self::MaximumTooSmall => f.write_str("its maximum is below its value"),
        }
    }
}

/// Digits that fit into 64 bits, whatever they are.
const DIGITS_MAX: usize = 19;

/// Characters of a column that a message shows.
const SHOWN_MAX: usize = 40;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Lines of pieces, most of them nearly right.
    fn lines() -> impl Strategy<Value = String> {
        let column = prop_oneof![
            8 => any::<u64>().prop_map(|value| value.to_string()),
            8 => (0..100_000_u64).prop_map(|value| value.to_string()),
            2 => any::<u32>().prop_map(|value| format!("0x{value:04x}")),
            1 => "[0-9a-fx+ -]{0,22}",
            1 => "\\PC{0,4}",
        ];
        let separator =
            prop_oneof![8 => Just(", "), 4 => Just(","), 1 => Just(" ,\t"), 1 => Just(";")];
        let end =
            prop_oneof![8 => Just("\n"), 2 => Just("\r\n"), 1 => Just(" \n"), 1 => Just("\r")];
        (prop::collection::vec((column, separator), 0..10), end).prop_map(|(columns, end)| {
            let mut line = String::new();
            for (at, (column, separator)) in columns.iter().enumerate() {
                line += if at > 0 { separator } else { "" };
                line += column;
            }
            line + end
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn the_fast_parser_agrees_with_the_slow_one(line in lines(), more in "[0-9, \n]{0,20}") {
            let text = line.clone() + &more;
            if let Some((fast, length)) = common_numbers(text.as_bytes()) {
                prop_assert_eq!(text.find('\n'), Some(length - 1));
                prop_assert_eq!(numbers(&text.as_bytes()[..length]), Ok(fast));
            }
        }

        #[test]
        fn whatever_is_parsed_ends(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Some((fast, length)) = common_numbers(&bytes) {
                prop_assert_eq!(numbers(&bytes[..length]), Ok(fast));
            }
        }
    }

    #[track_caller]
    fn check(line: &str, fast: bool, want: Result<&[u64], &str>) {
        let found = numbers(line.as_bytes());
        let words = found.as_ref().map(|found| &found.words[..found.count]);
        assert_eq!(
            words.map_err(ToString::to_string),
            want.map_err(str::to_owned),
            "{line:?}"
        );
        assert_eq!(common_numbers(line.as_bytes()).is_some(), fast, "{line:?}");
    }

    #[test]
    fn the_common_form_is_parsed_fast() {
        check("1, 700, 0, 4096, 0\n", true, Ok(&[1, 700, 0, 4096, 0]));
        check("1,700,0,4096,0\r\n", true, Ok(&[1, 700, 0, 4096, 0]));
        check("1, 2, 0, 4096, 0x2003\n", true, Ok(&[1, 2, 0, 4096, 8195]));
        check("007\n", true, Ok(&[7]));
        let most = [9_999_999_999_999_999_999_u64, 0];
        check("9999999999999999999, 0\n", true, Ok(&most));
    }

    #[test]
    fn every_other_form_is_left_to_the_slow_parser() {
        check("18446744073709551615\n", false, Ok(&[u64::MAX]));
        check(
            "18446744073709551616\n",
            false,
            Err("a number is too large"),
        );
        check("00000000000000000000001\n", false, Ok(&[1]));
        check("1,  2\n", false, Ok(&[1, 2]));
        check("1, 2", false, Ok(&[1, 2]));
        check("1, +2\n", false, Ok(&[1, 2]));
        check("1, 2.5\n", false, Err("`2.5` is not a number"));
        check("1, 0x\n", false, Err("`0x` is not a number"));
        check("1, 00x7\n", false, Err("`00x7` is not a number"));
        check("1, -2\n", false, Err("`-2` is not a number"));
        check("\n", false, Err("it is empty"));
        check("", false, Err("it is empty"));
        let nine = "1, 2, 3, 4, 5, 6, 7, 8, 9\n";
        check(
            nine,
            false,
            Err("it has 9 columns: histograms have no rows; `fathom report` draws them"),
        );
        assert_eq!(numbers(b"1, \xff\n"), Err(LineError::NotText));
    }
}

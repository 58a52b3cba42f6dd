//! Text in messages: short, and without control characters that would garble a terminal.

use std::fmt;

/// Line or two for the user, of at most [`TEXT_BYTES_MAX`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(String);

impl Text {
    /// Cuts `text` to the limit, and replaces control characters other than line feeds by spaces.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut end = text.len().min(TEXT_BYTES_MAX);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let printable = |letter: char| match letter {
            '\n' => '\n',
            // Some take two bytes, a space takes one: the text does not grow.
            control if control.is_control() => ' ',
            other => other,
        };
        Self(text[..end].chars().map(printable).collect())
    }

    /// Returns `text` if [`new`](Self::new) would not change it.
    pub(crate) fn unchanged(text: &str) -> Option<Self> {
        let new = Self::new(text);
        (new.0 == text).then_some(new)
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Longest text: an error with its hint has some 200 bytes, and a path in it as many again.
pub const TEXT_BYTES_MAX: usize = 480;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_letters_and_stays_printable() {
        let long = format!("a{}", "é".repeat(300));
        assert_eq!(Text::new(&long).as_str().len(), 479);
        assert_eq!(Text::new("a\tb\u{1b}\nc\u{85}").to_string(), "a b \nc ");
        assert_eq!(Text::unchanged("a\tb"), None);
        assert_eq!(Text::unchanged("a b"), Some(Text::new("a b")));
    }
}

//! Problems of a value, relative to the value.

use std::ops::Range;

/// A problem inside one value. The caller, which knows the place of the value, turns it into a
/// [`crate::Diagnostic`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Stable code for scripts, such as `bad-suffix`.
    pub(crate) code: &'static str,
    /// Description of the problem, with the reason.
    pub(crate) why: String,
    /// Byte range of the problem in the value.
    pub(crate) at: Range<usize>,
    /// fio's behaviour, as the end of a sentence "fio …".
    pub(crate) fio: Option<Box<str>>,
    /// fio's reading of the text, as a job file would write it, if fio accepts it.
    pub(crate) reading: Option<Box<str>>,
    /// Set if fio detects it only when the job is about to run, not for `--parse-only`.
    pub(crate) when_run: bool,
    /// fio's own reaction to it, which `--warnings-fatal` depends on.
    pub(crate) fio_level: FioLevel,
    /// Remedy, in the imperative.
    pub(crate) fix: Option<String>,
}

/// fio's own reaction to a problem that Fathom warns about; observed on fio 3.33.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FioLevel {
    /// None.
    #[default]
    Silent,
    /// A note, which `--warnings-fatal` ignores.
    Note,
    /// A warning, which stops it under `--warnings-fatal`.
    Warning,
}

impl Problem {
    /// Creates a problem with these bytes of the value.
    pub(crate) fn new(code: &'static str, at: Range<usize>, why: impl Into<String>) -> Self {
        Self {
            code,
            why: why.into(),
            at,
            fio: None,
            reading: None,
            when_run: false,
            fio_level: FioLevel::Silent,
            fix: None,
        }
    }

    /// Adds fio's behaviour.
    pub(crate) fn fio(mut self, does: impl Into<String>) -> Self {
        self.fio = Some(does.into().into_boxed_str());
        self
    }

    /// Adds fio's reading.
    pub(crate) fn read_as(mut self, reading: impl Into<String>) -> Self {
        self.reading = Some(reading.into().into_boxed_str());
        self
    }

    /// Marks a problem that fio detects only when the job is about to run.
    pub(crate) fn when_run(mut self) -> Self {
        self.when_run = true;
        self
    }

    /// Sets fio's own reaction.
    pub(crate) fn fio_level(mut self, level: FioLevel) -> Self {
        self.fio_level = level;
        self
    }

    /// Adds a remedy.
    pub(crate) fn fix(mut self, how: impl Into<String>) -> Self {
        self.fix = Some(how.into());
        self
    }

    /// Converts a problem of a piece that starts `by` bytes into the value.
    pub(crate) fn shifted(mut self, by: usize) -> Self {
        self.at = self.at.start + by..self.at.end + by;
        self
    }
}

/// A part of a value with its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece<'a> {
    pub(crate) text: &'a str,
    pub(crate) at: usize,
}

impl<'a> Piece<'a> {
    /// Creates the piece that is the entire value.
    pub(crate) const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Returns its byte range in the value.
    pub(crate) const fn range(self) -> Range<usize> {
        self.at..self.at + self.text.len()
    }

    /// Splits at any of `separators` outside parentheses.
    pub(crate) fn split(self, separators: &[char]) -> Vec<Self> {
        let mut pieces = Vec::new();
        let mut depth = 0_u32;
        let mut start = 0;
        for (index, letter) in self.text.char_indices() {
            match letter {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ if depth == 0 && separators.contains(&letter) => {
                    pieces.push(self.part(start..index));
                    start = index + letter.len_utf8();
                }
                _ => {}
            }
        }
        pieces.push(self.part(start..self.text.len()));
        pieces
    }

    /// Returns a part of this piece, with a range relative to its text.
    pub(crate) fn part(self, range: Range<usize>) -> Self {
        Self {
            at: self.at + range.start,
            text: &self.text[range],
        }
    }

    /// Returns the piece without surrounding spaces.
    pub(crate) fn trim(self) -> Self {
        let front = self.text.len() - self.text.trim_start().len();
        Self {
            text: self.text.trim(),
            at: self.at + front,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_inside_parentheses_do_not_split() {
        let parts = Piece::new("(8k-4k)-(2*(4k-1)),1").split(&['-', ',']);
        let texts: Vec<_> = parts.iter().map(|p| (p.text, p.at)).collect();
        assert_eq!(texts, [("(8k-4k)", 0), ("(2*(4k-1))", 8), ("1", 19)]);
    }
}

//! What is wrong with a value, before it is known where the value stands.

use std::ops::Range;

/// A finding inside one value; the caller turns it into a [`crate::Diagnostic`] with a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Short and stable, for scripts: `bad-suffix`.
    pub(crate) code: &'static str,
    /// What is wrong, and why.
    pub(crate) why: String,
    /// The offending bytes of the value.
    pub(crate) at: Range<usize>,
    /// What fio would have done with it, as the end of "fio …".
    pub(crate) fio: Option<Box<str>>,
    /// fio's reading of the text, as a job file would say it, if fio accepts it.
    pub(crate) reading: Option<Box<str>>,
    /// fio finds out only when the job is to run, not for `--parse-only`.
    pub(crate) when_run: bool,
    /// What to write instead, in the imperative.
    pub(crate) fix: Option<String>,
}

impl Problem {
    /// A problem with these bytes of the value.
    pub(crate) fn new(code: &'static str, at: Range<usize>, why: impl Into<String>) -> Self {
        Self {
            code,
            why: why.into(),
            at,
            fio: None,
            reading: None,
            when_run: false,
            fix: None,
        }
    }

    /// Adds what fio would have done.
    pub(crate) fn fio(mut self, does: impl Into<String>) -> Self {
        self.fio = Some(does.into().into_boxed_str());
        self
    }

    /// Adds what fio takes the text for.
    pub(crate) fn read_as(mut self, reading: impl Into<String>) -> Self {
        self.reading = Some(reading.into().into_boxed_str());
        self
    }

    /// Says that fio finds out only when the job is to run.
    pub(crate) fn when_run(mut self) -> Self {
        self.when_run = true;
        self
    }

    /// Adds what to write instead.
    pub(crate) fn fix(mut self, how: impl Into<String>) -> Self {
        self.fix = Some(how.into());
        self
    }

    /// The same problem, of a piece that begins `by` bytes into the value.
    pub(crate) fn shifted(mut self, by: usize) -> Self {
        self.at = self.at.start + by..self.at.end + by;
        self
    }
}

/// A part of a value, and where in it the part begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece<'a> {
    pub(crate) text: &'a str,
    pub(crate) at: usize,
}

impl<'a> Piece<'a> {
    /// A whole value.
    pub(crate) const fn whole(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Its bytes within the value.
    pub(crate) const fn range(self) -> Range<usize> {
        self.at..self.at + self.text.len()
    }

    /// Splits at any of `separators` that stand outside parentheses.
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

    /// The piece at this range of its own text.
    pub(crate) fn part(self, range: Range<usize>) -> Self {
        Self {
            at: self.at + range.start,
            text: &self.text[range],
        }
    }

    /// Without blanks on both sides.
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
        let parts = Piece::whole("(8k-4k)-(2*(4k-1)),1").split(&['-', ',']);
        let texts: Vec<_> = parts.iter().map(|p| (p.text, p.at)).collect();
        assert_eq!(texts, [("(8k-4k)", 0), ("(2*(4k-1))", 8), ("1", 19)]);
    }
}

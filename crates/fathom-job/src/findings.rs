//! What is worth saying about values that were read, and what is wrong with those that only fio
//! reads.

use crate::problem::{Piece, Problem};
use crate::reading::{Reading, Shown};

/// Severity of a finding about a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    /// Worth knowing.
    Note,
    /// Likely not what was meant.
    Warning,
    /// The text is not documented, but fio takes it for something: the dialect decides whether
    /// that is a note or an error.
    Misread,
}

/// Findings about values that were accepted.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) found: Vec<(Problem, Weight)>,
    /// Texts that only fio reads are taken as fio takes them.
    lenient: bool,
}

impl Findings {
    pub(crate) const fn new(lenient: bool) -> Self {
        Self {
            found: Vec::new(),
            lenient,
        }
    }

    pub(crate) fn note(&mut self, problem: Problem) {
        self.found.push((problem, Weight::Note));
    }

    pub(crate) fn warn(&mut self, problem: Problem) {
        self.found.push((problem, Weight::Warning));
    }

    /// Keeps what is wrong with a text that fio reads as `reading` all the same.
    ///
    /// # Errors
    /// The problem, with fio's reading, where that is not to be followed.
    pub(crate) fn misread(
        &mut self,
        problem: Problem,
        reading: impl Into<String>,
    ) -> Result<(), Problem> {
        let problem = problem.read_as(reading);
        if !self.lenient {
            return Err(problem);
        }
        self.found.push((problem, Weight::Misread));
        Ok(())
    }

    /// Says that `4kib` is 4000 bytes.
    pub(crate) fn reversed(&mut self, piece: Piece<'_>, reversed: bool) {
        if reversed {
            self.note(
                Problem::new(
                    REVERSED_UNITS,
                    piece.range(),
                    "with kb_base=1024, `kib`, `mib`… are powers of 1000, as in fio",
                )
                .fix("use `k`, `m`… for powers of 1024, or set kb_base=1000"),
            );
        }
    }

    /// Returns the documented reading of a value, else fio's. `None` where fio accepts the text
    /// and leaves the option as it was. What neither reads is an error.
    ///
    /// Every reader that fio is more lenient than goes through here, so that what becomes of such a
    /// text is decided in one place, [`crate::build::Builder`].
    pub(crate) fn settle<T: Shown>(
        &mut self,
        documented: impl FnOnce(&mut Self) -> Result<T, Problem>,
        fio: impl FnOnce() -> Option<Reading<T>>,
    ) -> Result<Option<T>, Problem> {
        let said = self.found.len();
        documented(self).map(Some).or_else(|problem| {
            let Some(reading) = fio() else {
                return Err(problem);
            };
            // What was said of a reading that did not hold.
            self.found.truncate(said);
            self.misread(problem, reading.shown())?;
            Ok(reading.value())
        })
    }

    /// Returns the documented reading of a value that cannot be left out, else fio's.
    pub(crate) fn settle_one<T: Shown>(
        &mut self,
        documented: impl FnOnce(&mut Self) -> Result<T, Problem>,
        fio: impl FnOnce() -> Option<T>,
    ) -> Result<T, Problem> {
        let said = self.found.len();
        documented(self).or_else(|problem| {
            let Some(value) = fio() else {
                return Err(problem);
            };
            self.found.truncate(said);
            self.misread(problem, value.shown())?;
            Ok(value)
        })
    }
}

/// Said once for a whole invocation.
pub(crate) const REVERSED_UNITS: &str = "reversed-units";

//! Findings about values that were accepted, and the choice between the documented reading and
//! fio's.

use crate::problem::{Piece, Problem};
use crate::reading::{Reading, Shown};

/// Class of a finding about a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FindingClass {
    /// For information.
    Note,
    /// For information, once per invocation however many values it is about.
    NoteOnce,
    /// Probably not what the user meant.
    Warning,
    /// The text is not documented but fio accepts it: the dialect decides whether that is a note or
    /// an error.
    Misread,
}

/// Findings about values that were accepted.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) found: Vec<(Problem, FindingClass)>,
    /// Set if texts are read as fio reads them.
    lenient: bool,
}

impl Findings {
    pub(crate) const fn new(lenient: bool) -> Self {
        Self {
            found: Vec::new(),
            lenient,
        }
    }

    /// Returns whether texts are read as fio reads them.
    pub(crate) const fn reads_as_fio(&self) -> bool {
        self.lenient
    }

    pub(crate) fn note(&mut self, problem: Problem) {
        self.found.push((problem, FindingClass::Note));
    }

    pub(crate) fn warn(&mut self, problem: Problem) {
        self.found.push((problem, FindingClass::Warning));
    }

    /// Keeps the problem of a text that fio nevertheless reads as `reading`.
    ///
    /// # Errors
    /// The problem with fio's reading, unless that is to be followed.
    pub(crate) fn misread(
        &mut self,
        problem: Problem,
        reading: impl Into<String>,
    ) -> Result<(), Problem> {
        let problem = problem.read_as(reading);
        if !self.lenient {
            return Err(problem);
        }
        self.found.push((problem, FindingClass::Misread));
        Ok(())
    }

    /// Notes that `4kib` is 4000 bytes.
    pub(crate) fn reversed(&mut self, piece: Piece<'_>, reversed: bool) {
        if reversed {
            let why = "with kb_base=1024, `kib`, `mib`… are powers of 1000, as in fio";
            let problem = Problem::new("reversed-units", piece.range(), why)
                .fix("use `k`, `m`… for powers of 1024, or set kb_base=1000");
            self.found.push((problem, FindingClass::NoteOnce));
        }
    }

    /// Returns the documented reading of a value, else fio's; `None` if fio accepts the text and
    /// leaves the option unchanged. A text that neither reads is an error.
    ///
    /// Every reader that is stricter than fio goes through here, so that the fate of such a text is
    /// decided in one place, [`crate::reporter::Reporter`].
    pub(crate) fn documented_or_fio<T: Shown>(
        &mut self,
        documented: impl FnOnce(&mut Self) -> Result<T, Problem>,
        fio: impl FnOnce() -> Option<Reading<T>>,
    ) -> Result<Option<T>, Problem> {
        let said = self.found.len();
        documented(self).map(Some).or_else(|problem| {
            let Some(reading) = fio() else {
                return Err(problem);
            };
            // Drop findings of the reading that failed.
            self.found.truncate(said);
            self.misread(problem, reading.shown())?;
            Ok(reading.value())
        })
    }

    /// Returns the documented reading of a value that must be present, else fio's.
    pub(crate) fn documented_or_fio_value<T: Shown>(
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

//! The sink of diagnostics while a plan is built.

use crate::diagnostics::{Diagnostic, Diagnostics, Severity};
use crate::findings::FindingClass;
use crate::problem::Problem;
use crate::source::{Origin, Spot};

/// Collects problems with their places and decides their severity.
///
/// The dialect enters here and nowhere else: readers report a text that only fio accepts as a
/// problem with fio's reading, and `misread` makes that a note, a warning or an error.
pub(crate) struct Reporter {
    pub(crate) diagnostics: Diagnostics,
    /// Severity of a text that only fio accepts.
    misread: Severity,
    /// Codes of the notes given that are given once.
    noted: Vec<&'static str>,
}

impl Reporter {
    pub(crate) fn new(misread: Severity) -> Self {
        Self {
            diagnostics: Diagnostics::default(),
            misread,
            noted: Vec::new(),
        }
    }

    /// Reports a finding about a value.
    pub(crate) fn finding(&mut self, spot: &Spot, problem: Problem, class: FindingClass) {
        if class == FindingClass::NoteOnce {
            if self.noted.contains(&problem.code) {
                return;
            }
            self.noted.push(problem.code);
        }
        let severity = match class {
            FindingClass::Note | FindingClass::NoteOnce => Severity::Note,
            FindingClass::Warning => Severity::Warning,
            FindingClass::Misread => self.severity(&problem),
        };
        self.diagnostics
            .push(Diagnostic::at(severity, spot, problem));
    }

    /// Returns the severity of a problem. One with fio's reading is an error, or a note that states
    /// the reading: this is the only place where that is decided.
    fn severity(&self, problem: &Problem) -> Severity {
        match problem.reading {
            Some(_) => self.misread,
            None => Severity::Error,
        }
    }

    /// Reports an error of a job whose options are valid one by one. fio detects these only when
    /// the job is about to run.
    pub(crate) fn job_error(&mut self, spot: &Spot, problem: Problem) {
        let diagnostic = Diagnostic::at(self.severity(&problem), spot, problem);
        self.diagnostics.push(diagnostic.of_whole_job());
    }

    /// Returns whether texts that only fio accepts are accepted here.
    pub(crate) const fn is_lenient(&self) -> bool {
        !matches!(self.misread, Severity::Error)
    }

    /// Reports an error, or a note with fio's reading.
    pub(crate) fn error(&mut self, spot: &Spot, problem: Problem) {
        if problem.when_run {
            return self.job_error(spot, problem);
        }
        let diagnostic = Diagnostic::at(self.severity(&problem), spot, problem);
        self.diagnostics.push(diagnostic);
    }

    /// Reports an error without a place.
    pub(crate) fn error_without_place(&mut self, code: &'static str, message: String, hint: &str) {
        let origin = Origin::default();
        let diagnostic = Diagnostic::new(Severity::Error, code, message, origin, "");
        self.diagnostics.push(diagnostic.with_hint(hint));
    }

    /// Warns about a job as a whole.
    pub(crate) fn job_warning(&mut self, spot: &Spot, problem: Problem) {
        let diagnostic = Diagnostic::at(Severity::Warning, spot, problem);
        self.diagnostics.push(diagnostic.of_whole_job());
    }
}

//! Diagnostics: errors, warnings and notes, each with its place.
//!
//! ```text
//! fathom: job.fio:2:5: `q` is not a unit
//!   |
//! 2 | bs=4q
//!   |     ^
//! note: fio reads it as 4
//! hint: use k, m, g, t or p (powers of 1024 with kb_base=1024), or no unit
//! ```

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::problem::{FioLevel, Problem};
use crate::reading::NOTHING;
use crate::source::{Origin, Spot, printable};

/// Severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// For information.
    Note,
    /// Probably not what the user meant; an error with `--warnings-fatal`.
    Warning,
    /// Prevents the run.
    Error,
}

/// One error, warning or note.
///
/// It is data, not text: the same diagnostic is printed with its line and a caret, listed in the
/// JSON of `fathom lint`, or put among the notes of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Severity.
    pub severity: Severity,
    /// Stable code for scripts, such as `unknown-option`.
    pub code: &'static str,
    /// Description of the problem, with the reason.
    pub message: String,
    /// Place in a job file or on the command line.
    pub origin: Origin,
    /// The text in question, as written.
    pub offending: String,
    /// fio's behaviour, as the end of a sentence "fio …", if fio continues.
    pub fio: Option<String>,
    /// Remedy, in the imperative.
    pub hint: Option<String>,
    /// Set if it concerns the job as a whole instead of a value; fio checks such things only when
    /// the job is about to run.
    pub whole_job: bool,
    /// fio's own reaction to it.
    pub fio_level: FioLevel,
}

impl Diagnostic {
    /// Creates a diagnostic; `offending` is the text at its place.
    #[must_use]
    pub fn new(
        severity: Severity,
        code: &'static str,
        message: impl Into<String>,
        origin: Origin,
        offending: impl Into<String>,
    ) -> Self {
        Self {
            severity,
            code,
            message: message.into(),
            origin,
            offending: offending.into(),
            fio: None,
            hint: None,
            whole_job: false,
            fio_level: FioLevel::Silent,
        }
    }

    /// Adds a remedy.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn at(severity: Severity, spot: &Spot, problem: Problem) -> Self {
        let (message, fio) = match (problem.reading.as_deref(), severity) {
            (None, _) => (problem.why, problem.fio.map(String::from)),
            (Some(NOTHING), Severity::Error) => (problem.why, Some("ignores it".to_owned())),
            (Some(reading), Severity::Error) => {
                (problem.why, Some(format!("reads it as {reading}")))
            }
            (Some(NOTHING), _) => (format!("{}: ignored, as in fio", problem.why), None),
            (Some(reading), _) => {
                let message = format!("{}: read as {reading}, as in fio", problem.why);
                (message, None)
            }
        };
        Self {
            severity,
            code: problem.code,
            message,
            origin: spot.origin(),
            offending: spot.shown(),
            fio,
            hint: problem.fix,
            whole_job: false,
            fio_level: problem.fio_level,
        }
    }

    pub(crate) fn of_whole_job(self) -> Self {
        Self {
            whole_job: true,
            ..self
        }
    }

    fn render(&self, program: &str, renderer: &Renderer) -> String {
        let mut text = format!("{program}: {}\n", printable(&self.to_string()));
        if let Some(window) = self.origin.spot.as_deref().map(Spot::window) {
            let line = usize::try_from(self.origin.line.max(1)).unwrap_or(1);
            let snippet = Snippet::source(window.text.as_str())
                .line_start(line)
                .annotation(AnnotationKind::Primary.span(window.marked));
            text.push_str(&renderer.render(&[Group::with_level(self.level()).element(snippet)]));
            text.push('\n');
        }
        if let Some(fio) = &self.fio {
            text.push_str(&format!("note: fio {}\n", printable(fio)));
        }
        if let Some(hint) = &self.hint {
            text.push_str(&format!("hint: {}\n", printable(hint)));
        }
        text
    }

    const fn level(&self) -> Level<'static> {
        match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
            Severity::Note => Level::NOTE,
        }
    }

    /// Formats the place: `job.fio:14:9` or `command line, argument 3`.
    fn place(&self) -> String {
        match self.origin.line {
            0 => format!("{}, argument {}", self.origin.file, self.origin.column),
            line => format!("{}:{line}:{}", self.origin.file, self.origin.column),
        }
    }
}

impl std::fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.origin.file.is_empty() {
            write!(f, "{}: ", self.place())?;
        }
        match self.severity {
            Severity::Error => {}
            Severity::Warning => f.write_str("warning: ")?,
            Severity::Note => f.write_str("note: ")?,
        }
        f.write_str(&self.message)
    }
}

/// The diagnostics of one invocation, in the order of their places.
///
/// Duplicates are dropped (clones and `[global]` options would repeat them), and at most 200 are
/// kept: a broken file of a mebibyte must not print a mebibyte. The rest is counted, so
/// `has_errors` stays exact.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    found: Vec<Diagnostic>,
    left_out: usize,
    /// Number of errors pushed or left out, duplicates included.
    errors: usize,
}

impl Diagnostics {
    /// Adds a diagnostic, unless it is a duplicate or the limit is reached.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.errors += usize::from(diagnostic.severity == Severity::Error);
        if self.is_full() {
            self.left_out += usize::from(diagnostic.severity == Severity::Error);
        } else if !self.found.contains(&diagnostic) {
            self.found.push(diagnostic);
        }
    }

    /// Returns the diagnostics in order.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.found.iter()
    }

    /// Returns whether there are no diagnostics.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Returns whether there is an error.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.left_out > 0 || self.has(Severity::Error)
    }

    /// Returns whether there is a warning.
    #[must_use]
    pub fn has_warnings(&self) -> bool {
        self.has(Severity::Warning)
    }

    /// Adds later diagnostics, except at places that already have one, and sorts all by place.
    pub fn merge(&mut self, later: Self) {
        let told = self.found.len();
        for diagnostic in later.found {
            let same = |found: &Diagnostic| found.origin.is_placed_as(&diagnostic.origin);
            if !self.found[..told].iter().any(same) {
                self.push(diagnostic);
            }
        }
        self.left_out += later.left_out;
        self.sort();
    }

    /// Renders all diagnostics as text, each with its source line. `program` is the name the
    /// program was called by.
    #[must_use]
    pub fn render(&self, program: &str, color: bool) -> String {
        let renderer = if color {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        let mut text = String::new();
        for (index, diagnostic) in self.found.iter().enumerate() {
            text.push_str(if index > 0 { "\n" } else { "" });
            text.push_str(&diagnostic.render(program, &renderer));
        }
        if self.left_out > 0 {
            text.push_str(&format!("\n{program}: and {} more errors\n", self.left_out));
        }
        text
    }

    /// Formats notes and warnings as fio prints its own, a line each: `note: …`. Excerpts and
    /// remedies for a whole job would stand in the way of programs that look for fio's lines.
    #[must_use]
    pub fn notes_as_fio(&self) -> String {
        let line = |found: &Diagnostic| {
            let hint = found.hint.as_ref().map(|hint| format!("; {hint}"));
            let line = match found.whole_job {
                true => found.message.clone(),
                false => format!(
                    "{} ({}{})",
                    found.message,
                    found.place(),
                    hint.unwrap_or_default()
                ),
            };
            format!("note: {}\n", printable(&line))
        };
        self.found.iter().map(line).collect()
    }

    /// Returns whether the limit is reached.
    pub(crate) const fn is_full(&self) -> bool {
        self.found.len() >= SHOWN_MAX
    }

    /// Counts an error beyond the limit.
    pub(crate) const fn leave_out(&mut self) {
        self.left_out += 1;
        self.errors += 1;
    }

    /// Returns the number of errors so far, which never decreases.
    pub(crate) const fn errors(&self) -> usize {
        self.errors
    }

    /// Sorts by line within each file; files keep their order.
    pub(crate) fn sort(&mut self) {
        let mut files: Vec<String> = Vec::new();
        for found in &self.found {
            if !files.contains(&found.origin.file) {
                files.push(found.origin.file.clone());
            }
        }
        self.found.sort_by_key(|found| {
            let file = files.iter().position(|file| *file == found.origin.file);
            (file, found.origin.line, found.origin.column)
        });
    }

    /// Turns errors of jobs as a whole into warnings.
    pub(crate) fn pass_whole_jobs(&mut self) {
        for diagnostic in &mut self.found {
            if diagnostic.whole_job && diagnostic.severity == Severity::Error {
                diagnostic.severity = Severity::Warning;
            }
        }
    }

    /// Turns fatal warnings into errors, for `--warnings-fatal`. Under fio's name (`lenient`) these
    /// are the warnings that fio has too; else all but those that fio only notes.
    pub(crate) fn make_warnings_fatal(&mut self, lenient: bool) {
        for diagnostic in &mut self.found {
            let is_fatal = match diagnostic.fio_level {
                FioLevel::Silent => !lenient,
                FioLevel::Note => false,
                FioLevel::Warning => true,
            };
            if diagnostic.severity == Severity::Warning && is_fatal {
                diagnostic.severity = Severity::Error;
            }
        }
    }

    fn has(&self, severity: Severity) -> bool {
        self.found.iter().any(|found| found.severity == severity)
    }
}

/// Limit of diagnostics kept; nobody reads more. The rest is counted.
const SHOWN_MAX: usize = 200;

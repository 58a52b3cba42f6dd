//! Everything that was found wrong, or worth saying, with its place.
//!
//! ```text
//! fathom: job.fio:2:4: `4q` has no unit that is known
//!   |
//! 2 | bs=4q
//!   |    ^^
//! note: fio would read 4
//! hint: write `4k`
//! ```

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::problem::Problem;
use crate::reading::NOTHING;
use crate::source::{Origin, Spot, printable};

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Likely not what was meant; an error with `--warnings-fatal`.
    Warning,
    /// The run is refused.
    Error,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How much it matters.
    pub severity: Severity,
    /// What kind of finding it is, for scripts: `unknown-option`.
    pub code: &'static str,
    /// What is wrong, and why.
    pub message: String,
    /// Where it stands.
    pub origin: Origin,
    /// The offending text as it was written.
    pub offending: String,
    /// What fio would have done, where fio goes on.
    pub fio: Option<String>,
    /// What to do about it, in the imperative.
    pub hint: Option<String>,
    /// It concerns the job as a whole, not one value: fio looks at that only when the job is to
    /// run.
    pub whole_job: bool,
}

impl Diagnostic {
    /// A finding at a place; `offending` is what stands there.
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
        }
    }

    /// Adds what to do about it.
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
            offending: spot.text().to_owned(),
            fio,
            hint: problem.fix,
            whole_job: false,
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

    /// `job.fio:14:9`, or what the command line calls it.
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

/// All findings of one invocation, in the order of their places.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    found: Vec<Diagnostic>,
    left_out: usize,
    /// Every error that was pushed or left out, repeated ones too.
    errors: usize,
}

impl Diagnostics {
    /// Adds a finding, unless the same one stands here already or there are too many.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.errors += usize::from(diagnostic.severity == Severity::Error);
        if self.is_full() {
            self.left_out += usize::from(diagnostic.severity == Severity::Error);
        } else if !self.found.contains(&diagnostic) {
            self.found.push(diagnostic);
        }
    }

    /// The findings in order.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.found.iter()
    }

    /// Whether nothing was found.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Whether anything forbids the run.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.left_out > 0 || self.has(Severity::Error)
    }

    /// Whether anything is a warning.
    #[must_use]
    pub fn has_warnings(&self) -> bool {
        self.has(Severity::Warning)
    }

    /// Adds what was found later, unless something is refused at that place already; all of it
    /// in the order of its places.
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

    /// All findings as text for people, under the name the program was called by, each with the
    /// line it is about.
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

    /// Whether there is no room for more.
    pub(crate) const fn is_full(&self) -> bool {
        self.found.len() >= SHOWN_MAX
    }

    /// Counts an error that there is no room for.
    pub(crate) const fn leave_out(&mut self) {
        self.left_out += 1;
        self.errors += 1;
    }

    /// How many errors there have been so far; grows with each.
    pub(crate) const fn errors(&self) -> usize {
        self.errors
    }

    /// Puts the findings of each file in the order of its lines; files stay as they came.
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

    /// Makes warnings of what is wrong with jobs as a whole.
    pub(crate) fn pass_whole_jobs(&mut self) {
        for diagnostic in &mut self.found {
            if diagnostic.whole_job && diagnostic.severity == Severity::Error {
                diagnostic.severity = Severity::Warning;
            }
        }
    }

    /// Turns the warnings with a fatal code into errors, for `--warnings-fatal`.
    pub(crate) fn make_warnings_fatal(&mut self, is_fatal: impl Fn(&str) -> bool) {
        for diagnostic in &mut self.found {
            if diagnostic.severity == Severity::Warning && is_fatal(diagnostic.code) {
                diagnostic.severity = Severity::Error;
            }
        }
    }

    fn has(&self, severity: Severity) -> bool {
        self.found.iter().any(|found| found.severity == severity)
    }
}

/// More than this nobody reads; the rest is counted.
const SHOWN_MAX: usize = 200;

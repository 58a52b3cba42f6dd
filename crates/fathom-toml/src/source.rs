//! Text of a file, and the problems found in it.

use std::cell::RefCell;
use std::ops::Range;

use fathom_job::Origin;
use toml::Spanned;
use toml::de::DeTable;

use crate::Fields;

/// Kind of file, as messages name it.
#[derive(Clone, Copy, Debug)]
pub struct FileKind {
    /// Noun with its article: `a machine file`.
    pub noun: &'static str,
    /// Document that explains the keys.
    pub document: &'static str,
    /// Folder of examples.
    pub examples: &'static str,
}

/// A file and the problems found in it.
#[derive(Debug)]
pub struct Source<'a> {
    file: &'a str,
    text: &'a str,
    kind: FileKind,
    problems: RefCell<Vec<TomlProblem>>,
}

/// A problem of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TomlProblem {
    /// Kind.
    pub kind: TomlProblemKind,
    /// Place in the file.
    pub origin: Origin,
    /// Description, with the reason.
    pub message: String,
    /// Remedy, in the imperative; may be empty.
    pub hint: String,
}

/// Kind of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TomlProblemKind {
    /// The file is not TOML.
    NotToml,
    /// A table lacks a key.
    MissingKey,
    /// A key that the table does not have.
    UnknownKey,
    /// A value of the wrong type or outside its range.
    BadValue,
    /// Values contradict each other.
    MakesNoSense,
}

impl<'a> Source<'a> {
    /// Creates a source without problems; `text` is the content of `file`.
    #[must_use]
    pub const fn new(file: &'a str, text: &'a str, kind: FileKind) -> Self {
        Self {
            file,
            text,
            kind,
            problems: RefCell::new(Vec::new()),
        }
    }

    /// Parses the text; `None` if it is not TOML.
    pub fn parse(&self) -> Option<Spanned<DeTable<'a>>> {
        let (document, errors) = DeTable::parse_recoverable(self.text);
        for error in &errors {
            let at = error.span().unwrap_or(0..0);
            let why = format!("not valid TOML: {}", error.message());
            let hint = format!("see the examples in {}", self.kind.examples);
            self.problem(&at, TomlProblemKind::NotToml, why, hint);
        }
        errors.is_empty().then_some(document)
    }

    /// Returns the outermost table of a parsed document.
    pub fn top<'b>(&'b self, document: &'b Spanned<DeTable<'a>>) -> Fields<'b> {
        Fields::new(self, document.get_ref(), 0..0, "")
    }

    /// Notes a problem at these bytes.
    pub fn problem(
        &self,
        at: &Range<usize>,
        kind: TomlProblemKind,
        why: impl Into<String>,
        hint: impl Into<String>,
    ) {
        let problem = TomlProblem {
            kind,
            origin: self.origin(at),
            message: why.into(),
            hint: hint.into(),
        };
        self.problems.borrow_mut().push(problem);
    }

    /// Notes a problem whose place is known, perhaps in another file.
    pub fn push(&self, problem: TomlProblem) {
        self.problems.borrow_mut().push(problem);
    }

    /// Returns whether no problem was noted so far.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.problems.borrow().is_empty()
    }

    /// Returns the place of these bytes.
    #[must_use]
    pub fn origin(&self, at: &Range<usize>) -> Origin {
        Origin::in_text(self.file, self.text, at.clone())
    }

    /// Returns the text of these bytes.
    pub(crate) fn slice(&self, at: &Range<usize>) -> &'a str {
        self.text.get(at.clone()).unwrap_or_default()
    }

    pub(crate) const fn kind(&self) -> FileKind {
        self.kind
    }

    /// Returns all problems, from top to bottom; those of other files last.
    #[must_use]
    pub fn into_problems(self) -> Vec<TomlProblem> {
        let mut problems = self.problems.into_inner();
        problems.sort_by_key(|problem| {
            let origin = &problem.origin;
            (origin.file != self.file, origin.line, origin.column)
        });
        problems
    }
}

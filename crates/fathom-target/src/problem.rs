//! Problems of a target file.

use std::fmt;

use fathom_job::{Diagnostic, Diagnostics, Severity};
use fathom_toml::{TomlProblem, TomlProblemKind};

/// Everything that is wrong with a target file, from top to bottom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetFileError {
    /// Problems; at least one.
    pub problems: Vec<TomlProblem>,
}

impl TargetFileError {
    /// Converts the problems into diagnostics, with the source line and a caret.
    #[must_use]
    pub fn diagnostics(&self) -> Diagnostics {
        let mut diagnostics = Diagnostics::default();
        for problem in &self.problems {
            let code = code(problem.kind);
            let origin = problem.origin.clone();
            let offending = origin.text().to_owned();
            let message = problem.message.clone();
            let found = Diagnostic::new(Severity::Error, code, message, origin, offending);
            diagnostics.push(match problem.hint.as_str() {
                "" => found,
                hint => found.with_hint(hint),
            });
        }
        diagnostics
    }
}

const fn code(kind: TomlProblemKind) -> &'static str {
    match kind {
        TomlProblemKind::NotToml => "target_not_toml",
        TomlProblemKind::MissingKey => "target_missing_key",
        TomlProblemKind::UnknownKey => "target_unknown_key",
        TomlProblemKind::BadValue => "target_bad_value",
        TomlProblemKind::MakesNoSense => "target_makes_no_sense",
    }
}

impl fmt::Display for TargetFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            let origin = &problem.origin;
            if !origin.file.is_empty() {
                write!(f, "{}:{}:{}: ", origin.file, origin.line, origin.column)?;
            }
            f.write_str(&problem.message)?;
            if !problem.hint.is_empty() {
                write!(f, "\nhint: {}", problem.hint)?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for TargetFileError {}

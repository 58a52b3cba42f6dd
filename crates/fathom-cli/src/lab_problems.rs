//! Problems of a lab file, as messages with the source line and a caret.

use fathom_job::{Diagnostic, Diagnostics, Severity};
use fathom_toml::{TomlProblem, TomlProblemKind};

/// Converts problems into diagnostics.
pub(crate) fn diagnostics(problems: &[TomlProblem]) -> Diagnostics {
    let mut diagnostics = Diagnostics::default();
    for problem in problems {
        let origin = problem.origin.clone();
        let offending = origin.text().to_owned();
        let message = problem.message.clone();
        let code = code(problem.kind);
        let found = Diagnostic::new(Severity::Error, code, message, origin, offending);
        diagnostics.push(match problem.hint.as_str() {
            "" => found,
            hint => found.with_hint(hint),
        });
    }
    diagnostics
}

const fn code(kind: TomlProblemKind) -> &'static str {
    match kind {
        TomlProblemKind::NotToml => "lab_not_toml",
        TomlProblemKind::MissingKey => "lab_missing_key",
        TomlProblemKind::UnknownKey => "lab_unknown_key",
        TomlProblemKind::BadValue => "lab_bad_value",
        TomlProblemKind::MakesNoSense => "lab_makes_no_sense",
    }
}

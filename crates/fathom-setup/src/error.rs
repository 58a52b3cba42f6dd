//! Errors of a run: every problem at once, each with its place in the job file.

use std::fmt;

use fathom_core::Errno;
use fathom_host::safety::Refusal;
use fathom_job::{Diagnostic, Diagnostics, Origin, Severity};

use crate::problem_kind::ProblemKind;

/// Error of a run that could not be started or completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunError {
    /// All problems, in the order of the jobs; at least one.
    pub problems: Vec<RunProblem>,
}

/// One problem that prevents a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunProblem {
    /// Kind, which determines the code in diagnostics and records.
    pub kind: ProblemKind,
    /// Name of the job; empty if the problem concerns none in particular.
    pub job: String,
    /// Place of the option at fault, or else of the job.
    pub origin: Origin,
    /// Message: what failed, where, why.
    pub message: String,
    /// Remedy, in the imperative.
    pub hint: Option<Box<str>>,
    /// Error of the job, where it ends this job alone and the job would not find it by itself.
    pub errno: Option<Errno>,
}

impl RunProblem {
    /// Creates a problem without a place or a hint.
    #[must_use]
    pub fn new(kind: ProblemKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            job: String::new(),
            origin: Origin::default(),
            message: message.into(),
            hint: None,
            errno: None,
        }
    }

    /// Sets the error with which the job fails if it fails alone.
    #[must_use]
    pub const fn errno(mut self, errno: Errno) -> Self {
        self.errno = Some(errno);
        self
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into().into_boxed_str());
        self
    }

    /// Sets the place: that of the option, the job's own or inherited, or else that of the job.
    #[must_use]
    pub fn at(mut self, job: &fathom_job::Job, option: &str) -> Self {
        job.name.clone_into(&mut self.job);
        self.origin = job.place(&[option]).clone();
        self
    }

    /// Converts the problem into a diagnostic of the parser, with this message.
    pub fn diagnostic(&self, message: String) -> Diagnostic {
        let origin = self.origin.clone();
        let offending = origin.text().to_owned();
        let found = Diagnostic::new(
            Severity::Error,
            self.kind.code(),
            message,
            origin,
            offending,
        );
        match &self.hint {
            Some(hint) => found.with_hint(hint.clone()),
            None => found,
        }
    }
}

impl RunError {
    /// Converts the problems into diagnostics of the parser, with the source line and a caret under
    /// the option at fault.
    #[must_use]
    pub fn diagnostics(&self) -> Diagnostics {
        let mut diagnostics = Diagnostics::default();
        for problem in &self.problems {
            let message = match problem.job.as_str() {
                "" => problem.message.clone(),
                job => format!("job `{job}`: {}", problem.message),
            };
            diagnostics.push(problem.diagnostic(message));
        }
        diagnostics
    }
}

impl From<RunProblem> for RunError {
    fn from(problem: RunProblem) -> Self {
        Self {
            problems: vec![problem],
        }
    }
}

impl From<Refusal> for RunProblem {
    fn from(refusal: Refusal) -> Self {
        let kind = match refusal {
            Refusal::NoSuchDevice { .. } => ProblemKind::NoSuchDevice,
            Refusal::FileAmongDevices { .. } => ProblemKind::FileAmongDevices,
            Refusal::InUse { .. } => ProblemKind::DeviceInUse,
            Refusal::Harmful { .. } => ProblemKind::HarmfulDevice,
            Refusal::KernelInterface { .. } => ProblemKind::KernelInterface,
            Refusal::NotPassthrough { .. } => ProblemKind::NoSuchDevice,
            Refusal::NoOffsets { .. } => ProblemKind::NoOffsets,
        };
        Self::new(kind, refusal.to_string()).hint(refusal.hint())
    }
}

impl fmt::Display for RunProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.origin.file.as_str(), self.origin.line) {
            ("", _) => {}
            (file, 0) => write!(f, "{file}: ")?,
            (file, line) => write!(f, "{file}:{line}: ")?,
        }
        if !self.job.is_empty() {
            write!(f, "job `{}`: ", self.job)?;
        }
        f.write_str(&self.message)
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
            if let Some(hint) = &problem.hint {
                write!(f, "\nhint: {hint}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for RunError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_has_place_and_hint() {
        let mut problem =
            RunProblem::new(ProblemKind::NoSize, "you need to specify size=").hint("add size=1g");
        assert_eq!(problem.to_string(), "you need to specify size=");
        problem.job = "t".into();
        problem.origin.file = "a.fio".into();
        problem.origin.line = 3;
        let error = RunError::from(problem);
        let expected = "a.fio:3: job `t`: you need to specify size=\nhint: add size=1g";
        assert_eq!(error.to_string(), expected);
    }
}

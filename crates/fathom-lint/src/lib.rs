//! Rules that flag jobs which will not measure what they appear to, before they run.
//!
//! A rule is a row: its name, what it is about, and a function that looks at one job (a `View`)
//! and finds something or not. Rules are pure: what they must know of the machine was looked up
//! before and is handed to them as `Facts`. What a finished run says of itself is `validity.rs`;
//! the parser's own warnings are findings too, and not repeated here.
#![forbid(unsafe_code)]

mod cache;
mod content;
mod facts;
mod idle;
mod logs;
mod pace;
mod queue;
mod sharing;
mod view;

use fathom_job::{Diagnostic, Origin, Plan, Settings, Severity};
use fathom_record::Warning;
use fathom_setup::check::pollers::POLLERS;
use fathom_setup::translate::JobSetup;
use fathom_setup::{Host, Preflight, preflight};

use self::facts::Facts;
use self::view::View;

/// Something that a rule found.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The jobs it is about.
    pub jobs: Vec<String>,
    /// Message and place.
    pub diagnostic: Diagnostic,
}

/// Looks at a plan and at this machine; nothing is started, made or written. What a run would
/// refuse comes as errors.
#[must_use]
pub fn lint(plan: &Plan, settings: &Settings) -> Vec<Finding> {
    let Preflight {
        setups,
        warnings,
        problems,
    } = preflight(plan, settings, Host::Local);
    let refused = problems.iter().map(|problem| Finding {
        jobs: match problem.job.as_str() {
            "" => Vec::new(),
            job => vec![job.to_owned()],
        },
        diagnostic: problem.diagnostic(problem.message.clone()),
    });
    // Rules of this crate say more of those.
    let warnings = warnings.iter().filter(|warning| warning.code != POLLERS);
    let warned = warnings.map(|warning| of_run(warning, plan));
    let mut findings: Vec<_> = refused.chain(warned).collect();
    findings.extend(judge(&setups, &Facts::look(&setups)));
    findings
}

/// Converts a warning that a run would start with.
fn of_run(warning: &Warning, plan: &Plan) -> Finding {
    let (code, at) = match warning.code.as_str() {
        "steady_window_beyond_run" => ("steady_window_beyond_run", "steadystate_duration"),
        "ioscheduler_without_device" => ("ioscheduler_without_device", "ioscheduler"),
        "size_beyond_device" => ("size_beyond_device", "size"),
        _ => ("warning", ""),
    };
    let job = plan.jobs.iter().find(|job| job.name == warning.job);
    let origin = job.map_or_else(Origin::default, |job| job.place(&[at]).clone());
    let offending = origin.text().to_owned();
    let message = warning.message.clone();
    let diagnostic = Diagnostic::new(Severity::Warning, code, message, origin, offending);
    Finding {
        jobs: vec![warning.job.clone()],
        diagnostic: diagnostic.with_hint(warning.hint.clone()),
    }
}

/// The rules: name, and what each is about.
pub fn rules() -> impl Iterator<Item = (&'static str, &'static str)> {
    table().map(|rule| (rule.name, rule.about))
}

/// Returns the findings of all rules on a plan. Equal findings at the same place (mostly in
/// inherited options) are merged.
fn judge(setups: &[JobSetup], facts: &Facts) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for view in View::of_all(setups, facts) {
        for rule in table() {
            let Some(fault) = (rule.find)(&view) else {
                continue;
            };
            let name = view.job.name.clone();
            let found = fault.told(rule.name, &view);
            let same = |known: &&mut Finding| known.diagnostic == found;
            match findings.iter_mut().find(same) {
                Some(known) => known.jobs.push(name),
                None => findings.push(Finding {
                    jobs: vec![name],
                    diagnostic: found,
                }),
            }
        }
    }
    findings
}

/// Rule on a single job.
struct Rule {
    /// Stable, for scripts.
    name: &'static str,
    about: &'static str,
    find: fn(&View<'_>) -> Option<Fault>,
}

impl Rule {
    const fn new(
        name: &'static str,
        about: &'static str,
        find: fn(&View<'_>) -> Option<Fault>,
    ) -> Self {
        Self { name, about, find }
    }
}

/// Finding of a rule.
struct Fault {
    /// The options at fault: the first that was written is shown.
    at: &'static [&'static str],
    /// Consequence if the job runs as it is.
    message: String,
    /// Remedy.
    fix: String,
}

impl Fault {
    fn new(
        at: &'static [&'static str],
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> Option<Self> {
        Some(Self {
            at,
            message: message.into(),
            fix: fix.into(),
        })
    }

    fn told(self, rule: &'static str, view: &View<'_>) -> Diagnostic {
        let origin = view.job.place(self.at).clone();
        let offending = origin.text().to_owned();
        Diagnostic::new(Severity::Warning, rule, self.message, origin, offending)
            .with_hint(self.fix)
    }
}

/// All rules, by subject.
fn table() -> impl Iterator<Item = &'static Rule> {
    let subjects = [
        cache::RULES,
        queue::RULES,
        pace::RULES,
        sharing::RULES,
        content::RULES,
        logs::RULES,
        idle::RULES,
    ];
    subjects.into_iter().flatten()
}

#[cfg(test)]
mod tests;

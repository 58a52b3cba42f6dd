//! Rules that flag jobs which will not measure what they appear to, before they run.
//!
//! A rule is a table row: name, subject, and a function from one job (a `JobView`) to at most one
//! finding. Rules are pure: facts about the machine are gathered beforehand and passed in as
//! `Facts`, so that tests can invent any machine. Checks of a finished run are in `validity.rs` of
//! fathom-run; the parser's warnings are not repeated here.
#![forbid(unsafe_code)]

mod cache;
mod content;
mod facts;
mod idle;
mod logs;
mod pace;
mod queue;
mod ranks;
mod sharing;
mod unconnected_files;
mod view;

use fathom_job::{Diagnostic, Origin, Plan, Settings, Severity};
use fathom_setup::translate::JobSetup;
use fathom_setup::{Host, PlanWarning, PlanWarningKind, Preflight, preflight};

use self::facts::Facts;
use self::unconnected_files::UnconnectedFiles;
use self::view::JobView;

/// Finding of a rule, or of the preflight.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Names of the jobs concerned.
    pub jobs: Vec<String>,
    /// Message and place.
    pub diagnostic: Diagnostic,
}

/// Checks a plan on this machine. Starts, creates and writes nothing. Problems for which a run
/// would refuse the plan are returned as errors.
#[must_use]
pub fn lint(plan: &Plan, settings: &Settings) -> Vec<Finding> {
    let Preflight {
        setups,
        warnings,
        problems,
    } = preflight(plan, settings, Host::Local(&UnconnectedFiles));
    let refused = problems.iter().map(|problem| Finding {
        jobs: match problem.job.as_str() {
            "" => Vec::new(),
            job => vec![job.to_owned()],
        },
        diagnostic: problem.diagnostic(problem.message.clone()),
    });
    // A rule of this crate reports those in more detail.
    let reported = |warning: &&PlanWarning| warning.kind == PlanWarningKind::OffloadPollers;
    let warnings = warnings.iter().filter(|warning| !reported(warning));
    let warned = warnings.map(|warning| of_run(warning, plan));
    let mut findings: Vec<_> = refused.chain(warned).collect();
    findings.extend(judge(&setups, &Facts::gather(&setups)));
    findings
}

/// Converts a warning that a run would start with.
fn of_run(warning: &PlanWarning, plan: &Plan) -> Finding {
    let (code, at) = (warning.kind.code(), warning.kind.option());
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

/// Returns name and subject of each rule.
pub fn rules() -> impl Iterator<Item = (&'static str, &'static str)> {
    table().map(|rule| (rule.name, rule.about))
}

/// Returns the findings of all rules on a plan. Equal findings at the same place (mostly in
/// inherited options) are merged.
fn judge(setups: &[JobSetup], facts: &Facts) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for view in JobView::of_all(setups, facts) {
        for rule in table() {
            let Some(rule_match) = (rule.find)(&view) else {
                continue;
            };
            let name = view.job.name.clone();
            let found = rule_match.into_diagnostic(rule.name, &view);
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

/// Rule about a single job.
struct Rule {
    /// Stable, for scripts.
    name: &'static str,
    about: &'static str,
    find: fn(&JobView<'_>) -> Option<RuleMatch>,
}

impl Rule {
    const fn new(
        name: &'static str,
        about: &'static str,
        find: fn(&JobView<'_>) -> Option<RuleMatch>,
    ) -> Self {
        Self { name, about, find }
    }
}

/// Finding of a rule.
struct RuleMatch {
    /// Options concerned; the first one that was given is shown.
    at: &'static [&'static str],
    /// Consequence if the job runs as it is.
    message: String,
    /// Remedy.
    fix: String,
}

impl RuleMatch {
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

    fn into_diagnostic(self, rule: &'static str, view: &JobView<'_>) -> Diagnostic {
        let origin = view.job.place(self.at).clone();
        let offending = origin.text().to_owned();
        Diagnostic::new(Severity::Warning, rule, self.message, origin, offending)
            .with_hint(self.fix)
    }
}

/// Returns all rules, by subject.
fn table() -> impl Iterator<Item = &'static Rule> {
    let subjects = [
        cache::RULES,
        queue::RULES,
        pace::RULES,
        sharing::RULES,
        content::RULES,
        logs::RULES,
        idle::RULES,
        ranks::RULES,
    ];
    subjects.into_iter().flatten()
}

#[cfg(test)]
mod tests;

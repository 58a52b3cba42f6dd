//! `fathom lint …`: common measurement mistakes in a plan.

use std::ffi::OsString;
use std::io;

use fathom_job::{Diagnostic, Diagnostics, Dialect, Invocation, Severity, parse_leniently};
use fathom_lint::Finding;
use serde_json::{Value, json};

use crate::environment::Process;
use crate::exit::ProgramEnd;
use crate::output::{self, StandardStream};
use crate::words;

/// Parses the arguments as `fathom run` does, and prints the findings.
pub(crate) fn run(words: &[OsString]) -> ProgramEnd {
    let (own, words): (Vec<OsString>, Vec<OsString>) =
        (words.iter().cloned()).partition(|word| word == "--json" || word == "--rules");
    let has = |switch: &str| own.iter().any(|word| word == switch);
    if has("--rules") {
        return output::show(&rules(has("--json")), NAME, ProgramEnd::Printed);
    }
    let words = match words::to_text(&words) {
        Ok(words) => words,
        Err(message) => return refuse(&format!("fathom: {message}\n")),
    };
    match parse_leniently(&words, &Process::new()) {
        Ok(Invocation::Run {
            plan,
            settings,
            notes,
        }) => {
            let mut findings: Vec<_> = notes.iter().map(from_parser).collect();
            findings.extend(fathom_lint::lint(&plan, &settings));
            findings.sort_by_key(|finding| {
                let origin = &finding.diagnostic.origin;
                (origin.file.clone(), origin.line, origin.column)
            });
            print(&findings, has("--json"))
        }
        Err(refusal) => refuse(&output::render(&refusal.diagnostics, Dialect::Fathom)),
        Ok(_) => refuse("fathom: lint: no job to check\nhint: run `fathom lint --help`\n"),
    }
}

fn refuse(text: &str) -> ProgramEnd {
    output::print(StandardStream::Error, text);
    ProgramEnd::Refused
}

/// Converts a warning or note of the parser to a finding.
fn from_parser(note: &Diagnostic) -> Finding {
    Finding {
        jobs: Vec::new(),
        diagnostic: note.clone(),
    }
}

fn print(findings: &[Finding], as_data: bool) -> ProgramEnd {
    let end = ProgramEnd::Ran {
        failed_jobs: findings.len(),
        tolerated_errors: 0,
        interrupted: false,
    };
    if as_data {
        let list: Vec<_> = findings.iter().map(to_json).collect();
        output::show(&format!("{:#}\n", json!({ "findings": list })), NAME, end)
    } else if findings.is_empty() {
        output::print(StandardStream::Error, "fathom: lint: no findings\n");
        end
    } else {
        output::show(&text(findings), NAME, end)
    }
}

fn text(findings: &[Finding]) -> String {
    let colour = output::has_colour(&io::stdout());
    let mut text = String::new();
    for finding in findings {
        let mut one = Diagnostics::default();
        let Diagnostic { message, code, .. } = &finding.diagnostic;
        one.push(Diagnostic {
            message: format!("{}{message} [{code}]", job_prefix(&finding.jobs)),
            ..finding.diagnostic.clone()
        });
        text.push_str(if text.is_empty() { "" } else { "\n" });
        text.push_str(&one.render("fathom", colour));
    }
    text
}

/// Returns ``job `a`: ``, or the first two of several jobs and the number of the others.
fn job_prefix(jobs: &[String]) -> String {
    match jobs {
        [] => String::new(),
        [job] => format!("job `{job}`: "),
        [one, other] => format!("jobs `{one}` and `{other}`: "),
        [one, other, more @ ..] => format!("jobs `{one}`, `{other}` and {} more: ", more.len()),
    }
}

/// Converts a finding to JSON.
fn to_json(finding: &Finding) -> Value {
    let Diagnostic {
        severity,
        code,
        message,
        origin,
        offending,
        hint,
        ..
    } = &finding.diagnostic;
    json!({
        "rule": code,
        "severity": match severity {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        },
        "jobs": finding.jobs,
        "file": origin.file,
        "line": origin.line,
        "column": origin.column,
        "text": offending,
        "message": message,
        "fix": hint,
    })
}

/// Prefix of messages.
const NAME: &str = "fathom: lint";

fn rules(as_data: bool) -> String {
    if as_data {
        let list =
            fathom_lint::rules().map(|(name, about)| json!({ "rule": name, "about": about }));
        return format!("{:#}\n", json!({ "rules": list.collect::<Vec<_>>() }));
    }
    let width = fathom_lint::rules().map(|(name, _)| name.len()).max();
    let width = width.unwrap_or(0);
    fathom_lint::rules()
        .map(|(name, about)| format!("{name:width$}  {about}\n"))
        .collect()
}

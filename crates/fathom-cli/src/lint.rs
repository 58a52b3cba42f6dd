//! `fathom lint …`: what in a plan will measure something else than its author thinks.

use std::ffi::OsString;
use std::io::{self, IsTerminal};

use fathom_job::{Diagnostic, Diagnostics, Dialect, Invocation, Severity, parse_leniently};
use fathom_run::Finding;
use serde_json::{Value, json};

use crate::environment::Process;
use crate::exit::End;
use crate::output::{self, Stream};
use crate::run_command::{rendered, texts};

/// Reads what `fathom run` would, and says what it finds.
pub(crate) fn run(words: &[OsString]) -> End {
    let (own, words): (Vec<OsString>, Vec<OsString>) =
        (words.iter().cloned()).partition(|word| word == "--json" || word == "--rules");
    let has = |switch: &str| own.iter().any(|word| word == switch);
    if has("--rules") {
        return output::show(&rules(has("--json")), NAME, End::Printed);
    }
    let words = match texts(&words) {
        Ok(words) => words,
        Err(message) => return refuse(&format!("fathom: {message}\n")),
    };
    match parse_leniently(&words, &Process) {
        Ok(Invocation::Run {
            plan,
            settings,
            notes,
        }) => {
            let mut findings: Vec<_> = notes.iter().map(of_parser).collect();
            findings.extend(fathom_run::lint(&plan, &settings));
            findings.sort_by_key(|finding| {
                let origin = &finding.diagnostic.origin;
                (origin.file.clone(), origin.line, origin.column)
            });
            tell(&findings, has("--json"))
        }
        Err(refusal) => refuse(&rendered(&refusal.diagnostics, Dialect::Fathom)),
        Ok(_) => refuse("fathom: lint: there is no job to look at\nhint: `fathom lint --help`\n"),
    }
}

fn refuse(text: &str) -> End {
    output::print(Stream::Error, text);
    End::Refused
}

/// A warning or a note that the parser has.
fn of_parser(note: &Diagnostic) -> Finding {
    Finding {
        jobs: Vec::new(),
        diagnostic: note.clone(),
    }
}

fn tell(findings: &[Finding], as_data: bool) -> End {
    let end = End::Ran {
        failed_jobs: findings.len(),
        tolerated_errors: 0,
        interrupted: false,
    };
    if as_data {
        let list: Vec<_> = findings.iter().map(data).collect();
        output::show(&format!("{:#}\n", json!({ "findings": list })), NAME, end)
    } else if findings.is_empty() {
        output::print(Stream::Error, "fathom: lint: nothing found\n");
        end
    } else {
        output::show(&text(findings), NAME, end)
    }
}

fn text(findings: &[Finding]) -> String {
    let colour = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let mut text = String::new();
    for finding in findings {
        let mut one = Diagnostics::default();
        let Diagnostic { message, code, .. } = &finding.diagnostic;
        one.push(Diagnostic {
            message: format!("{}{message} [{code}]", whose(&finding.jobs)),
            ..finding.diagnostic.clone()
        });
        text.push_str(if text.is_empty() { "" } else { "\n" });
        text.push_str(&one.render("fathom", colour));
    }
    text
}

/// ``job `a`: ``, or the first of them.
fn whose(jobs: &[String]) -> String {
    match jobs {
        [] => String::new(),
        [job] => format!("job `{job}`: "),
        [one, other] => format!("jobs `{one}` and `{other}`: "),
        [one, other, more @ ..] => format!("jobs `{one}`, `{other}` and {} more: ", more.len()),
    }
}

/// A finding for tools.
fn data(finding: &Finding) -> Value {
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

/// Who speaks.
const NAME: &str = "fathom: lint";

fn rules(as_data: bool) -> String {
    if as_data {
        let list = fathom_run::rules().map(|(name, about)| json!({ "rule": name, "about": about }));
        return format!("{:#}\n", json!({ "rules": list.collect::<Vec<_>>() }));
    }
    let width = fathom_run::rules().map(|(name, _)| name.len()).max();
    let width = width.unwrap_or(0);
    fathom_run::rules()
        .map(|(name, about)| format!("{name:width$}  {about}\n"))
        .collect()
}

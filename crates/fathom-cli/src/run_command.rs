//! `fathom run …`, or the whole of `fio …`.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::Path;

use fathom_host::output_file::{self, Stop};
use fathom_job::{Diagnostics, Dialect, Invocation, Plan, Refusal, Settings, option_lines, parse};
use fathom_record::{Record, Warning};
use fathom_run::{LogFiles, RunError, Session};
use fathom_sys::signals::Interrupts;

use crate::environment::Process;
use crate::exit::End;
use crate::external_requests::{ReportRequests, Trigger};
use crate::latency_profile;
use crate::log;
use crate::output::{self, Data, Stream};
use crate::report::Report;
use crate::self_test;
use crate::simulate;

/// Parses and does what was asked.
pub(crate) fn run(words: &[OsString], dialect: Dialect) -> End {
    let words = match texts(words) {
        Ok(words) => words,
        Err(message) => {
            output::print(Stream::Error, &format!("{}: {message}\n", name(dialect)));
            return End::Refused;
        }
    };
    match parse(&words, dialect, &Process) {
        Ok(Invocation::Print(text)) => output::show(&text, name(dialect), End::Printed),
        Ok(Invocation::NoEngineOptions(text)) => {
            output::show(&text, name(dialect), End::NothingToShow)
        }
        Ok(Invocation::NoSuchOption { complaint, closest }) => {
            output::print(Stream::Error, &complaint);
            output::show(&closest, name(dialect), End::NothingKnown)
        }
        Ok(Invocation::SelfTest(test)) => self_test::run(&test, dialect),
        Ok(Invocation::InflateLog(path)) => log::inflate(&path, dialect),
        Ok(Invocation::Run {
            plan,
            settings,
            notes,
        }) => execute(&plan, &settings, &notes, dialect),
        Err(refusal) => {
            let text = rendered(&all_refusals(&refusal), dialect);
            let output = refusal.settings.output.as_deref();
            output::print(Stream::Error, &text);
            // fio's errors go to its output file, too.
            if let Some(file) = output.filter(|_| dialect == Dialect::Fio)
                && let Err(error) =
                    output_file::write(Path::new(file), text.as_bytes(), &Stop::never())
            {
                let message = format!("{}: --output: {file}: {error}\n", name(dialect));
                output::print(Stream::Error, &message);
            }
            End::Refused
        }
    }
}

/// What the parser refuses, and what the run would refuse in the jobs that are left.
fn all_refusals(refusal: &Refusal) -> Diagnostics {
    let mut all = refusal.diagnostics.clone();
    if !refusal.settings.parse_only && refusal.settings.machine.is_none() {
        all.merge(fathom_run::refusals(&refusal.sound, &refusal.settings));
    }
    all
}

/// Runs a plan and reports.
fn execute(plan: &Plan, settings: &Settings, notes: &Diagnostics, dialect: Dialect) -> End {
    if settings.parse_only {
        if dialect == Dialect::Fathom {
            output::print(Stream::Error, &rendered(notes, dialect));
        }
        let parsed = parsed(plan, settings, dialect);
        if dialect == Dialect::Fio {
            return output::show(&parsed, name(dialect), End::Printed);
        }
        output::print(Stream::Error, &parsed);
        return End::Printed;
    }
    let mut report = Report::new(dialect, settings, Data::new(settings.output.as_deref()));
    let result = match report
        .check()
        .and_then(|()| latency_profile::check(settings))
    {
        Ok(()) => run_and_report(plan, settings, notes, dialect, &mut report),
        Err(error) => Err(Failure::NotReported(error)),
    };
    let end = match result {
        Ok(end) => end,
        Err(Failure::Refused(error)) => {
            report.refuse(&rendered(&error.diagnostics(), dialect));
            End::Refused
        }
        Err(Failure::NotReported(error)) => output::not_written(&error, name(dialect)),
    };
    match report.finish() {
        Ok(()) => end,
        Err(error) => output::not_written(&error, name(dialect)),
    }
}

/// What `--debug` tells of a plan that is not run.
fn parsed(plan: &Plan, settings: &Settings, dialect: Dialect) -> String {
    let mut text = settings.debug.announcement(name(dialect));
    if settings.debug.tells("parse") {
        text.push_str(&option_lines(plan, std::process::id()));
    }
    text
}

/// Why there is no report.
pub(crate) enum Failure {
    Refused(RunError),
    NotReported(anyhow::Error),
}

fn run_and_report(
    plan: &Plan,
    settings: &Settings,
    notes: &Diagnostics,
    dialect: Dialect,
    report: &mut Report,
) -> Result<End, Failure> {
    report.debug(&settings.debug.announcement(name(dialect)));
    report.notes(notes);
    let machine = simulate::machine(settings)?;
    let interrupts = Interrupts::install()
        .map_err(|error| Failure::NotReported(anyhow::Error::new(error).context("signals")))?;
    let stop = Stop::when(move || interrupts.count() > 0);
    report.stop_when(&stop);
    let looked_at = simulate::trigger(settings);
    let trigger = Trigger::new(&looked_at, interrupts);
    let requests = ReportRequests::new(interrupts);
    let progress = report.progress_interval(settings);
    let layout_bar = progress.is_some() && io::stderr().is_terminal();
    let ran = {
        let mut session = Session {
            tell: &mut |event| report.hear(plan, &event, interrupts.last()),
            stops: &|| interrupts.count() + trigger.fired(),
            progress,
            report_every: settings.status_interval,
            reports_asked: &|| requests.count(),
            layout_bar,
            jobs_fail_alone: dialect == Dialect::Fio,
        };
        match &machine {
            Some(machine) => fathom_run::simulate_on(plan, machine, settings, &mut session),
            None => fathom_run::run(plan, settings, &mut session)
                .map(|record| (record, LogFiles::new())),
        }
    };
    let (mut record, logs) = match ran {
        Ok(ran) => ran,
        // Interrupted before the jobs began: there is nothing to report.
        Err(error) if interrupts.count() > 0 => {
            report.terminating(interrupts.last());
            report.fail(&error.to_string());
            return Ok(End::Ran {
                failed_jobs: 0,
                tolerated_errors: 0,
                interrupted: true,
            });
        }
        Err(error) => return Err(Failure::Refused(error)),
    };
    record.warnings.splice(0..0, report.take_warnings());
    if interrupts.count() > 0 && dialect == Dialect::Fathom {
        record.warnings.push(interrupted(interrupts.last()));
    }
    report.tell_record(&record);
    simulate::write(&logs, &stop).map_err(Failure::NotReported)?;
    latency_profile::save(plan, settings, machine.as_ref(), &record, &stop)?;
    Ok(ended(&record, interrupts.count() > 0))
}

/// Why the run is shorter than was asked for, and the exit code not 0.
fn interrupted(signal: i32) -> Warning {
    Warning {
        code: "interrupted".into(),
        job: String::new(),
        message: format!(
            "the run was interrupted (signal {signal}): this is what was measured until then"
        ),
        hint: String::new(),
    }
}

fn ended(record: &Record, interrupted: bool) -> End {
    let tolerated = record.jobs.iter().filter_map(|job| job.tolerated);
    // fio says nothing of a job whose commands failed, and ends with 0.
    let commands = ["prerun_failed", "postrun_failed"];
    let failed = |warning: &&Warning| commands.contains(&warning.code.as_str());
    let failed_commands = record.warnings.iter().filter(failed).count() as u64;
    let failed_jobs = record.jobs.iter().filter(|job| job.error != 0).count();
    let mut warnings = record.warnings.iter();
    if !interrupted && warnings.any(|warning| ["log_broken", "log_lost"].contains(&&*warning.code))
    {
        return End::LogBroken { failed_jobs };
    }
    End::Ran {
        failed_jobs,
        tolerated_errors: tolerated.map(|tolerated| tolerated.total).sum::<u64>() + failed_commands,
        interrupted,
    }
}

/// The words as text; job files and options are text.
pub(crate) fn texts(words: &[OsString]) -> Result<Vec<String>, String> {
    let text = |(number, word): (usize, &OsString)| {
        word.clone().into_string().map_err(|word| {
            let shown = word.to_string_lossy().escape_debug().to_string();
            format!("command line, argument {number}: `{shown}` is not UTF-8 text")
        })
    };
    (1..).zip(words).map(text).collect()
}

/// Findings for a person: with colour where there is somebody to see it.
pub(crate) fn rendered(diagnostics: &Diagnostics, dialect: Dialect) -> String {
    let colour = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    diagnostics.render(name(dialect), colour)
}

/// The name that messages begin with.
pub(crate) fn name(dialect: Dialect) -> &'static str {
    dialect.program()
}

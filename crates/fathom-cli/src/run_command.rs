//! The command `fathom run`, which is the whole program under the name `fio`.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::Path;

use fathom_host::output_file::{self, Stop};
use fathom_job::{
    Diagnostics, Dialect, Invocation, Plan, RefusedInvocation, Settings, option_lines, parse,
};
use fathom_record::{Record, Warning};
use fathom_setup::{ProblemKind, RunError, RunEvent, Session};
use fathom_sys::signals::Interrupts;
use fathom_virtual::LogFiles;

use crate::clients;
use crate::engines;
use crate::environment::Process;
use crate::exit::ProgramEnd;
use crate::external_requests::{ReportRequests, Trigger};
use crate::failure::{self, NoReport};
use crate::keep::{self, Keeper};
use crate::latency_profile;
use crate::log;
use crate::metrics_file::MetricsFile;
use crate::output::{self, Data, StandardStream};
use crate::report::Report;
use crate::self_test;
use crate::simulate;
use crate::text_width;
use crate::views::Views;
use crate::words;

/// Parses the arguments, and runs the plan or prints what they request.
pub(crate) fn run(words: &[OsString], dialect: Dialect) -> ProgramEnd {
    let words = match words::to_text(words) {
        Ok(words) => words,
        Err(message) => {
            output::print(
                StandardStream::Error,
                &format!("{}: {message}\n", dialect.program()),
            );
            return ProgramEnd::Refused;
        }
    };
    match parse(&words, dialect, &Process::new()) {
        Ok(Invocation::Print(text)) => {
            // Tools read fio's lists line by line. Commands of `--showcmd` stay whole.
            let text = match dialect {
                Dialect::Fio => text,
                Dialect::Fathom => text_width::fitted(&text),
            };
            output::show(&text, dialect.program(), ProgramEnd::Printed)
        }
        Ok(Invocation::NoEngineOptions(text)) => {
            output::show(&text, dialect.program(), ProgramEnd::NothingToShow)
        }
        Ok(Invocation::NoSuchOption { complaint, closest }) => {
            output::print(StandardStream::Error, &complaint);
            output::show(&closest, dialect.program(), ProgramEnd::NothingKnown)
        }
        Ok(Invocation::SelfTest(test)) => self_test::run(&test, dialect),
        Ok(Invocation::InflateLog(path)) => log::inflate(&path, dialect),
        Ok(Invocation::Clients(asked)) => clients::run(&words, &asked, dialect),
        Ok(Invocation::Run {
            plan,
            settings,
            notes,
        }) => execute(&plan, &settings, &notes, dialect),
        Err(refusal) => {
            let all = all_refusals(&refusal);
            let text = output::render(&all, dialect);
            let spared = all.iter().any(|one| one.code == OUTPUT_IS_INPUT.code());
            let file = refusal.settings.output.as_deref().filter(|_| !spared);
            output::print(StandardStream::Error, &text);
            // As in fio, errors go to the output file too.
            if let Some(file) = file.filter(|_| dialect == Dialect::Fio)
                && let Err(error) =
                    output_file::write(Path::new(file), text.as_bytes(), &Stop::never())
            {
                let message = format!("{}: --output: {file}: {error}\n", dialect.program());
                output::print(StandardStream::Error, &message);
            }
            ProgramEnd::Refused
        }
    }
}

/// Collects the parser's errors, and those of preflight for the jobs that the parser accepts.
fn all_refusals(refusal: &RefusedInvocation) -> Diagnostics {
    let mut all = refusal.diagnostics.clone();
    if !refusal.settings.parse_only && refusal.settings.machine.is_none() {
        all.merge(fathom_setup::preflight_accepted(
            &refusal.sound,
            &refusal.settings,
        ));
    }
    all
}

/// Runs a plan and prints the report.
fn execute(plan: &Plan, settings: &Settings, notes: &Diagnostics, dialect: Dialect) -> ProgramEnd {
    if settings.parse_only {
        if dialect == Dialect::Fathom {
            output::print(StandardStream::Error, &output::render(notes, dialect));
        }
        let parsed = parsed(plan, settings, dialect);
        if dialect == Dialect::Fio {
            return output::show(&parsed, dialect.program(), ProgramEnd::Printed);
        }
        output::print(StandardStream::Error, &parsed);
        return ProgramEnd::Printed;
    }
    if settings.merge_only {
        return merge(plan, settings, dialect);
    }
    let mut report = Report::new(dialect, settings, Data::new(settings.output.as_deref()));
    let result = match report
        .check()
        .map_err(NoReport::NotReported)
        .and_then(|()| latency_profile::check(plan, settings))
    {
        Ok(()) => run_and_report(plan, settings, notes, dialect, &mut report),
        Err(error) => Err(error),
    };
    let end = match result {
        Ok(end) => end,
        Err(NoReport::Refused(error)) => {
            report.refuse(&output::render(&error.diagnostics(), dialect));
            if error.problems.iter().any(|one| one.kind == OUTPUT_IS_INPUT) {
                report.spare_file();
            }
            ProgramEnd::Refused
        }
        Err(NoReport::NotReported(error)) => output::not_written(&error, dialect.program()),
    };
    match report.finish() {
        Ok(()) => end,
        Err(error) => output::not_written(&error, dialect.program()),
    }
}

/// Merges the traces of a plan (`--merge-blktrace-only`).
fn merge(plan: &Plan, settings: &Settings, dialect: Dialect) -> ProgramEnd {
    let interrupts = match Interrupts::install() {
        Ok(interrupts) => interrupts,
        Err(error) => {
            let error = anyhow::Error::new(error).context("signals");
            return output::not_written(&error, dialect.program());
        }
    };
    match fathom_run::merge_traces(plan, settings, &|| interrupts.count()) {
        Ok(()) => ProgramEnd::Printed,
        Err(error) => {
            let text = output::render(&error.diagnostics(), dialect);
            output::print(StandardStream::Error, &text);
            ProgramEnd::Refused
        }
    }
}

/// Returns the output of `--debug` for a plan that is only parsed.
fn parsed(plan: &Plan, settings: &Settings, dialect: Dialect) -> String {
    let mut text = settings.debug.announcement(dialect.program());
    if settings.debug.includes("parse") {
        text.push_str(&option_lines(plan, std::process::id()));
    }
    text
}

fn run_and_report(
    plan: &Plan,
    settings: &Settings,
    notes: &Diagnostics,
    dialect: Dialect,
    report: &mut Report,
) -> Result<ProgramEnd, NoReport> {
    report.debug(&settings.debug.announcement(dialect.program()));
    report.notes(notes);
    let machine = simulate::machine(settings)?;
    let mut keeper = Keeper::open(settings, dialect).map_err(NoReport::NotReported)?;
    let metrics_file = MetricsFile::open(settings).map_err(NoReport::NotReported)?;
    let mut views = Views::open(plan, settings).map_err(NoReport::NotReported)?;
    let interrupts = Interrupts::install()
        .map_err(|error| NoReport::NotReported(anyhow::Error::new(error).context("signals")))?;
    let stop = Stop::when(move || interrupts.count() > 0);
    report.stop_when(&stop);
    let watched = simulate::watched_triggers(settings);
    let trigger = Trigger::new(&watched, interrupts);
    let requests = ReportRequests::new(interrupts);
    let status_line = report.progress_interval(settings);
    let progress = views.interval().or(status_line);
    if status_line.is_some() && io::stderr().is_terminal() {
        report.show_layout();
    }
    let ran = {
        let mut session = Session {
            tell: &mut |event| {
                if let (RunEvent::Interim(record), Some(file)) = (&event, &metrics_file) {
                    file.show(record);
                }
                if let RunEvent::SoFar(record) = &event {
                    keeper.keep_so_far(record);
                }
                views.hear(&event);
                report.on_event(plan, &event, interrupts.last());
            },
            stops: &|| interrupts.count() + trigger.fired(),
            progress,
            report_every: settings.status_interval,
            reports_asked: &|| requests.count(),
            jobs_fail_alone: dialect == Dialect::Fio,
        };
        match &machine {
            Some(machine) => {
                fathom_virtual::simulate_on(plan, &machine.model, settings, &mut session)
            }
            None => fathom_run::run(plan, settings, &engines::registry(), &mut session)
                .map(|record| (record, LogFiles::new())),
        }
    };
    views.end();
    let (mut record, logs) = match ran {
        Ok(ran) => ran,
        // Interrupted before the jobs began: there is nothing to report.
        Err(error) if interrupts.count() > 0 => {
            return Ok(never_began(report, &error, interrupts.last()));
        }
        Err(error) => return Err(NoReport::Refused(error)),
    };
    let is_told = interrupts.count() > 0 && dialect == Dialect::Fathom;
    let signal = is_told.then(|| interrupts.last());
    add_warnings(&mut record, settings, report, signal);
    report.print_record(&record);
    let model = machine.as_ref().map(|machine| &machine.model);
    let text = machine.as_ref().map(|machine| machine.text.as_str());
    let finish = |file: &MetricsFile| file.finish(&record, &stop);
    let written = [
        simulate::write(&logs, &stop),
        latency_profile::save(plan, settings, model, &record, &stop),
        keeper.keep(&record, settings, text, &stop),
        metrics_file.as_ref().map_or(Ok(()), finish),
    ];
    failure::joined(written, dialect.program()).map_err(NoReport::NotReported)?;
    Ok(ended(&record, interrupts.count() > 0))
}

/// Reports a run that was interrupted before its jobs began.
fn never_began(report: &mut Report, error: &RunError, signal: i32) -> ProgramEnd {
    report.terminating(signal);
    report.fail(error);
    ProgramEnd::Ran {
        failed_jobs: 0,
        tolerated_errors: 0,
        interrupted: true,
    }
}

/// Adds the warnings that the driver does not know.
fn add_warnings(
    record: &mut Record,
    settings: &Settings,
    report: &mut Report,
    signal: Option<i32>,
) {
    record.warnings.splice(0..0, report.take_warnings());
    record.warnings.extend(signal.map(interrupted));
    let on_tested = keep::on_tested_device(settings, record);
    record.warnings.extend(on_tested);
}

/// Returns the warning that explains a run shorter than requested and an exit code other than 0.
fn interrupted(signal: i32) -> Warning {
    Warning {
        code: "interrupted".into(),
        job: String::new(),
        message: format!(
            "the run was interrupted by signal {signal}; the results cover the time until then"
        ),
        hint: String::new(),
    }
}

pub(crate) fn ended(record: &Record, interrupted: bool) -> ProgramEnd {
    let tolerated = record.jobs.iter().filter_map(|job| job.tolerated);
    let tolerated: u64 = tolerated.map(|tolerated| tolerated.total).sum();
    let failed_jobs = record.jobs.iter().filter(|job| job.error != 0).count();
    if record.log_failed && !interrupted {
        return ProgramEnd::LogBroken { failed_jobs };
    }
    ProgramEnd::Ran {
        failed_jobs,
        // Only `fathom` counts a failed command as a failed check: fio ignores it.
        tolerated_errors: tolerated + u64::from(record.failed_commands),
        interrupted,
    }
}

/// Problem after which the errors, too, stay out of the output file, to which they go under fio's
/// name.
const OUTPUT_IS_INPUT: ProblemKind = ProblemKind::OutputIsInput;

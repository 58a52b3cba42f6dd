//! A rank that measures: rank 0 of `fathom-mpi run`, and all ranks but rank 0 of any run.

use std::collections::HashMap;

use anyhow::{Context, Result, bail};
use fathom_host::output_file::Stop;
use fathom_hosts::{Checks, Link as _, Rank, StopReason, Verdict};
use fathom_job::{
    Diagnostics, Dialect, Invocation, Plan, RankPlace, Settings, ShowMode, of_one_host, parse,
};
use fathom_mpi::MpiLink;
use fathom_record::{Record, Warning};
use fathom_run::{Finished, Leftovers};
use fathom_setup::{RunError, RunEvent, Session, Snapshot};
use fathom_sys::signals::Interrupts;
use fathom_sys::thread;

use crate::engines;
use crate::exit::{self, ProgramEnd};
use crate::external_requests::Trigger;
use crate::keep;
use crate::output::{self, Data, StandardStream};
use crate::ranks::FAILED;
use crate::ranks::crew::Crew;
use crate::ranks::events;
use crate::ranks::exchange;
use crate::ranks::offered_logs::OfferedLogs;
use crate::ranks::progress::OtherRanks;
use crate::ranks::record_folder::default_folder;
use crate::ranks::sum::{self, Summary};
use crate::ranks::task::{RankEnvironment, RankHost, Task, places};
use crate::record_so_far::SoFar;
use crate::report::Report;
use crate::run_command;
use crate::simulate;
use crate::version::VERSION;

/// Runs a rank with these words, or with those that rank 0 sends.
pub(crate) fn run(mut link: MpiLink, host: &str, words: Option<Vec<String>>) -> Result<ProgramEnd> {
    match link.rank().get() {
        0 => lead(
            link,
            host,
            &words.context("`join` is for other ranks than rank 0")?,
        ),
        _ => {
            let task = exchange::fetch_task(&mut link, host)?;
            follow(link, &task, words)
        }
    }
}

/// Rank 0, which measures as all others do.
fn lead(mut link: MpiLink, host: &str, words: &[String]) -> Result<ProgramEnd> {
    let place = place_of(&link, false);
    let roll = exchange::call_roll(&mut link, host)?;
    let host = |name: &String| RankHost {
        name: name.clone(),
        client: None,
    };
    let hosts: Vec<RankHost> = roll.names.iter().map(host).collect();
    let plan = RankPlan::read(
        words,
        Dialect::Fathom,
        (place, places(&hosts)),
        &HashMap::new(),
    );
    let named = plan
        .as_ref()
        .ok()
        .and_then(|plan| plan.settings.record.clone());
    let task = Task {
        program: VERSION.to_owned(),
        keeps_folder: named.is_some(),
        folder: named.unwrap_or_else(default_folder),
        hosts,
        clients: None,
    };
    exchange::hand_out(&mut link, &task, &roll)?;
    let names = roll.names;
    let tell = events::printer(Dialect::Fathom, names.clone(), Some(Rank::new(0)));
    let together = plan.as_ref().is_ok_and(|plan| plan.settings.stop_together);
    let mut crew = Crew::join(link, together, tell)?;
    let plan = plan.and_then(|plan| plan.among(&task));
    let measured = measure(&mut crew, &plan, true)?;
    crew.wait(&mut |ranks| ranks.is_all_through())?;
    let settings = Settings::default();
    let mut report = measured
        .report
        .unwrap_or_else(|| Report::new(Dialect::Fathom, &settings, Data::Stdout));
    let summary = Summary {
        dialect: Dialect::Fathom,
        names: &names,
        hosts: &task.hosts,
        first: 0,
        own: measured.record,
        clients: None,
    };
    let code = summary.finish(&crew, &mut report)?;
    let code = match report.finish() {
        Ok(()) => code,
        Err(error) => {
            let end = output::not_written(&error, Dialect::Fathom.program());
            code.max(exit::code(Dialect::Fathom, end))
        }
    };
    sum::leave(crew, &task, place, code, measured.leftovers)
}

/// Any other rank.
fn follow(link: MpiLink, task: &Task, words: Option<Vec<String>>) -> Result<ProgramEnd> {
    let client = task.clients.as_ref();
    let place = place_of(&link, client.is_some());
    let (words, dialect) = match (client, words) {
        (Some(client), None) => {
            let line = client.line(link.rank().get());
            (
                line.context("rank 0 has no task for this rank")?.to_vec(),
                client.dialect(),
            )
        }
        (None, Some(words)) => (words, Dialect::Fathom),
        (None, None) | (Some(_), Some(_)) => {
            bail!("the ranks were started in different ways: all by `run`, or by `--client`")
        }
    };
    let none = HashMap::new();
    let files = client.map_or(&none, |client| &client.files);
    let plan = RankPlan::read(&words, dialect, (place, task.places()), files);
    let plan = plan.and_then(|plan| plan.among(task));
    // Rank 0 prints what concerns all of them.
    let mut crew = Crew::join(link, false, Box::new(|_| {}))?;
    // Its record is in memory for rank 0, and on the disk.
    let leftovers = measure(&mut crew, &plan, false)?.leftovers;
    let mut code = None;
    crew.wait(&mut |ranks| {
        code = ranks.may_leave();
        code.is_some()
    })?;
    let is_alone = crew.ranks.borrow().stop() == Some(StopReason::ConductorLost);
    Ok(sum::end(
        crew,
        task,
        place,
        code.unwrap_or(FAILED),
        is_alone,
        leftovers,
    ))
}

/// Returns the place of a rank among those that measure; `beside`: rank 0 does not.
fn place_of(link: &MpiLink, beside: bool) -> fathom_job::Rank {
    let idle = u32::from(beside);
    fathom_job::Rank {
        rank: link.rank().get().saturating_sub(idle),
        ranks: link.ranks().saturating_sub(idle),
    }
}

/// Plan of this rank.
struct RankPlan {
    plan: Plan,
    settings: Settings,
    notes: Diagnostics,
    dialect: Dialect,
}

/// Reasons why this rank has no plan.
struct Refusals {
    /// For this process's user.
    shown: String,
    /// For rank 0's, an element each.
    reasons: Vec<String>,
}

impl RankPlan {
    fn read(
        words: &[String],
        dialect: Dialect,
        (place, places): (fathom_job::Rank, Vec<RankPlace>),
        files: &HashMap<String, String>,
    ) -> Result<Self, Refusals> {
        let environment = RankEnvironment::new(place.rank, places, files);
        let (plan, mut settings, notes) = match parse(words, dialect, &environment) {
            Ok(Invocation::Run {
                plan,
                settings,
                notes,
            }) => (plan, *settings, notes),
            Ok(_) => {
                let program = dialect.program();
                return Err(Refusals::one(
                    dialect,
                    "these arguments run no jobs",
                    &format!("give them to `{program}`, without a launcher"),
                ));
            }
            Err(refusal) => return Err(Refusals::of_diagnostics(&refusal.diagnostics, dialect)),
        };
        settings.rank = None;
        if let Some((switch, why)) = of_one_host(&settings) {
            let why = format!("`{switch}` on the ranks of a launcher: {why}");
            return Err(Refusals::one(
                dialect,
                &why,
                &format!("leave out `{switch}`"),
            ));
        }
        if settings.parse_only || settings.merge_only {
            let hint = "run it without a launcher";
            return Err(Refusals::one(dialect, "these arguments run no jobs", hint));
        }
        settings.rank = Some(place);
        Ok(Self {
            plan,
            settings,
            notes,
            dialect,
        })
    }

    /// Takes what rank 0 has decided for all.
    fn among(mut self, task: &Task) -> Result<Self, Refusals> {
        if task.program != VERSION {
            let why = format!("this is fathom {VERSION}, and rank 0 is {}", task.program);
            let hint = "use one version on all hosts";
            return Err(Refusals::one(self.dialect, &why, hint));
        }
        self.settings.record = Some(task.folder.clone());
        Ok(self)
    }
}

impl Refusals {
    fn one(dialect: Dialect, why: &str, hint: &str) -> Self {
        let reason = format!("{why}\nhint: {hint}");
        Self {
            shown: format!("{}: {reason}\n", dialect.program()),
            reasons: vec![reason],
        }
    }

    fn of_diagnostics(diagnostics: &Diagnostics, dialect: Dialect) -> Self {
        let errors = diagnostics.iter();
        let errors = errors.filter(|found| found.severity == fathom_job::Severity::Error);
        let reasons = errors.map(|error| match &error.hint {
            Some(hint) => format!("{}\nhint: {hint}", error.message),
            None => error.message.clone(),
        });
        Self {
            shown: output::render(diagnostics, dialect),
            reasons: reasons.collect(),
        }
    }
}

/// Outcome of a rank's run.
#[derive(Default)]
struct Measured {
    record: Option<Record>,
    report: Option<Report>,
    /// Files to remove once no rank uses them.
    leftovers: Leftovers,
}

/// Runs the plan, writes the record, and offers it to rank 0; a rank without a plan says so.
fn measure(crew: &mut Crew, plan: &Result<RankPlan, Refusals>, leads: bool) -> Result<Measured> {
    let plan = match plan {
        Ok(plan) => plan,
        Err(refusals) => {
            if leads {
                output::print(StandardStream::Error, &refusals.shown);
            }
            refuse(crew, &refusals.reasons)?;
            return Ok(Measured::default());
        }
    };
    let (mut file, mut so_far) = match files(plan, leads) {
        Ok(files) => files,
        Err(error) => {
            let reason = format!("{error:#}");
            if leads {
                // The printer of events leaves out what rank 0 has printed by itself.
                let text = format!("{}: {reason}\n", plan.dialect.program());
                output::print(StandardStream::Error, &text);
            }
            refuse(crew, &[reason])?;
            return Ok(Measured::default());
        }
    };
    let (ran, report) = jobs(crew, plan, &mut so_far, leads)?;
    // It would replace the whole one.
    so_far.wait();
    let Finished {
        record,
        leftovers,
        logs,
    } = match ran {
        Ok(finished) => finished,
        Err(error) => {
            fail(crew, plan, leads, &error)?;
            return Ok(Measured {
                report: Some(report),
                ..Measured::default()
            });
        }
    };
    let json = format!("{}\n", record.to_json()?);
    let mut code = exit::code(plan.dialect, run_command::ended(&record, false));
    let written = file.add(&json).and_then(|()| file.finish());
    if let Err(error) = written {
        // Rank 0 gets it all the same.
        let text = format!(
            "{}: cannot write the record: {error:#}\n",
            plan.dialect.program()
        );
        output::print(StandardStream::Error, &text);
        code = code.max(FAILED);
    }
    crew.offer.record = json.into_bytes();
    crew.offer.logs = OfferedLogs::of(logs)?;
    crew.ranks.borrow_mut().through(code);
    Ok(Measured {
        record: Some(record),
        report: Some(report),
        leftovers,
    })
}

/// Returns the file of the record, whole and as far as it is. It and, on rank 0, that of the report
/// were checked.
fn files(plan: &RankPlan, leads: bool) -> Result<(Data, SoFar)> {
    if leads {
        Data::new(plan.settings.output.as_deref()).check()?;
    }
    keep::rank_files(&plan.settings)
}

/// Reports the reasons against the plan, and waits until all ranks have made their checks.
fn refuse(crew: &Crew, reasons: &[String]) -> Result<()> {
    let checks = Checks::new(reasons, Vec::new());
    crew.ranks
        .borrow_mut()
        .checked(checks.context("too many reasons")?);
    crew.wait(&mut |ranks| ranks.verdict().is_some() || ranks.stop().is_some())?;
    crew.ranks.borrow_mut().through(FAILED);
    Ok(())
}

/// Reports that the run has failed before there was a record.
fn fail(crew: &Crew, plan: &RankPlan, leads: bool, error: &RunError) -> Result<()> {
    let diagnostics = error.diagnostics();
    if leads {
        output::print(
            StandardStream::Error,
            &output::render(&diagnostics, plan.dialect),
        );
    }
    let first = error.problems.first();
    let reason = first.map_or_else(|| "no reason".to_owned(), ToString::to_string);
    let mut ranks = crew.ranks.borrow_mut();
    match ranks.verdict() {
        // Told with the checks.
        Some(Verdict::Refused) => ranks.through(FAILED),
        _ => ranks.failed(&reason),
    }
    Ok(())
}

/// Runs the jobs among those of the other ranks.
fn jobs(
    crew: &Crew,
    plan: &RankPlan,
    so_far: &mut SoFar,
    leads: bool,
) -> Result<(Result<Finished, RunError>, Report)> {
    let RankPlan {
        plan,
        settings,
        notes,
        dialect,
    } = plan;
    let mut settings = settings.clone();
    let data = match leads {
        true => Data::new(settings.output.as_deref()),
        false => Data::Stdout,
    };
    if !leads {
        settings.eta = ShowMode::Never;
    }
    let mut report = Report::new(*dialect, &settings, data);
    if leads {
        report.debug(&settings.debug.announcement(dialect.program()));
        report.notes(notes);
    }
    let interrupts = Interrupts::install().context("signals")?;
    let stop = Stop::when(move || interrupts.count() > 0);
    report.stop_when(&stop);
    let watched = simulate::watched_triggers(&settings);
    let trigger = Trigger::new(&watched, interrupts);
    let progress = report.progress_interval(&settings);
    let mut others = OtherRanks::default();
    let ran = {
        let mut session = Session {
            tell: &mut |event| {
                if let RunEvent::SoFar(record) = &event {
                    so_far.keep(record);
                }
                if let (true, RunEvent::Progress(own)) = (leads, &event) {
                    let all = of_all(crew, &mut others, own);
                    report.on_event(plan, &RunEvent::Progress(&all), interrupts.last());
                } else if leads || is_for_all(&event) {
                    report.on_event(plan, &event, interrupts.last());
                }
            },
            stops: &|| interrupts.count() + trigger.fired(),
            progress,
            report_every: None,
            reports_asked: &|| 0,
            jobs_fail_alone: *dialect == Dialect::Fio,
        };
        let mut peers = &crew.ranks;
        let engines = engines::registry();
        fathom_run::run_together(plan, &settings, &engines, &mut session, &mut peers)
    };
    let ran = ran.map(|mut finished| {
        let record = &mut finished.record;
        record.warnings.splice(0..0, report.take_warnings());
        record.warnings.extend(bound_to_few(plan));
        let on_tested = keep::on_tested_device(&settings, record);
        record.warnings.extend(on_tested);
        finished
    });
    Ok((ran, report))
}

/// Returns the progress of rank 0 with that of the other ranks.
fn of_all(crew: &Crew, others: &mut OtherRanks, own: &Snapshot) -> Snapshot {
    let ranks = crew.ranks.borrow();
    if let Some(conductor) = ranks.conductor() {
        others.hear(conductor, ranks.place().1);
    }
    let mut all = own.clone();
    others.add_to(&mut all);
    all
}

/// Returns whether an event of a rank other than 0 is told: the warnings of the others are in the
/// report.
const fn is_for_all(event: &RunEvent<'_>) -> bool {
    matches!(
        event,
        RunEvent::Lost(_) | RunEvent::StillStopping(_) | RunEvent::StillOpening(_)
    )
}

/// Returns the warning about a launcher that confines the rank to fewer processors than it has
/// jobs: Open MPI gives one or two ranks a core each.
fn bound_to_few(plan: &Plan) -> Option<Warning> {
    let allowed = thread::allowed_cpus().ok()?.len();
    let jobs: u64 = plan
        .jobs
        .iter()
        .map(|job| u64::from(job.options.numjobs.max(1)))
        .sum();
    let online = fathom_sys::system::cpus_online();
    let is_bound = allowed < online as usize && (allowed as u64) < jobs;
    is_bound.then(|| Warning {
        code: "bound_to_few_processors".to_owned(),
        message: format!(
            "the launcher lets this rank use {allowed} of {online} processors, for {jobs} jobs"
        ),
        hint: "add `--bind-to none` (Open MPI, MPICH) or `--cpu-bind=none` (Slurm)".to_owned(),
        ..Warning::default()
    })
}

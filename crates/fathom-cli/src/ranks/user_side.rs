//! Rank 0 of `--client`: beside the user, without a measurement of its own.

use std::path::Path;

use anyhow::{Context, Result, bail};
use fathom_core::Nanos;
use fathom_hosts::{Checks, Link as _, Ranks, StopReason, Verdict};
use fathom_job::{Clients, Dialect, Invocation, Plan, Rank, parse};
use fathom_mpi::MpiLink;
use fathom_run::Leftovers;
use fathom_sys::signals::Interrupts;

use crate::client_hosts::ClientHost;
use crate::clients::{self, rank_side};
use crate::environment::Process;
use crate::exit::{self, ProgramEnd};
use crate::output::{self, Data};
use crate::rank_voice;
use crate::ranks::FAILED;
use crate::ranks::client_status::ClientStatus;
use crate::ranks::crew::Crew;
use crate::ranks::events;
use crate::ranks::exchange::{self, RollCall};
use crate::ranks::record_folder::default_folder;
use crate::ranks::sum::{self, Summary};
use crate::ranks::task::{ClientTask, RankEnvironment, RankHost, Task, places};
use crate::report::Report;
use crate::version::VERSION;

/// Conducts the ranks of the hosts that `words` names. The exit code is passed through `folder`.
pub(crate) fn run(
    link: MpiLink,
    host: &str,
    folder: &Path,
    dialect: Dialect,
    words: &[String],
) -> Result<ProgramEnd> {
    let ended = rank_side::tell_started(folder)
        .with_context(|| {
            format!(
                "cannot write to the folder of `--client`: {}",
                folder.display()
            )
        })
        .and_then(|()| conduct(link, host, folder, dialect, words));
    if ended.is_err() {
        // Without the code, the user's side says that there was no report; the reason is printed
        // here.
        let _untold = rank_side::tell_code(folder, exit::code(dialect, ProgramEnd::Refused));
    }
    if rank_side::is_abandoned(folder) {
        rank_side::remove(folder);
    }
    ended
}

fn conduct(
    mut link: MpiLink,
    host: &str,
    folder: &Path,
    dialect: Dialect,
    words: &[String],
) -> Result<ProgramEnd> {
    // If a rank is lost, the launcher sends SIGTERM to all others, this one included, and SIGKILL a
    // moment later: time enough for them to write their records.
    let interrupts = Interrupts::install().context("signals")?;
    let clients = match parse(words, dialect, &Process::new()) {
        Ok(Invocation::Clients(clients)) => clients,
        Ok(_) => bail!("no `--client` among the arguments"),
        Err(refusal) => bail!(output::render(&refusal.diagnostics, dialect)),
    };
    let settings = &clients.settings;
    let mut report = Report::new(dialect, settings, Data::new(settings.output.as_deref()));
    report.check()?;
    let ranks = link.ranks();
    let named = clients::hosts(&clients)?;
    let hosts = named.len();
    if usize::try_from(ranks)? != hosts + 1 {
        bail!("{ranks} ranks for {hosts} hosts: the launcher has started others than asked for");
    }
    let roll = exchange::call_roll(&mut link, host)?;
    let (task, plans) = task(&clients, (&named, &roll), dialect, &mut report)?;
    exchange::hand_out(&mut link, &task, &roll)?;
    let names = roll.names;
    let tell = events::printer(dialect, names.clone(), None);
    let crew = Crew::join(link, settings.stop_together, tell)?;
    let every = report.progress_interval(settings);
    let plans: Vec<&Plan> = named.iter().map(|(_, group)| &plans[*group]).collect();
    let status = ClientStatus::new(&mut report, every, &plans);
    follow(&crew, (folder, interrupts), status)?;
    let summary = Summary {
        dialect,
        names: &names,
        hosts: &task.hosts,
        first: 1,
        own: None,
        clients: task.clients.as_ref().map(|task| (task, settings)),
    };
    let code = summary.finish(&crew, &mut report)?;
    let code = match report.finish() {
        Ok(()) => code,
        Err(error) => code.max(exit::code(
            dialect,
            output::not_written(&error, dialect.program()),
        )),
    };
    rank_side::tell_code(folder, code)?;
    let place = Rank { rank: 0, ranks };
    sum::leave(crew, &task, place, code, Leftovers::default())
}

/// Follows the run until all ranks are through.
fn follow(
    crew: &Crew,
    (folder, interrupts): (&Path, Interrupts),
    mut status: ClientStatus<'_>,
) -> Result<()> {
    let clock = crew.clock;
    let (mut look_at, mut is_asked) = (clock.now(), false);
    let mut wait = |is_over: &dyn Fn(&Ranks<MpiLink>) -> bool| {
        crew.wait(&mut |ranks| {
            let now = clock.now();
            if now >= look_at {
                look_at = now + LOOK_EVERY;
                // Killed, or its terminal has gone: nothing waits for the rest. It may be killed
                // after it has asked to stop, too.
                let is_abandoned = rank_side::is_abandoned(folder);
                if is_abandoned {
                    rank_voice::fall_silent();
                }
                let is_stopped = interrupts.count() > 0 || rank_side::stop_is_asked(folder);
                if !is_asked && (is_abandoned || is_stopped) {
                    is_asked = true;
                    ranks.ask_stop(StopReason::Requested);
                }
            }
            if let Some(conductor) = ranks.conductor() {
                status.draw(now, conductor);
            }
            is_over(ranks)
        })
    };
    let nothing = Checks::new(&[], Vec::new()).context("no checks")?;
    crew.ranks.borrow_mut().checked(nothing);
    wait(&|ranks| ranks.verdict().is_some() || ranks.stop().is_some())?;
    let is_sound = matches!(crew.ranks.borrow().verdict(), Some(Verdict::Sound { .. }));
    if is_sound {
        crew.ranks.borrow_mut().laid_out();
        wait(&|ranks| ranks.files_ready() || ranks.stop().is_some())?;
    }
    crew.ranks
        .borrow_mut()
        .through(if is_sound { 0 } else { FAILED });
    wait(&|ranks| ranks.is_all_through())
}

/// Builds the task of the hosts: command lines, and the job files that these name. Returns it with
/// the plan of each group of hosts, which is empty where they read their own.
fn task(
    clients: &Clients,
    (named, roll): (&[(ClientHost, usize)], &RollCall),
    dialect: Dialect,
    report: &mut Report,
) -> Result<(Task, Vec<Plan>)> {
    let hosts = named.iter().zip(roll.names.iter().skip(1));
    let hosts = hosts.map(|((host, _), name)| RankHost {
        name: name.clone(),
        client: Some((host.name.clone(), host.port)),
    });
    let hosts: Vec<RankHost> = hosts.collect();
    let mut task = ClientTask {
        is_fio: dialect == Dialect::Fio,
        line_of: named.iter().map(|(_, group)| *group).collect(),
        ..ClientTask::default()
    };
    let mut plans = Vec::new();
    for (at, group) in clients.groups.iter().enumerate() {
        let first = task.line_of.iter().position(|of| *of == at).unwrap_or(0);
        let words = clients::words(group);
        if group.own_files.is_empty() {
            let own = u32::try_from(first)?;
            let environment = RankEnvironment::new(own, places(&hosts), &task.files);
            match parse(&words, dialect, &environment) {
                Ok(Invocation::Run { notes, plan, .. }) => {
                    report.notes(&notes);
                    plans.push(plan);
                }
                Ok(_) => bail!("--client={}: these arguments run no jobs", group.hosts),
                Err(refusal) => bail!(output::render(&refusal.diagnostics, dialect)),
            }
            let read = environment.into_read();
            task.files.extend(read);
        } else {
            plans.push(Plan::default());
        }
        task.lines.push(words);
    }
    let folder = clients.settings.record.clone();
    let task = Task {
        program: VERSION.to_owned(),
        keeps_folder: folder.is_some(),
        folder: folder.unwrap_or_else(default_folder),
        hosts,
        clients: Some(task),
    };
    Ok((task, plans))
}

/// Interval between looks for a request to stop.
const LOOK_EVERY: Nanos = Nanos::from_millis(50);

//! The end of a run on rank 0: the records of all ranks, their sum, and the report.

use anyhow::Result;
use fathom_core::{Nanos, OutputFormat};
use fathom_hosts::{Gather, Item, Rank, StopReason, Verdict};
use fathom_job::{Dialect, Settings};
use fathom_record::{HostSum, Record, Warning};
use fathom_report::ClientStats;
use fathom_run::Leftovers;

use crate::exit::{self, ProgramEnd};
use crate::merge;
use crate::output::{self, StandardStream};
use crate::ranks::FAILED;
use crate::ranks::crew::Crew;
use crate::ranks::exchange::{self, Fetched};
use crate::ranks::logs;
use crate::ranks::record_folder::clear;
use crate::ranks::task::{ClientTask, RankHost, Task};
use crate::report::Report;
use crate::run_command;

/// Records of a run that is over.
pub(crate) struct Summary<'a> {
    /// Name under which the user has started the run.
    pub(crate) dialect: Dialect,
    /// Hosts, by rank.
    pub(crate) names: &'a [String],
    /// First rank that has measured.
    pub(crate) first: u32,
    /// Record of rank 0, if it has measured.
    pub(crate) own: Option<Record>,
    /// Hosts of the ranks that have measured, in order of rank.
    pub(crate) hosts: &'a [RankHost],
    /// Under `--client`: what the ranks ran, and the user's settings.
    pub(crate) clients: Option<(&'a ClientTask, &'a Settings)>,
}

impl Summary<'_> {
    /// Adds up the records of all ranks and prints the report; returns the exit code. All ranks are
    /// through.
    pub(crate) fn finish(self, crew: &Crew, report: &mut Report) -> Result<u8> {
        let (worst, lost, was_stopped) = {
            let ranks = crew.ranks.borrow();
            let Some(conductor) = ranks.conductor() else {
                return Ok(FAILED);
            };
            let lost: Vec<Rank> = conductor.lost().collect();
            let was_stopped = conductor.stop() == Some(StopReason::Requested);
            (conductor.worst_code(), lost, was_stopped)
        };
        if crew.ranks.borrow().verdict() == Some(&Verdict::Refused) {
            return Ok(worst.max(FAILED));
        }
        let (dialect, names, clients) = (self.dialect, self.names, self.clients);
        let first = self.first;
        let mut stats = self.clients.map_or_else(Vec::new, |(_, settings)| {
            merge::client_stats(&settings.formats)
        });
        let hosts = self.hosts;
        let (sum, missing) = self.gathered(crew, &lost, &mut stats)?;
        let Some(mut sum) = sum.finish() else {
            return Ok(worst.max(FAILED));
        };
        merge::mark(&mut sum);
        sum.warnings.extend(
            missing
                .iter()
                .map(|(rank, why)| absent(*rank, first, names, why)),
        );
        sum.warnings.extend(was_stopped.then(stopped));
        if clients.is_some() {
            // Before the report, which states what was left behind.
            sum.warnings.extend(logs::bring_home(crew, hosts, &lost)?);
        }
        let documents = stats.into_iter();
        let documents = documents.map(|(format, stats)| (format, stats.document(&sum)));
        report.replace(documents.collect());
        report.print_record(&sum);
        let end = run_command::ended(&sum, was_stopped);
        let code = exit::code(dialect, end).max(worst);
        let is_whole = missing.is_empty() && lost.is_empty();
        Ok(if is_whole { code } else { code.max(FAILED) })
    }

    /// Gathers the records in order of rank; of those that are missing it returns the reasons.
    fn gathered(
        self,
        crew: &Crew,
        lost: &[Rank],
        stats: &mut [(OutputFormat, ClientStats)],
    ) -> Result<(HostSum, Vec<(Rank, String)>)> {
        let mut ranks = crew.ranks.borrow_mut();
        let (_, count) = ranks.place();
        let mut sum = HostSum::new();
        let mut missing: Vec<_> = lost
            .iter()
            .map(|&rank| (rank, "it is lost".to_owned()))
            .collect();
        if let Some(own) = self.own {
            sum.add(own)?;
        }
        let others = (1..count).map(Rank::new);
        let wanted = others.filter(|rank| !lost.contains(rank));
        let line_of = self.clients.map_or(&[][..], |(task, _)| &task.line_of);
        let line_of = |rank: Rank| line_of.get(rank.get().checked_sub(1)? as usize);
        let mut last = None;
        let mut gather = Gather::new(crew.clock.now(), Item::Record, wanted);
        while !gather.is_done() {
            let now = crew.clock.now();
            let any = exchange::step(&mut gather, ranks.link_mut(), now, &mut |rank, text| {
                // Groups of hosts, each with a command line, come one after the other.
                if std::mem::replace(&mut last, line_of(rank)) != line_of(rank) {
                    sum.begin_plan();
                }
                let added = add(&mut sum, text, stats);
                missing.extend(added.err().map(|why| (rank, why)));
                Ok(())
            })?;
            // The others hear that this rank lives.
            ranks.poll(true);
            exchange::rest(any);
        }
        missing.sort_unstable();
        Ok((sum, missing))
    }
}

fn add(
    sum: &mut HostSum,
    text: Fetched,
    stats: &mut [(OutputFormat, ClientStats)],
) -> Result<(), String> {
    let text = text.map_err(|error| error.to_string())?;
    if text.is_empty() {
        return Err("it has none".to_owned());
    }
    let text = String::from_utf8(text).map_err(|error| error.to_string())?;
    let record = match Record::if_known(&text) {
        Some(record) => record,
        None => Record::from_json(&text).map_err(|error| error.to_string())?,
    };
    for (_, stats) in stats {
        stats.add(&record);
    }
    sum.add(record).map_err(|error| error.to_string())
}

/// Returns the warning about a rank whose record is missing; ranks count from `first`.
fn absent(rank: Rank, first: u32, names: &[String], why: &str) -> Warning {
    let name = names.get(rank.get() as usize).map_or("", String::as_str);
    let number = rank.get().saturating_sub(first);
    Warning {
        code: "record_missing".to_owned(),
        message: format!("the record of rank {number} on {name} is missing: {why}"),
        hint: "look for it in the folder of the records there, and add it with `fathom merge`"
            .to_owned(),
        ..Warning::default()
    }
}

fn stopped() -> Warning {
    Warning {
        code: "interrupted".to_owned(),
        message: "the run was interrupted; the results cover the time until then".to_owned(),
        ..Warning::default()
    }
}

/// Lets all ranks leave with this code, and leaves.
pub(crate) fn leave(
    crew: Crew,
    task: &Task,
    place: fathom_job::Rank,
    code: u8,
    leftovers: Leftovers,
) -> Result<ProgramEnd> {
    crew.ranks.borrow_mut().leave(code);
    let until = crew.clock.now() + LEAVING_MAX;
    let clock = crew.clock;
    let is_over = |ranks: &fathom_hosts::Ranks<_>| {
        ranks
            .conductor()
            .is_none_or(fathom_hosts::Conductor::is_over)
    };
    crew.wait(&mut |ranks| is_over(ranks) || clock.now() >= until)?;
    let some_lost = {
        let ranks = crew.ranks.borrow();
        let lost = ranks
            .conductor()
            .is_some_and(|conductor| conductor.lost().next().is_some());
        lost || !is_over(&ranks)
    };
    Ok(end(crew, task, place, code, some_lost, leftovers))
}

/// Ends this rank: its record is removed if rank 0 has it and the user has named no folder.
pub(crate) fn end(
    crew: Crew,
    task: &Task,
    place: fathom_job::Rank,
    code: u8,
    some_lost: bool,
    leftovers: Leftovers,
) -> ProgramEnd {
    for kept in leftovers.remove() {
        output::print(
            StandardStream::Error,
            &format!("fathom: {}\n", kept.message),
        );
    }
    if !task.keeps_folder {
        clear(&task.folder, place, code < FAILED);
    }
    // Under `--client` the code goes another way, and launchers make a noise about any but 0.
    let code = match task.clients {
        Some(_) => 0,
        None => code,
    };
    crew.leave(code, some_lost);
    ProgramEnd::Ranks(code)
}

/// Time for all ranks to leave.
const LEAVING_MAX: Nanos = Nanos::from_secs(3);

//! Sections with `rank_shift`: the arguments are read once more, in place of the other rank.
//!
//! Names, offsets and all else that depends on the rank may stand in the section, in what it
//! inherits, or in a file that it includes. Reading everything again keeps one way to read.

use std::cell::OnceCell;
use std::io;
use std::sync::Arc;

use fathom_core::EngineInfo;

use crate::Environment;
use crate::command_line::{self, Request};
use crate::diagnostics::{Diagnostic, Severity};
use crate::invocation::{Invocation, RefusedInvocation};
use crate::plan::{Job, Plan};
use crate::rank::Rank;
use crate::rank_keywords::RankKeywords;
use crate::rank_place::{self, KnownRanks, RankPlace};

/// Reads a command line, with each section in the place in which it works.
pub(crate) fn read(request: &Request<'_>) -> Result<Invocation, Box<RefusedInvocation>> {
    let once = ReadOnce {
        inner: request.environment,
        standard_input: OnceCell::new(),
    };
    let request = Request {
        environment: &once,
        own: Arc::clone(&request.own),
        ..*request
    };
    let mut read = command_line::read_in(&request, &request.own)?;
    let Invocation::Run { plan, settings, .. } = &mut read else {
        return Ok(read);
    };
    let mut targets: Vec<u32> = plan.jobs.iter().map(|job| target(job, &request)).collect();
    let each = targets.clone();
    targets.sort_unstable();
    targets.dedup();
    targets.retain(|target| *target != request.own.rank.rank);
    let mut found = unknown_hosts(plan, &each, &request);
    if targets.len() > TARGETS_MAX {
        let why = format!(
            "the sections work in the places of {} other ranks, more than {TARGETS_MAX}",
            targets.len()
        );
        let origin = plan.jobs.first().map(|job| job.origin.clone());
        let problem = Diagnostic::new(
            Severity::Error,
            "bad-shift",
            why,
            origin.unwrap_or_default(),
            "",
        );
        found.push(problem.with_hint("use the same `rank_shift` in several sections"));
    }
    if !found.is_empty() {
        return Err(refused(
            found,
            std::mem::take(plan),
            std::mem::take(settings),
        ));
    }
    for target in targets {
        let other = command_line::read_in(&request, &Arc::new(place(target, &request)))?;
        let Invocation::Run { plan: other, .. } = other else {
            return Ok(other);
        };
        let jobs = plan.jobs.iter_mut().zip(&each).zip(other.jobs);
        for ((job, _), theirs) in jobs.filter(|((_, of), _)| **of == target) {
            job.options = theirs.options;
            job.place = theirs.place;
        }
    }
    Ok(read)
}

/// Returns the rank in whose place a job works. A job that has none was refused before.
fn target(job: &Job, request: &Request<'_>) -> u32 {
    let shift = job.options.placement.shift;
    let target = rank_place::target(shift, &request.own, request.environment);
    target.unwrap_or(request.own.rank.rank)
}

/// Returns the place of another rank; of its host, only what the launcher reports is known.
fn place(target: u32, request: &Request<'_>) -> RankPlace {
    let known = request.environment.ranks();
    let known = known.and_then(|known| known.place(target).cloned());
    known.unwrap_or_else(|| RankPlace {
        rank: Rank {
            rank: target,
            ..request.own.rank
        },
        ..RankPlace::clone(&request.own)
    })
}

/// Returns the problems of jobs that work in place of a rank and name its host, which is not known.
fn unknown_hosts(plan: &Plan, targets: &[u32], request: &Request<'_>) -> Vec<Diagnostic> {
    if request.environment.ranks().is_some() {
        return Vec::new();
    }
    let own = request.own.rank.rank;
    let jobs = plan.jobs.iter().zip(targets);
    let shifted = jobs.filter(|(_, target)| **target != own);
    let problems = shifted.filter_map(|(job, target)| {
        let mut written = job.typed.iter().chain(job.inherited.iter());
        let (typed, keyword) =
            written.find_map(|typed| Some((typed, RankKeywords::first_of_host(&typed.value)?)))?;
        let why = format!(
            "job `{}` works in the place of rank {target}, whose `{keyword}` is not known here",
            job.name
        );
        let origin = typed.origin.clone();
        let offending = origin.text().to_owned();
        let problem = Diagnostic::new(Severity::Error, "bad-shift", why, origin, offending);
        Some(problem.with_hint("use `$rank` instead"))
    });
    problems.collect()
}

fn refused(
    found: Vec<Diagnostic>,
    sound: Plan,
    settings: Box<crate::Settings>,
) -> Box<RefusedInvocation> {
    let mut diagnostics = crate::Diagnostics::default();
    found.into_iter().for_each(|one| diagnostics.push(one));
    Box::new(RefusedInvocation {
        diagnostics,
        sound,
        settings: *settings,
    })
}

/// Environment whose standard input can be read again.
struct ReadOnce<'a> {
    inner: &'a dyn Environment,
    standard_input: OnceCell<Vec<u8>>,
}

impl Environment for ReadOnce<'_> {
    fn engines(&self) -> &[&'static EngineInfo] {
        self.inner.engines()
    }

    fn read_file(&self, path: &str) -> io::Result<Vec<u8>> {
        self.inner.read_file(path)
    }

    fn is_same_file(&self, a: &str, b: &str) -> bool {
        self.inner.is_same_file(a, b)
    }

    fn read_stdin(&self) -> io::Result<Vec<u8>> {
        match self.standard_input.get() {
            Some(text) => Ok(text.clone()),
            None => {
                let text = self.inner.read_stdin()?;
                Ok(self.standard_input.get_or_init(|| text).clone())
            }
        }
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.inner.variable(name)
    }

    fn cpus(&self) -> u32 {
        self.inner.cpus()
    }

    fn page_size(&self) -> u64 {
        self.inner.page_size()
    }

    fn memory_mib(&self) -> u64 {
        self.inner.memory_mib()
    }

    fn host_name(&self) -> String {
        self.inner.host_name()
    }

    fn ranks(&self) -> Option<KnownRanks<'_>> {
        self.inner.ranks()
    }
}

/// Limit of the places in which the sections of a plan work: each has all arguments read again.
const TARGETS_MAX: usize = 16;

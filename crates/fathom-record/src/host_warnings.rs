//! Warnings about the ranks of a sum together.

use crate::plan_difference::is_left_out;
use crate::{HostRecord, Record, Warning};

/// Returns the warnings about ranks that are missing, cut or did not run together, and about jobs
/// that none had.
pub(crate) fn warnings(sum: &Record) -> Vec<Warning> {
    let hosts = &sum.hosts;
    let found = [
        missing(hosts),
        cut(hosts),
        never_together(hosts),
        ran_nowhere(sum),
    ];
    found.into_iter().flatten().collect()
}

/// Returns the warning about ranks whose record is not there.
fn missing(hosts: &[HostRecord]) -> Option<Warning> {
    let ranks = hosts.first()?.ranks;
    let missing = u64::from(ranks) - hosts.len() as u64;
    if missing == 0 {
        return None;
    }
    let mut gaps = Vec::new();
    let mut next = 0;
    for rank in hosts.iter().map(|host| host.rank).chain([ranks]) {
        if next < rank {
            gaps.push((next, rank - 1));
        }
        next = rank.saturating_add(1);
    }
    Some(Warning {
        code: "ranks_missing".to_owned(),
        message: format!(
            "{missing} of {ranks} ranks {} missing ({}): the sums cover the rest",
            if missing == 1 { "is" } else { "are" },
            spelled(&gaps)
        ),
        ..Warning::default()
    })
}

/// Returns the warning about ranks whose records end before their jobs did.
fn cut(hosts: &[HostRecord]) -> Option<Warning> {
    let mut cut: Vec<(u32, u32)> = Vec::new();
    for rank in hosts
        .iter()
        .filter(|host| host.is_cut)
        .map(|host| host.rank)
    {
        match cut.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(rank) => *last = rank,
            _ => cut.push((rank, rank)),
        }
    }
    let count = hosts.iter().filter(|host| host.is_cut).count();
    let of = hosts.len();
    (count > 0).then(|| Warning {
        code: "ranks_cut".to_owned(),
        message: format!(
            "the records of {count} of {of} ranks ({}) were written while their jobs ran, and none \
             after: the sums have what these ranks had done by then",
            spelled(&cut)
        ),
        hint: "if the run is still going on, merge again when it has ended".to_owned(),
        ..Warning::default()
    })
}

/// Returns the warning about jobs that all ranks leave to others.
fn ran_nowhere(sum: &Record) -> Option<Warning> {
    let left = &sum.hosts.first()?.left_out;
    let ran = |job: &str| sum.jobs.iter().any(|one| one.name == job);
    let is_nowhere = |job: &&String| is_left_out(&sum.hosts, job) && !ran(job);
    let mut nowhere: Vec<&str> = left.iter().filter(is_nowhere).map(String::as_str).collect();
    nowhere.dedup();
    (!nowhere.is_empty()).then(|| Warning {
        code: "jobs_ran_nowhere".to_owned(),
        message: format!("no rank has these jobs: {}", nowhere.join(", ")),
        hint: "compare `ranks` and `hosts` of these sections with the ranks and the names of hosts"
            .to_owned(),
        ..Warning::default()
    })
}

/// Returns the warning about ranks of which one had ended before another began, unless they have
/// different jobs.
fn never_together(hosts: &[HostRecord]) -> Option<Warning> {
    let spans = || hosts.iter().filter_map(|host| Some((host, host.span()?)));
    let (early, (_, ended_ns)) = spans().min_by_key(|(_, (_, end_ns))| *end_ns)?;
    let (late, (began_ns, _)) = spans().max_by_key(|(_, (start_ns, _))| *start_ns)?;
    let have_all = early.left_out.is_empty() && late.left_out.is_empty();
    (have_all && ended_ns <= began_ns).then(|| Warning {
        code: "ranks_not_together".to_owned(),
        message: format!(
            "at no moment did all ranks run: rank {} ({}) had ended before rank {} ({}) began, so \
             the storage never saw the summed rates",
            early.rank, early.name, late.rank, late.name
        ),
        hint: match late.clock.compared == "messages" {
            // They have agreed on their starts.
            true => String::new(),
            false => "start all ranks with one `--start-at`".to_owned(),
        },
        ..Warning::default()
    })
}

/// Spells ranges of ranks: `0, 2-4`.
fn spelled(ranges: &[(u32, u32)]) -> String {
    let ranges = ranges.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    ranges.collect::<Vec<_>>().join(", ")
}

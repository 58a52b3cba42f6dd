//! Sum of the records of ranks.

use std::fmt;

use crate::host::results;
use crate::{HostRecord, JobRecord, Record, TimelineRecord, Warning};

/// Sum of the records of ranks that ran one plan.
///
/// [`add`](Self::add) the records in ascending order of rank, so that the sum does not depend on
/// the order in which they were found, and take it with [`finish`](Self::finish). A record can be
/// dropped once it is added: of each rank the sum keeps some KiB, of all together one set of
/// histograms.
#[derive(Debug, Default)]
pub struct HostSum {
    sum: Option<Record>,
    /// Start of the first timelines on the common clock.
    origin_ns: Option<u64>,
}

impl HostSum {
    /// Creates an empty sum.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the record of a rank, later than all before. If it is refused, the sum is as before.
    ///
    /// # Errors
    /// It is no record of one rank, or does not belong to the ones before.
    pub fn add(&mut self, mut record: Record) -> Result<(), HostSumError> {
        let host = match record.hosts.as_slice() {
            [] => return Err(HostSumError::Alone),
            [host] if host.results.is_empty() && host.rank < host.ranks => host,
            [host] if host.results.is_empty() => {
                return Err(HostSumError::BadRank(host.rank, host.ranks));
            }
            _ => return Err(HostSumError::Sum),
        };
        if let Some(sum) = &self.sum {
            belongs(sum, &record, host)?;
        }
        let own = host.span().map(|(start_ns, _)| start_ns);
        let index = self.sum.as_ref().map_or(0, |sum| sum.hosts.len());
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        mark(&mut record, index);
        let Some(sum) = &mut self.sum else {
            self.origin_ns = own;
            self.sum = Some(record);
            return Ok(());
        };
        sum.hosts.append(&mut record.hosts);
        for (sum, job) in sum.jobs.iter_mut().zip(&record.jobs) {
            sum.add(job);
            // Of one host each: they have no sum.
            sum.host = None;
            sum.processors = None;
            sum.steady_state = None;
        }
        add_timelines(
            &mut sum.timelines,
            record.timelines,
            (&mut self.origin_ns, own),
        );
        sum.disks.append(&mut record.disks);
        if record.timestamp_ms > sum.timestamp_ms {
            sum.timestamp_ms = record.timestamp_ms;
            sum.time = record.time;
        }
        sum.elapsed_ms = sum.elapsed_ms.max(record.elapsed_ms);
        sum.failed_commands = sum.failed_commands.saturating_add(record.failed_commands);
        sum.log_failed |= record.log_failed;
        Ok(())
    }

    /// Returns the sum, with warnings about ranks that are missing or did not run together; `None`
    /// if there was no record.
    #[must_use]
    pub fn finish(self) -> Option<Record> {
        let mut sum = self.sum?;
        let found = [missing(&sum.hosts), never_together(&sum.hosts)];
        sum.warnings.splice(0..0, found.into_iter().flatten());
        Some(sum)
    }
}

/// Refuses a record that cannot be added to the ones before.
fn belongs(sum: &Record, record: &Record, host: &HostRecord) -> Result<(), HostSumError> {
    let (Some(first), Some(last)) = (sum.hosts.first(), sum.hosts.last()) else {
        return Err(HostSumError::Sum);
    };
    if sum.modelled.is_some() != record.modelled.is_some() {
        return Err(HostSumError::ModelledAndMeasured);
    }
    if host.ranks != first.ranks {
        return Err(HostSumError::Ranks(host.ranks, first.ranks));
    }
    if host.rank == last.rank {
        return Err(HostSumError::Twice(host.rank));
    }
    if host.rank < last.rank {
        return Err(HostSumError::Order(host.rank, last.rank));
    }
    match difference(sum, record) {
        Some(what) => Err(HostSumError::OtherPlan(first.rank, what)),
        None => Ok(()),
    }
}

/// Returns the first difference between the plans of two records, in words.
fn difference(sum: &Record, record: &Record) -> Option<String> {
    if let Some(what) = option_difference(&sum.global_options, &record.global_options) {
        return Some(format!("[global]: {what}"));
    }
    if sum.jobs.len() != record.jobs.len() {
        let (own, others) = (record.jobs.len(), sum.jobs.len());
        return Some(format!("{own} jobs instead of {others}"));
    }
    sum.jobs.iter().zip(&record.jobs).find_map(|(sum, job)| {
        if sum.name != job.name {
            return Some(format!("job `{}` instead of `{}`", job.name, sum.name));
        }
        let what = option_difference(&sum.options, &job.options);
        if let Some(what) = what {
            return Some(format!("job `{}`: {what}", job.name));
        }
        let place = |job: &JobRecord| (job.number, job.group_id, job.group_reporting);
        let work = |job: &JobRecord| (job.rw.clone(), job.engine.clone());
        let same = place(sum) == place(job) && work(sum) == work(job);
        (!same).then(|| format!("job `{}` does other work", job.name))
    })
}

/// Options as typed.
type Typed = [(String, String)];

fn option_difference(sum: &Typed, own: &Typed) -> Option<String> {
    if sum == own {
        return None;
    }
    let spelled = |option: Option<&(String, String)>| match option {
        Some((name, value)) if value.is_empty() => format!("`{name}`"),
        Some((name, value)) => format!("`{name}={value}`"),
        None => "nothing".to_owned(),
    };
    let longest = sum.len().max(own.len());
    let at = (0..longest).find(|&at| sum.get(at) != own.get(at))?;
    Some(format!(
        "{} instead of {}",
        spelled(own.get(at)),
        spelled(sum.get(at))
    ))
}

/// Marks the parts of a record as those of one host among others, and moves what is of that host
/// alone to its entry.
fn mark(record: &mut Record, index: u32) {
    let found = results(&record.jobs);
    let Some(host) = record.hosts.first_mut() else {
        return;
    };
    host.results = found;
    host.machine = record.machine.take();
    host.processors = record.processors.take();
    host.warnings = std::mem::take(&mut record.warnings);
    host.validity = std::mem::take(&mut record.validity);
    host.validity.retain(|validity| !validity.ok);
    if let Some(modelled) = &mut record.modelled {
        // Counts of requests at the devices of one rank.
        (modelled.devices.iter_mut()).for_each(|device| device.seeks = None);
    }
    let of = host.name.clone();
    for job in &mut record.jobs {
        job.host = Some(index);
        if let Some(text) = &mut job.error_text {
            *text = format!("{of}: {text}");
        }
        let first = job.verify.iter_mut().flat_map(|verify| &mut verify.first);
        first.for_each(|text| *text = format!("{of}: {text}"));
        // Times of a stall count from the start of its own job.
        job.stalls
            .iter_mut()
            .for_each(|stall| stall.host = Some(index));
    }
    for disk in &mut record.disks {
        disk.host = Some(index);
        // Hosts have disks of the same names.
        for name in std::iter::once(&mut disk.name).chain(&mut disk.parts) {
            *name = format!("{of}/{name}");
        }
    }
    record.idleness = None;
    record.device_trace = None;
    record.eta_s = None;
}

/// Adds timelines that count from `own_ns` of the common clock to those that count from the
/// earliest host.
fn add_timelines(
    sum: &mut Vec<TimelineRecord>,
    added: Vec<TimelineRecord>,
    (origin_ns, own_ns): (&mut Option<u64>, Option<u64>),
) {
    let Some(own_ns) = own_ns else {
        return;
    };
    let first_ns = origin_ns.unwrap_or(own_ns);
    let earlier_ns = first_ns.saturating_sub(own_ns);
    for timeline in sum.iter_mut() {
        timeline.start_ns = timeline.start_ns.saturating_add(earlier_ns);
    }
    *origin_ns = Some(first_ns - earlier_ns);
    let later_ns = own_ns - (first_ns - earlier_ns);
    for mut timeline in added {
        timeline.start_ns = timeline.start_ns.saturating_add(later_ns);
        let same = sum.iter_mut().find(|known| {
            known.group_id == timeline.group_id && known.direction == timeline.direction
        });
        match same {
            Some(known) => known.add(timeline),
            None => sum.push(timeline),
        }
    }
}

/// Returns the warning about ranks whose record is not there.
fn missing(hosts: &[HostRecord]) -> Option<Warning> {
    let ranks = hosts.first()?.ranks;
    let missing = u64::from(ranks) - hosts.len() as u64;
    if missing == 0 {
        return None;
    }
    let mut named: Vec<String> = Vec::new();
    let mut next = 0;
    let present = hosts.iter().map(|host| host.rank).chain([ranks]);
    for rank in present {
        match rank - next {
            0 => {}
            1 => named.push(next.to_string()),
            _ => named.push(format!("{next}-{}", rank - 1)),
        }
        next = rank.saturating_add(1);
    }
    Some(Warning {
        code: "ranks_missing".to_owned(),
        message: format!(
            "{missing} of {ranks} ranks {} missing ({}): the sums cover the rest",
            if missing == 1 { "is" } else { "are" },
            named.join(", ")
        ),
        ..Warning::default()
    })
}

/// Returns the warning about ranks of which one had ended before another began.
fn never_together(hosts: &[HostRecord]) -> Option<Warning> {
    let spans = || hosts.iter().filter_map(|host| Some((host, host.span()?)));
    let (early, (_, ended_ns)) = spans().min_by_key(|(_, (_, end_ns))| *end_ns)?;
    let (late, (began_ns, _)) = spans().max_by_key(|(_, (start_ns, _))| *start_ns)?;
    (ended_ns <= began_ns).then(|| Warning {
        code: "ranks_not_together".to_owned(),
        message: format!(
            "at no moment did all ranks run: rank {} ({}) had ended before rank {} ({}) began, so \
             the storage never saw the summed rates",
            early.rank, early.name, late.rank, late.name
        ),
        hint: "start all ranks with one `--start-at`".to_owned(),
        ..Warning::default()
    })
}

/// Reason for which a record cannot be added to a sum of ranks.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostSumError {
    /// A run alone.
    Alone,
    /// A sum already.
    Sum,
    /// A rank that is not below the number of ranks: rank and number.
    BadRank(u32, u32),
    /// Another number of ranks than the ones before: own and theirs.
    Ranks(u32, u32),
    /// A rank that was added already.
    Twice(u32),
    /// A rank below the last one: own and last.
    Order(u32, u32),
    /// One of both kinds, after one of the other.
    ModelledAndMeasured,
    /// Another plan than that of this rank, with the first difference.
    OtherPlan(u32, String),
}

impl fmt::Display for HostSumError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alone => write!(f, "the record of a run on one host, without a rank"),
            Self::Sum => write!(f, "the sum of several ranks already"),
            Self::BadRank(rank, ranks) => write!(f, "rank {rank} of {ranks} ranks"),
            Self::Ranks(own, first) => {
                write!(f, "a rank of {own}, but the ones before are of {first}")
            }
            Self::Twice(rank) => write!(f, "rank {rank} appears twice"),
            Self::Order(own, last) => write!(f, "rank {own} after rank {last}"),
            Self::ModelledAndMeasured => write!(f, "modelled and measured runs have no sum"),
            Self::OtherPlan(rank, what) => {
                write!(f, "another plan than that of rank {rank}: {what}")
            }
        }
    }
}

impl std::error::Error for HostSumError {}

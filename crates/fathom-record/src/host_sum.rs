//! Sum of the records of ranks.

use std::fmt;

use crate::host::results;
use crate::host_warnings::warnings;
use crate::plan_difference::{difference, position};
use crate::{HostRecord, JobRecord, Record, TimelineRecord};

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
    /// Sums of the plans before, with the starts of their first timelines.
    before: Vec<(Record, Option<u64>)>,
}

impl HostSum {
    /// Creates an empty sum.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins the next plan of a run in which ranks have different ones. Jobs of different plans
    /// are not added up: they stand side by side.
    pub fn begin_plan(&mut self) {
        if let Some(sum) = self.sum.take() {
            self.before.push((sum, self.origin_ns.take()));
        }
    }

    /// Adds the record of a rank, later than all before. If it is refused, the sum is as before.
    ///
    /// # Errors
    /// It is not a record of one rank, or does not belong to the previous ones.
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
        let before = self.before.iter().map(|(sum, _)| sum);
        let hosts: usize = before.chain(&self.sum).map(|sum| sum.hosts.len()).sum();
        let index = u32::try_from(hosts).unwrap_or(u32::MAX);
        mark(&mut record, index);
        let Some(sum) = &mut self.sum else {
            self.origin_ns = own;
            self.sum = Some(record);
            return Ok(());
        };
        add_up(sum, record, (&mut self.origin_ns, own));
        Ok(())
    }

    /// Returns the sum, with warnings about ranks that are missing, cut or did not run together,
    /// and about jobs that none had; `None` if there was no record.
    #[must_use]
    pub fn finish(mut self) -> Option<Record> {
        self.begin_plan();
        let mut plans = self.before.into_iter();
        let (mut sum, mut origin_ns) = plans.next()?;
        for (mut added, own_ns) in plans {
            renumber(&mut added, &sum);
            add_up(&mut sum, added, (&mut origin_ns, own_ns));
        }
        let found = warnings(&sum);
        sum.warnings.splice(0..0, found);
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

/// Adds a record, whose timelines count from `own_ns`, to a sum.
fn add_up(
    sum: &mut Record,
    mut record: Record,
    (origin_ns, own_ns): (&mut Option<u64>, Option<u64>),
) {
    sum.hosts.append(&mut record.hosts);
    add_jobs(&mut sum.jobs, record.jobs);
    add_timelines(&mut sum.timelines, record.timelines, (origin_ns, own_ns));
    sum.disks.append(&mut record.disks);
    if record.timestamp_ms > sum.timestamp_ms {
        sum.timestamp_ms = record.timestamp_ms;
        sum.time = record.time;
    }
    sum.elapsed_ms = sum.elapsed_ms.max(record.elapsed_ms);
    sum.failed_commands = sum.failed_commands.saturating_add(record.failed_commands);
    sum.log_failed |= record.log_failed;
}

/// Gives the jobs and groups of another plan numbers that follow those of the sum.
fn renumber(added: &mut Record, sum: &Record) {
    let numbers = sum.jobs.iter().map(|job| job.number).max();
    let groups = sum.jobs.iter().map(|job| job.group_id).max();
    let numbers = numbers.unwrap_or_default();
    let groups = groups.map_or(0, |last| last.saturating_add(1));
    for job in &mut added.jobs {
        job.number = job.number.saturating_add(numbers);
        job.group_id = job.group_id.saturating_add(groups);
        for stall in &mut job.stalls {
            stall.number = stall.number.saturating_add(numbers);
        }
    }
    for timeline in &mut added.timelines {
        timeline.group_id = timeline.group_id.map(|group| group.saturating_add(groups));
    }
}

/// Adds jobs to those of the same number; the others come between them.
fn add_jobs(sum: &mut Vec<JobRecord>, added: Vec<JobRecord>) {
    for job in added {
        match position(sum, job.number) {
            Err(at) => sum.insert(at, job),
            Ok(at) => {
                let sum = &mut sum[at];
                sum.add(&job);
                // Of one host each: they have no sum.
                sum.host = None;
                sum.processors = None;
                sum.steady_state = None;
            }
        }
    }
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

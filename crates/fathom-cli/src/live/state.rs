//! State of a view: takes the events of a run, and returns the figures to show.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use fathom_core::{Direction, Nanos};
use fathom_job::Plan;
use fathom_record::{DiskRecord, JobRecord, Warning};
use fathom_report::acts_on_terminal;
use fathom_setup::status::{Goal, Meter, RunStatus, goals};
use fathom_setup::{JobState, Snapshot, all_latencies, latencies_since};
use fathom_stats::Histogram;
use fathom_workload::Phase;

use super::Track;
use super::figures::{
    AlikeJobs, DirectionRow, DiskRow, Figures, LatencyRow, Row, RunPhase, SHOWN_PERCENTILES,
};
use super::tracks::{per_second, within};

/// State of a run that is looked at.
///
/// Tell it of the jobs by [`planned`](Self::planned), of the rest as it comes. It has no clock: the
/// time is that of the snapshots. [`figures`](Self::figures) are those of the last one; rates and
/// latencies "of the last second" cover the snapshots of at least a second.
#[derive(Debug)]
pub(crate) struct LiveState {
    goals: Vec<Goal>,
    jobs: Vec<JobFacts>,
    groups: Vec<(String, Range<usize>)>,
    alike: Arc<[AlikeJobs]>,
    meter: Meter,
    status: RunStatus,
    /// Snapshots of the last second, and the one before them.
    window: VecDeque<Arc<Snapshot>>,
    tracks: Vec<Track>,
    warnings: Vec<String>,
    more_warnings: u64,
    phase: RunPhase,
}

/// Facts of a job that do not change.
#[derive(Debug)]
struct JobFacts {
    name: String,
    group: u32,
    depth: u64,
    /// Its ops are in flight between its turns.
    asynchronous: bool,
}

impl LiveState {
    /// Creates the state of a run whose jobs are not known yet.
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            goals: goals(plan),
            jobs: Vec::new(),
            groups: Vec::new(),
            alike: Arc::default(),
            meter: Meter::default(),
            status: RunStatus::default(),
            window: VecDeque::new(),
            tracks: Vec::new(),
            warnings: Vec::new(),
            more_warnings: 0,
            phase: RunPhase::Preparing,
        }
    }

    /// Takes the jobs, in the order of the snapshots'.
    pub(crate) fn planned(&mut self, jobs: &[JobRecord]) {
        self.jobs = jobs.iter().map(|job| JobFacts::of(job, jobs)).collect();
        let places: Vec<usize> = (0..jobs.len()).collect();
        let groups = places.chunk_by(|one, next| jobs[*one].group_id == jobs[*next].group_id);
        self.groups = groups
            .filter_map(|members| {
                let (first, last) = (*members.first()?, *members.last()?);
                let name = format!("group {}", jobs[first].group_id);
                Some((name, first..last + 1))
            })
            .collect();
        self.alike = alike(jobs);
        let mut tracks = vec![Track::new("all".to_owned(), 0..jobs.len())];
        if self.groups.len() > 1 {
            let groups = self.groups.iter().take(GROUPS_TRACKED);
            tracks.extend(groups.map(|(name, jobs)| Track::new(name.clone(), jobs.clone())));
        }
        self.tracks = tracks;
    }

    /// Takes a warning.
    pub(crate) fn warn(&mut self, warning: &Warning) {
        if self.warnings.len() >= WARNINGS_MAX {
            self.more_warnings += 1;
            return;
        }
        let job = match warning.job.as_str() {
            "" => String::new(),
            job => format!("{}: ", harmless(job, NAME_MAX)),
        };
        let message = harmless(&warning.message, WARNING_MAX);
        let hint = match warning.hint.as_str() {
            "" => String::new(),
            hint => format!(" (hint: {})", harmless(hint, WARNING_MAX)),
        };
        self.warnings.push(format!("{job}{message}{hint}"));
    }

    /// Takes a change of what the run does.
    pub(crate) fn turns(&mut self, phase: RunPhase) {
        self.phase = phase;
    }

    /// Takes a snapshot, and adds its ops to the course.
    pub(crate) fn sample(&mut self, snapshot: &Snapshot) {
        if self.phase == RunPhase::Preparing {
            self.phase = RunPhase::Running;
        }
        self.status = self.meter.sample(&self.goals, snapshot);
        for track in &mut self.tracks {
            track.add(snapshot);
        }
        self.window.push_back(Arc::new(snapshot.clone()));
        let now = snapshot.elapsed;
        while self
            .window
            .get(1)
            .is_some_and(|second| now - second.elapsed >= WINDOW)
        {
            self.window.pop_front();
        }
    }

    /// Returns the figures at the last snapshot.
    pub(crate) fn figures(&self) -> Figures {
        let now = self.window.back().cloned().unwrap_or_default();
        let all = 0..self.jobs.len();
        let shown = self.jobs.len().min(JOBS_MAX);
        let groups: &[_] = match self.groups.len() {
            0 | 1 => &[],
            _ => &self.groups,
        };
        let jobs = self.jobs.iter().enumerate().take(shown);
        Figures {
            phase: self.phase,
            elapsed_ms: now.elapsed.as_millis(),
            percent: self.status.percent,
            eta_s: self.status.eta_s,
            running: self.status.running,
            planned: self.jobs.len(),
            interval_ms: self.interval().as_millis(),
            total: self.row("all".to_owned(), all),
            groups: (groups.iter().take(JOBS_MAX))
                .map(|(name, jobs)| self.row(name.clone(), jobs.clone()))
                .collect(),
            jobs: jobs
                .map(|(place, job)| self.row(job.name.clone(), place..place + 1))
                .collect(),
            more_jobs: self.jobs.len() - shown,
            tracks: self.tracks.clone(),
            disks: self.disks(),
            warnings: self.warnings.clone(),
            more_warnings: self.more_warnings,
            snapshot: now,
            alike: Arc::clone(&self.alike),
            ..Figures::default()
        }
    }

    /// Returns the time that "the last second" covers.
    fn interval(&self) -> Nanos {
        match (self.window.front(), self.window.back()) {
            // The first snapshot covers the time since the start.
            (Some(only), Some(_)) if self.window.len() == 1 => only.elapsed,
            (Some(first), Some(last)) => last.elapsed - first.elapsed,
            _ => Nanos::ZERO,
        }
    }

    /// Returns the row of jobs that follow each other.
    fn row(&self, name: String, jobs: Range<usize>) -> Row {
        let none = Arc::default();
        let now = self.window.back().unwrap_or(&none);
        // Of a single snapshot, everything is new.
        let before = self.window.front().filter(|_| self.window.len() > 1);
        let before = before.unwrap_or(&none);
        let directions = Direction::ALL.into_iter().filter_map(|direction| {
            let sums = |snapshot: &Snapshot| sums(snapshot, &jobs, direction);
            let ((ios, bytes), (ios_before, bytes_before)) = (sums(now), sums(before));
            let span = self.interval().get();
            (ios > 0).then(|| {
                let (last, run) = latencies(now, before, &jobs, direction).unzip();
                DirectionRow {
                    direction: direction.name(),
                    iops: per_second(ios.saturating_sub(ios_before), span),
                    bytes_per_s: per_second(bytes.saturating_sub(bytes_before), span),
                    ios,
                    bytes,
                    last,
                    run,
                }
            })
        });
        Row {
            directions: directions.collect(),
            group: self.jobs.get(jobs.start).map_or(0, |job| job.group),
            state: self.state_of(now, &jobs),
            in_flight: self.in_flight(&jobs),
            depth: self.depth(now, &jobs),
            name,
        }
    }

    /// Returns the state of a job in words; of several, how many run.
    fn state_of(&self, now: &Snapshot, jobs: &Range<usize>) -> String {
        let members = now.jobs.get(jobs.clone()).unwrap_or_default();
        match members {
            [job] => state_name(job.state).to_owned(),
            jobs => {
                let running = jobs.iter().filter(|job| is_working(job.state)).count();
                format!("{running} of {} run", jobs.len())
            }
        }
    }

    /// Returns the mean number of ops in flight over the window's snapshots.
    fn in_flight(&self, jobs: &Range<usize>) -> Option<f64> {
        let facts = self.jobs.get(jobs.clone())?;
        if !facts.iter().any(|job| job.asynchronous) {
            return None;
        }
        let samples = self.window.iter().skip(usize::from(self.window.len() > 1));
        let of = |snapshot: &Arc<Snapshot>| -> u64 {
            let members = snapshot.jobs.get(jobs.clone()).unwrap_or_default();
            members.iter().map(|job| u64::from(job.in_flight)).sum()
        };
        let (sum, count) = samples.map(of).fold((0, 0), |(s, n), one| (s + one, n + 1));
        (count > 0).then(|| sum as f64 / f64::from(count))
    }

    fn depth(&self, now: &Snapshot, jobs: &Range<usize>) -> u64 {
        let both = self.jobs.iter().zip(&now.jobs).enumerate();
        let members = both.filter(|(place, _)| jobs.contains(place));
        let working = members.filter(|(_, (_, seen))| is_working(seen.state));
        working.map(|(_, (facts, _))| facts.depth).sum()
    }

    /// Returns the activity of the disks in the snapshots of the last second.
    fn disks(&self) -> Vec<DiskRow> {
        let Some(last) = self.window.back() else {
            return Vec::new();
        };
        let laps: Vec<&Arc<Snapshot>> = match self.window.len() {
            1 => self.window.iter().collect(),
            _ => self.window.iter().skip(1).collect(),
        };
        let span = self.interval().get();
        let each = last.disks.iter().map(|disk| {
            let seen = laps.iter().flat_map(|lap| &lap.disks);
            let seen: Vec<&DiskRecord> = seen.filter(|one| one.name == disk.name).collect();
            disk_row(&disk.name, &seen, span)
        });
        each.collect()
    }
}

impl JobFacts {
    fn of(job: &JobRecord, all: &[JobRecord]) -> Self {
        let clones = all.iter().filter(|other| other.name == job.name).count();
        let name = harmless(&job.name, NAME_MAX);
        Self {
            name: match clones {
                1 => name,
                _ => format!("{name} #{}", job.number),
            },
            group: job.group_id,
            depth: u64::from(job.iodepth),
            asynchronous: job.asynchronous,
        }
    }
}

/// Returns the jobs that share name and group, which follow each other.
fn alike(jobs: &[JobRecord]) -> Arc<[AlikeJobs]> {
    let places: Vec<usize> = (0..jobs.len()).collect();
    let name_and_group = |place: usize| (&jobs[place].name, jobs[place].group_id);
    let same = places.chunk_by(|one, next| name_and_group(*one) == name_and_group(*next));
    let each = same.filter_map(|members| {
        let (first, last) = (*members.first()?, *members.last()?);
        Some(AlikeJobs {
            name: jobs[first].name.clone(),
            group: jobs[first].group_id,
            jobs: first..last + 1,
        })
    });
    each.collect()
}

/// Returns the ops and bytes of these jobs.
fn sums(snapshot: &Snapshot, jobs: &Range<usize>, direction: Direction) -> (u64, u64) {
    let jobs = snapshot.jobs.get(jobs.clone()).unwrap_or_default();
    let ios = jobs.iter().map(|job| job.ios[direction]).sum();
    (ios, jobs.iter().map(|job| job.bytes[direction]).sum())
}

/// Returns the latencies of the last second and of the run; `None` if those of these jobs are
/// counted with others'.
fn latencies(
    now: &Snapshot,
    before: &Snapshot,
    jobs: &Range<usize>,
    direction: Direction,
) -> Option<(LatencyRow, LatencyRow)> {
    within(&now.latencies, jobs).next()?;
    let run = all_latencies(within(&now.latencies, jobs), direction);
    let earlier = all_latencies(within(&before.latencies, jobs), direction);
    let last = latencies_since(&run, &earlier);
    Some((LatencyRow::of(&last), LatencyRow::of(&run)))
}

impl LatencyRow {
    fn of(latencies: &Histogram) -> Self {
        let ops = latencies.count();
        let mut percentiles_ns = [None; SHOWN_PERCENTILES.len()];
        let values = latencies.percentiles(&SHOWN_PERCENTILES);
        for ((slot, value), percent) in percentiles_ns.iter_mut().zip(values).zip(SHOWN_PERCENTILES)
        {
            let beyond = ops as f64 * (100.0 - percent) / 100.0;
            *slot = (beyond >= BEYOND_MIN).then_some(value);
        }
        Self {
            ops,
            percentiles_ns,
        }
    }
}

fn disk_row(name: &str, laps: &[&DiskRecord], span_ns: u64) -> DiskRow {
    let sum = |of: fn(&DiskRecord) -> u64| laps.iter().map(|lap| of(lap)).sum::<u64>();
    let sectors = sum(|lap| lap.read_sectors + lap.write_sectors);
    let util = laps.iter().map(|lap| lap.util_percent).sum::<f64>() / laps.len().max(1) as f64;
    DiskRow {
        name: harmless(name, NAME_MAX),
        util_percent: util,
        queue: sum(|lap| lap.in_queue_ms) as f64 * 1e6 / span_ns.max(1) as f64,
        iops: per_second(sum(|lap| lap.read_ios + lap.write_ios), span_ns),
        bytes_per_s: per_second(sectors.saturating_mul(512), span_ns),
    }
}

const fn is_working(state: JobState) -> bool {
    matches!(state, JobState::Working(_))
}

/// Returns the state of a job in a word.
const fn state_name(state: JobState) -> &'static str {
    match state {
        JobState::NotStarted => "waits",
        JobState::SettingUp => "sets up",
        JobState::Ended => "ended",
        JobState::Failed => "failed",
        JobState::Working(phase) => match phase {
            Phase::Delayed => "delayed",
            Phase::Ramp => "ramp",
            Phase::Running => "runs",
            Phase::Verifying => "verifies",
            Phase::Syncing => "syncs",
            Phase::Finished => "finishes",
        },
    }
}

/// Returns text without characters that would act on a terminal or turn the direction of writing,
/// cut to a length.
fn harmless(text: &str, length: usize) -> String {
    let plain = |c: char| match acts_on_terminal(c) {
        true => '\u{fffd}',
        false => c,
    };
    let mut cut: String = text.chars().take(length).map(plain).collect();
    if text.chars().nth(length).is_some() {
        cut.push('…');
    }
    cut
}

/// Length of "the last second", at least.
const WINDOW: Nanos = Nanos::from_secs(1);
/// Rows for single jobs, and for groups: more than anyone reads.
const JOBS_MAX: usize = 64;
/// Groups with a course of their own.
const GROUPS_TRACKED: usize = 8;
/// Warnings kept; the report has all.
const WARNINGS_MAX: usize = 50;
/// Characters of a name: the rest is in the report.
const NAME_MAX: usize = 40;
/// Characters of a warning.
const WARNING_MAX: usize = 400;
/// Ops beyond a percentile, below which it is a matter of single ops; less what doubles lose.
const BEYOND_MIN: f64 = 10.0 - 1e-6;

#[cfg(test)]
mod tests;

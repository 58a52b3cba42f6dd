//! Status line of `--client`: the jobs of all ranks, beside the user.

use fathom_core::{Nanos, PerDirection, Tick};
use fathom_hosts::{Conductor, Progress, Rank};
use fathom_job::{Job, Plan};
use fathom_setup::{JobSnapshot, JobState, RunEvent, Snapshot};
use fathom_workload::Phase;

use crate::ranks::progress::OtherRanks;
use crate::report::Report;

/// Status line, drawn at an interval once the jobs have begun.
pub(crate) struct ClientStatus<'a> {
    report: &'a mut Report,
    /// `None`: no line is drawn.
    every: Option<Nanos>,
    /// Sections of all ranks, one after another.
    plan: Plan,
    /// Jobs of each rank from rank 1 on.
    jobs: Vec<usize>,
    others: OtherRanks,
    /// Start of the jobs, from their first report.
    begun: Option<Tick>,
    due: Tick,
}

impl<'a> ClientStatus<'a> {
    /// Creates the line of ranks with these plans, from rank 1 on; the plan of a rank whose job
    /// file is on its host is empty, so that it counts in the rates alone.
    pub(crate) fn new(report: &'a mut Report, every: Option<Nanos>, plans: &[&Plan]) -> Self {
        let clones = |job: &Job| job.options.numjobs.max(1) as usize;
        let count = |plan: &&Plan| plan.jobs.iter().map(clones).sum();
        let mut all = Plan::default();
        all.jobs = plans.iter().flat_map(|plan| plan.jobs.clone()).collect();
        Self {
            report,
            every,
            plan: all,
            jobs: plans.iter().map(count).collect(),
            others: OtherRanks::default(),
            begun: None,
            due: Tick::ZERO,
        }
    }

    /// Draws the line, if it is time.
    pub(crate) fn draw(&mut self, now: Tick, conductor: &Conductor) {
        let Some(every) = self.every.filter(|_| now >= self.due) else {
            return;
        };
        self.due = now + every;
        let ranks = u32::try_from(self.jobs.len()).unwrap_or(u32::MAX);
        self.others.hear(conductor, ranks.saturating_add(1));
        let reports = (1..=ranks).map(|rank| conductor.progress_of(Rank::new(rank)));
        let reports: Vec<Progress> = reports.map(Option::unwrap_or_default).collect();
        let longest = reports.iter().map(|report| report.elapsed).max();
        let longest = longest.filter(|elapsed| !elapsed.is_zero());
        let Some(begun) = self.begun.or_else(|| {
            let at = now.get().saturating_sub(longest?.get());
            Some(Tick::new(at))
        }) else {
            return;
        };
        self.begun = Some(begun);
        let mut snapshot = Snapshot {
            elapsed: now - begun,
            ..Snapshot::default()
        };
        let mut unknown = Vec::new();
        for (place, (report, &jobs)) in reports.iter().zip(&self.jobs).enumerate() {
            let done = self.others.carried(place, snapshot.elapsed);
            let (ios, bytes) = done.unwrap_or_default();
            match jobs {
                0 => unknown.push(JobSnapshot {
                    state: JobState::Ended,
                    ios,
                    bytes,
                    ..JobSnapshot::default()
                }),
                _ => {
                    let of_rank = jobs_of(report, (ios, bytes), jobs, snapshot.elapsed);
                    snapshot.jobs.extend(of_rank);
                }
            }
        }
        // Behind those that have a place in the plan.
        snapshot.jobs.append(&mut unknown);
        self.report
            .on_event(&self.plan, &RunEvent::Progress(&snapshot), 0);
    }
}

/// Returns `count` jobs of a rank with this report, those that have ended first. Each is taken to
/// have done its share.
fn jobs_of(
    report: &Progress,
    (ios, bytes): (PerDirection<u64>, PerDirection<u64>),
    count: usize,
    elapsed: Nanos,
) -> Vec<JobSnapshot> {
    let (ended, running) = (report.jobs_ended as usize, report.jobs_running as usize);
    let share = |sum: &PerDirection<u64>, place: usize| {
        let (place, count) = (place as u64, count as u64);
        PerDirection::from_fn(|direction| {
            let sum = sum[direction];
            sum / count + u64::from(place < sum % count)
        })
    };
    let job = |place| JobSnapshot {
        state: match place {
            place if place < ended => JobState::Ended,
            place if place < ended + running => JobState::Working(Phase::Running),
            _ => JobState::NotStarted,
        },
        ios: share(&ios, place),
        bytes: share(&bytes, place),
        elapsed,
        ..JobSnapshot::default()
    };
    (0..count).map(job).collect()
}

#[cfg(test)]
mod tests {
    use fathom_core::Direction;

    use super::*;

    #[test]
    fn the_jobs_of_a_rank_share_what_it_has_done() {
        let report = Progress {
            jobs_running: 1,
            jobs_ended: 1,
            ..Progress::default()
        };
        let done = PerDirection::from_fn(|direction| match direction {
            Direction::Read => 10,
            Direction::Write | Direction::Trim => 0,
        });
        let jobs = jobs_of(&report, (done, done), 3, Nanos::from_secs(1));
        let states: Vec<_> = jobs.iter().map(|job| job.state).collect();
        let running = JobState::Working(Phase::Running);
        assert_eq!(states, [JobState::Ended, running, JobState::NotStarted]);
        let reads: Vec<u64> = jobs.iter().map(|job| job.ios[Direction::Read]).collect();
        assert_eq!(reads, [4, 3, 3]);
    }
}

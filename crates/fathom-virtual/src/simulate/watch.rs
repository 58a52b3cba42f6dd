//! Lifecycle of a simulation's jobs: starts, interim reports, stop requests.

use fathom_core::{Nanos, Tick};
use fathom_record::Record;
use fathom_setup::lifecycle::Lifecycle;
use fathom_setup::status::{Goal, Meter, goals};
use fathom_setup::{JobSnapshot, JobState, REPORT_EVERY_MIN, RunEvent, Session, Snapshot};
use fathom_sim::{Orders, Watch};
use fathom_workload::{Phase, Results, Worker};

use super::RunParts;

/// Watcher of a run in virtual time: starts jobs in order and reports to the session.
pub(super) struct RunWatcher<'a, 's> {
    run: &'a RunParts<'a>,
    lifecycle: Lifecycle,
    /// Jobs that have started, by setup.
    started: Vec<bool>,
    session: &'a mut Session<'s>,
    goals: Vec<Goal>,
    /// Time of the next periodic report.
    due: Tick,
    /// Interval between periodic reports.
    every: Nanos,
    /// Number of report requests seen so far.
    seen: u32,
    /// A requested report is still to be sent.
    asked: bool,
    stopped: bool,
}

impl<'a, 's> RunWatcher<'a, 's> {
    /// Creates the watcher and marks the first jobs as started.
    pub(super) fn new(
        run: &'a RunParts<'a>,
        mut lifecycle: Lifecycle,
        session: &'a mut Session<'s>,
    ) -> Self {
        let mut started = vec![false; run.setups.len()];
        for index in lifecycle.ready() {
            started[index] = true;
        }
        let every = session
            .report_every
            .map(|every| every.max(REPORT_EVERY_MIN));
        Self {
            run,
            lifecycle,
            started,
            goals: every.map_or_else(Vec::new, |_| goals(run.plan)),
            due: every.map_or(Tick::MAX, |every| Tick::ZERO + every),
            every: every.unwrap_or(Nanos::MAX),
            seen: (session.reports_asked)(),
            asked: false,
            stopped: false,
            session,
        }
    }

    /// Returns true if a job has started.
    pub(super) fn has_started(&self, index: usize) -> bool {
        self.started[index]
    }

    /// Returns the record up to `now`.
    fn so_far(&self, now: Tick, workers: &mut dyn Iterator<Item = &Worker>) -> Record {
        let mut results = Vec::with_capacity(self.started.len());
        let mut snapshot = Snapshot {
            elapsed: now - Tick::ZERO,
            ..Snapshot::default()
        };
        for (worker, &started) in workers.zip(&self.started) {
            let so_far = worker.results_so_far(now).filter(|_| started);
            snapshot
                .jobs
                .push(snapshot_of(worker, started, so_far.as_ref(), now));
            results.push(so_far);
        }
        Record {
            eta_s: Meter::default().sample(&self.goals, &snapshot).eta_s,
            ..self.run.record(results, now)
        }
    }
}

impl Watch for RunWatcher<'_, '_> {
    fn ended(&mut self, index: usize, worker: &Worker) -> Orders {
        let stop = self.lifecycle.ended(index, worker.has_failed());
        let start = self.lifecycle.ready();
        start.iter().for_each(|&index| self.started[index] = true);
        Orders { start, stop }
    }

    fn stops(&mut self) -> bool {
        let asked = (self.session.reports_asked)();
        self.asked |= std::mem::replace(&mut self.seen, asked) != asked;
        if self.stopped || (self.session.stops)() == 0 {
            return false;
        }
        self.stopped = true;
        self.lifecycle.start_no_more();
        (self.session.tell)(RunEvent::Stopping);
        true
    }

    fn next_sample(&self) -> Tick {
        if self.asked { Tick::ZERO } else { self.due }
    }

    fn sample(&mut self, now: Tick, workers: &mut dyn Iterator<Item = &Worker>) {
        self.asked = false;
        while self.due <= now {
            self.due += self.every;
        }
        let record = self.so_far(now, workers);
        (self.session.tell)(RunEvent::Interim(&record));
    }
}

/// Returns the progress of a job.
fn snapshot_of(worker: &Worker, started: bool, so_far: Option<&Results>, now: Tick) -> JobSnapshot {
    let progress = worker.progress();
    JobSnapshot {
        state: match progress.phase {
            _ if !started => JobState::NotStarted,
            Phase::Finished => JobState::Ended,
            phase => JobState::Working(phase),
        },
        ios: progress.ios,
        bytes: progress.bytes,
        in_flight: progress.in_flight,
        elapsed: so_far.map_or(Nanos::ZERO, |results| now - results.started),
    }
}

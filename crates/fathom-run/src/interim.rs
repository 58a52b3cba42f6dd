//! Interim reports while the jobs run.
//!
//! ```text
//! watcher: asks every job ──► job: copies its results on its next turn, on its own thread
//!          waits up to 300 ms
//!          builds a record ◄── answers; the previous one for a job blocked in a long op
//! ```
//!
//! Without a request, a job pays one relaxed load per turn. The watcher does not read the results
//! in place: that would need a lock or atomics on every op.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use fathom_core::{Nanos, Tick};
use fathom_record::Record;
use fathom_setup::outcome::JobOutcome;
use fathom_setup::{JobState, REPORT_EVERY_MIN, Snapshot};

use crate::offload;
use crate::progress::ProgressCell;

/// Interim results of one job, before the CPU time of other threads is added.
#[derive(Clone, Debug, Default)]
pub(crate) struct InterimResults {
    /// Results so far and the CPU time of the job's own thread.
    pub(crate) outcome: JobOutcome,
    /// Thread numbers of the running offload workers, whose CPU time is not included yet.
    pub(crate) workers: Vec<u32>,
    /// The kernel runs threads on behalf of its engine, whose time is not counted yet either.
    pub(crate) kernel_threads: bool,
}

/// Exchange of one job's interim results with the watcher.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    asked: AtomicBool,
    answer: Mutex<Option<Box<InterimResults>>>,
}

impl Mailbox {
    /// Returns true while the watcher waits for an answer.
    #[inline]
    pub(crate) fn is_asked(&self) -> bool {
        // Relaxed: only a hint to answer; the mutex orders the answer itself.
        self.asked.load(Ordering::Relaxed)
    }

    fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Stores an answer, replacing an older one.
    #[cold]
    pub(crate) fn answer(&self, latest: InterimResults) {
        if let Ok(mut answer) = self.answer.lock() {
            *answer = Some(Box::new(latest));
        }
        self.asked.store(false, Ordering::Relaxed);
    }

    fn take(&self) -> Option<InterimResults> {
        let mut answer = self.answer.lock().ok()?;
        answer.take().map(|answer| *answer)
    }
}

/// Builds the record of an interim report from the jobs' results and progress.
pub(crate) type SoFar<'a> = &'a dyn Fn(Vec<Option<JobOutcome>>, &Snapshot) -> Record;

/// Uses of the results so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Purpose {
    /// A report to show.
    pub(crate) is_shown: bool,
    /// A record to keep in case the run is killed.
    pub(crate) is_kept: bool,
}

/// Repeated moments at which results are due.
#[derive(Clone, Copy, Debug)]
struct Schedule {
    every: Nanos,
    due: Tick,
}

impl Schedule {
    fn new(every: Option<Nanos>, begun: Tick) -> Self {
        let every = every.unwrap_or(Nanos::MAX).max(REPORT_EVERY_MIN);
        Self {
            every,
            due: begun + every,
        }
    }

    /// Returns whether results are due, and leads on to the next moment.
    fn take(&mut self, now: Tick) -> bool {
        let is_due = self.due <= now;
        while self.due <= now {
            self.due += self.every;
        }
        is_due
    }
}

/// Schedules of interim reports and records, and the latest results of every job.
pub(crate) struct Interim {
    shown: Schedule,
    kept: Schedule,
    /// A report was requested outside the schedule.
    asked: bool,
    /// Deadline for the answers, while waiting for them.
    waiting: Option<Tick>,
    latest: Vec<Option<JobOutcome>>,
}

impl Interim {
    /// Schedules reports to show and records to keep, counted from `begun`.
    pub(crate) fn new(
        show_every: Option<Nanos>,
        keep_every: Option<Nanos>,
        begun: Tick,
        jobs: usize,
    ) -> Self {
        Self {
            shown: Schedule::new(show_every, begun),
            kept: Schedule::new(keep_every, begun),
            asked: false,
            waiting: None,
            latest: (0..jobs).map(|_| None).collect(),
        }
    }

    /// Requests a report now; the schedule stays as it is.
    pub(crate) fn ask(&mut self) {
        self.asked = true;
    }

    /// Returns how long the watcher may sleep at most.
    pub(crate) fn patience(&self, now: Tick) -> Nanos {
        match self.waiting {
            Some(_) => ANSWER_POLL,
            None => (self.due() - now).max(Nanos::from_micros(100)),
        }
    }

    /// Returns the next moment of either schedule.
    fn due(&self) -> Tick {
        self.shown.due.min(self.kept.due)
    }

    /// Asks the jobs for results when they are due. Returns the results, and what for, once all
    /// running jobs have answered or the deadline has passed.
    pub(crate) fn poll(
        &mut self,
        now: Tick,
        cells: &[ProgressCell],
    ) -> Option<(Purpose, &[Option<JobOutcome>])> {
        let until = match self.waiting {
            None if now < self.due() && !self.asked => return None,
            None => {
                cells.iter().for_each(|cell| cell.mailbox.ask());
                *self.waiting.insert(now + ANSWER_WAIT_MAX)
            }
            Some(until) => until,
        };
        let working = |cell: &&ProgressCell| matches!(cell.read().state, JobState::Working(_));
        let owing = cells.iter().filter(working);
        if now < until && owing.into_iter().any(|cell| cell.mailbox.is_asked()) {
            return None;
        }
        self.waiting = None;
        let asked = std::mem::take(&mut self.asked);
        let purpose = Purpose {
            is_shown: self.shown.take(now) || asked,
            is_kept: self.kept.take(now),
        };
        for (latest, cell) in self.latest.iter_mut().zip(cells) {
            if let Some(answer) = cell.mailbox.take() {
                *latest = Some(offload::ask_others(answer));
            }
        }
        Some((purpose, &self.latest))
    }
}

/// Interval between checks for answers.
const ANSWER_POLL: Nanos = Nanos::from_millis(1);
/// Longest wait for answers: a sleeping job wakes ten times a second, so three chances each.
const ANSWER_WAIT_MAX: Nanos = Nanos::from_millis(300);

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_workload::{Phase, WorkerProgress};

    fn cells(count: usize) -> Vec<ProgressCell> {
        let cells: Vec<_> = (0..count).map(|_| ProgressCell::default()).collect();
        for cell in &cells {
            cell.publish(&WorkerProgress {
                phase: Phase::Running,
                ..WorkerProgress::default()
            });
        }
        cells
    }

    fn answer(thread_id: u32) -> InterimResults {
        InterimResults {
            outcome: JobOutcome {
                thread_id,
                ..JobOutcome::default()
            },
            workers: Vec::new(),
            kernel_threads: false,
        }
    }

    /// Expects a report with the answers of the threads `want`; 0 stands for no answer.
    #[track_caller]
    fn check(interim: &mut Interim, at_ms: u64, cells: &[ProgressCell], want: Option<&[u32]>) {
        let now = Tick::ZERO + Nanos::from_millis(at_ms);
        let id = |outcome: &Option<JobOutcome>| outcome.as_ref().map_or(0, |o| o.thread_id);
        let ids = interim.poll(now, cells);
        let ids = ids.map(|(purpose, outcomes)| {
            let is_kept = false;
            assert_eq!(
                purpose,
                Purpose {
                    is_shown: true,
                    is_kept
                }
            );
            outcomes.iter().map(id).collect::<Vec<_>>()
        });
        assert_eq!(ids.as_deref(), want);
    }

    #[test]
    fn report_waits_for_every_answer() {
        let cells = cells(2);
        let mut interim = Interim::new(Some(Nanos::from_secs(1)), None, Tick::ZERO, 2);
        check(&mut interim, 999, &cells, None);
        assert!(!cells[0].mailbox.is_asked());
        check(&mut interim, 1000, &cells, None);
        assert!(cells[0].mailbox.is_asked() && cells[1].mailbox.is_asked());
        cells[0].mailbox.answer(answer(7));
        check(&mut interim, 1001, &cells, None);
        cells[1].mailbox.answer(answer(8));
        check(&mut interim, 1002, &cells, Some(&[7, 8]));
        check(&mut interim, 1999, &cells, None);
    }

    #[test]
    fn blocked_job_is_reported_by_its_last_answer() {
        let cells = cells(2);
        let mut interim = Interim::new(Some(Nanos::from_secs(1)), None, Tick::ZERO, 2);
        check(&mut interim, 1000, &cells, None);
        cells[0].mailbox.answer(answer(7));
        cells[1].mailbox.answer(answer(8));
        check(&mut interim, 1001, &cells, Some(&[7, 8]));
        check(&mut interim, 2000, &cells, None);
        cells[1].mailbox.answer(answer(9));
        check(&mut interim, 2299, &cells, None);
        check(&mut interim, 2300, &cells, Some(&[7, 9]));
        // A late report does not shift the schedule.
        check(&mut interim, 2999, &cells, None);
        assert!(!cells[1].mailbox.is_asked());
    }

    #[test]
    fn requested_report_does_not_shift_the_schedule() {
        let cells = cells(1);
        let mut interim = Interim::new(Some(Nanos::from_secs(1)), None, Tick::ZERO, 1);
        interim.ask();
        check(&mut interim, 300, &cells, None);
        cells[0].mailbox.answer(answer(7));
        check(&mut interim, 301, &cells, Some(&[7]));
        check(&mut interim, 999, &cells, None);
        assert!(!cells[0].mailbox.is_asked());
        check(&mut interim, 1000, &cells, None);
        assert!(cells[0].mailbox.is_asked());
    }

    #[test]
    fn records_to_keep_have_a_schedule_of_their_own() {
        let seconds = |seconds| Some(Nanos::from_secs(seconds));
        let mut interim = Interim::new(seconds(2), seconds(3), Tick::ZERO, 0);
        let mut at = |ms| {
            let found = interim.poll(Tick::ZERO + Nanos::from_millis(ms), &[]);
            found.map(|(purpose, _)| (purpose.is_shown, purpose.is_kept))
        };
        assert_eq!(at(1999), None);
        assert_eq!(at(2000), Some((true, false)));
        assert_eq!(at(2999), None);
        assert_eq!(at(3001), Some((false, true)));
        assert_eq!(at(3002), None);
        assert_eq!(at(6000), Some((true, true)));
    }

    #[test]
    fn idle_jobs_are_not_waited_for() {
        let cells = cells(2);
        cells[0].set(JobState::NotStarted);
        cells[1].mailbox.answer(answer(9));
        cells[1].set(JobState::Ended);
        let mut interim = Interim::new(Some(Nanos::from_secs(1)), None, Tick::ZERO, 2);
        check(&mut interim, 1000, &cells, Some(&[0, 9]));
    }
}

//! Reports while the jobs run.
//!
//! ```text
//! watcher: asks every job ──► job: answers on its next turn, on its own thread, with a copy of
//!          waits a little           what it has measured
//!          makes a record ◄── answers; of a job that is stuck in a long op, the last one
//! ```
//!
//! A job that nobody asks pays one relaxed load a turn for this.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use fathom_core::{Nanos, Tick};
use fathom_record::Record;
use fathom_setup::outcome::Outcome;
use fathom_setup::{JobState, REPORT_EVERY_MIN, Snapshot};

use crate::offload;
use crate::progress::ProgressCell;

/// What one job has measured so far, before the time of other threads is added.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    /// What it has measured, and what its own thread has used.
    pub(crate) outcome: Outcome,
    /// Its offload workers at work, by thread number: what they have used is not counted yet.
    pub(crate) workers: Vec<u32>,
    /// The kernel runs threads on behalf of its engine, whose time is not counted yet either.
    pub(crate) kernel_threads: bool,
}

/// Where one job leaves what it has measured, for whoever asks.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    asked: AtomicBool,
    answer: Mutex<Option<Box<Answer>>>,
}

impl Mailbox {
    /// Whether an answer is waited for.
    #[inline]
    pub(crate) fn is_asked(&self) -> bool {
        // Relaxed: the answer itself goes through the lock.
        self.asked.load(Ordering::Relaxed)
    }

    fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Leaves an answer in place of an older one.
    #[cold]
    pub(crate) fn answer(&self, latest: Answer) {
        if let Ok(mut answer) = self.answer.lock() {
            *answer = Some(Box::new(latest));
        }
        self.asked.store(false, Ordering::Relaxed);
    }

    fn take(&self) -> Option<Answer> {
        let mut answer = self.answer.lock().ok()?;
        answer.take().map(|answer| *answer)
    }
}

/// Makes a record of what the jobs have measured so far, and of how far they have come.
pub(crate) type SoFar<'a> = &'a dyn Fn(Vec<Option<Outcome>>, &Snapshot) -> Record;

/// When reports are due, and what is known for the next one.
pub(crate) struct Interim {
    every: Nanos,
    due: Tick,
    /// One is wanted now, whatever is due.
    asked: bool,
    /// While answers are waited for: until when.
    waiting: Option<Tick>,
    latest: Vec<Option<Outcome>>,
}

impl Interim {
    /// A report after each `every`, counted from `begun`.
    pub(crate) fn new(every: Nanos, begun: Tick, jobs: usize) -> Self {
        let every = every.max(REPORT_EVERY_MIN);
        Self {
            every,
            due: begun + every,
            asked: false,
            waiting: None,
            latest: (0..jobs).map(|_| None).collect(),
        }
    }

    /// A report is wanted now; the others come as they would have.
    pub(crate) fn ask(&mut self) {
        self.asked = true;
    }

    /// How long the watcher may sleep at most.
    pub(crate) fn patience(&self, now: Tick) -> Nanos {
        match self.waiting {
            Some(_) => ANSWERS,
            None => (self.due - now).max(Nanos::from_micros(100)),
        }
    }

    /// Asks when a report is due; when everybody has answered, what is to be in it.
    pub(crate) fn look(&mut self, now: Tick, cells: &[ProgressCell]) -> Option<&[Option<Outcome>]> {
        let until = match self.waiting {
            None if now < self.due && !self.asked => return None,
            None => {
                cells.iter().for_each(|cell| cell.mailbox.ask());
                *self.waiting.insert(now + PATIENCE)
            }
            Some(until) => until,
        };
        let working = |cell: &&ProgressCell| matches!(cell.read().0, JobState::Working(_));
        let owing = cells.iter().filter(working);
        if now < until && owing.into_iter().any(|cell| cell.mailbox.is_asked()) {
            return None;
        }
        self.waiting = None;
        self.asked = false;
        while self.due <= now {
            self.due += self.every;
        }
        for (latest, cell) in self.latest.iter_mut().zip(cells) {
            if let Some(answer) = cell.mailbox.take() {
                *latest = Some(offload::ask_others(answer));
            }
        }
        Some(&self.latest)
    }
}

/// How often answers are looked for.
const ANSWERS: Nanos = Nanos::from_millis(1);
/// How long answers are waited for: a sleeping job looks around ten times a second.
const PATIENCE: Nanos = Nanos::from_millis(300);

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_workload::{Phase, Progress};

    fn cells(count: usize) -> Vec<ProgressCell> {
        let cells: Vec<_> = (0..count).map(|_| ProgressCell::default()).collect();
        for cell in &cells {
            cell.publish(&Progress {
                phase: Phase::Running,
                ..Progress::default()
            });
        }
        cells
    }

    fn answer(thread_id: u32) -> Answer {
        Answer {
            outcome: Outcome {
                thread_id,
                ..Outcome::default()
            },
            workers: Vec::new(),
            kernel_threads: false,
        }
    }

    /// `want` are the threads whose answers go into a report; 0 for none.
    #[track_caller]
    fn check(interim: &mut Interim, at_ms: u64, cells: &[ProgressCell], want: Option<&[u32]>) {
        let now = Tick::ZERO + Nanos::from_millis(at_ms);
        let id = |outcome: &Option<Outcome>| outcome.as_ref().map_or(0, |o| o.thread_id);
        let ids = interim.look(now, cells);
        let ids = ids.map(|outcomes| outcomes.iter().map(id).collect::<Vec<_>>());
        assert_eq!(ids.as_deref(), want);
    }

    #[test]
    fn a_report_is_made_when_every_job_has_answered() {
        let cells = cells(2);
        let mut interim = Interim::new(Nanos::from_secs(1), Tick::ZERO, 2);
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
    fn a_job_that_is_stuck_is_told_of_by_its_last_answer() {
        let cells = cells(2);
        let mut interim = Interim::new(Nanos::from_secs(1), Tick::ZERO, 2);
        check(&mut interim, 1000, &cells, None);
        cells[0].mailbox.answer(answer(7));
        cells[1].mailbox.answer(answer(8));
        check(&mut interim, 1001, &cells, Some(&[7, 8]));
        check(&mut interim, 2000, &cells, None);
        cells[1].mailbox.answer(answer(9));
        check(&mut interim, 2299, &cells, None);
        check(&mut interim, 2300, &cells, Some(&[7, 9]));
        // A report that was late does not move the next.
        check(&mut interim, 2999, &cells, None);
        assert!(!cells[1].mailbox.is_asked());
    }

    #[test]
    fn a_report_that_is_asked_for_does_not_move_the_next() {
        let cells = cells(1);
        let mut interim = Interim::new(Nanos::from_secs(1), Tick::ZERO, 1);
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
    fn jobs_that_do_not_run_are_not_waited_for() {
        let cells = cells(2);
        cells[0].set(JobState::NotStarted);
        cells[1].mailbox.answer(answer(9));
        cells[1].set(JobState::Ended);
        let mut interim = Interim::new(Nanos::from_secs(1), Tick::ZERO, 2);
        check(&mut interim, 1000, &cells, Some(&[0, 9]));
    }
}

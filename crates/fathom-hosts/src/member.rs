//! A rank's side: reports its state to the conductor, and follows its orders.

use fathom_core::{Nanos, Tick};

use crate::Wave;
use crate::conductor::{EXIT_FAILED, SILENCE_MAX};
use crate::messages::{Order, Progress, Report, Stage, Start, StopReason};
use crate::seat::Place;

/// State machine of one rank.
///
/// The run reports its progress by [`enter`](Self::enter), in the order of [`Stage`], and asks by
/// the getters what it may do; it never waits for an answer here. Feed it with
/// [`handle_order`](Self::handle_order) and, from [`wake_at`](Self::wake_at) on,
/// [`handle_timeout`](Self::handle_timeout), and send what [`poll_report`](Self::poll_report)
/// returns. `now` is the rank's own clock.
///
/// If the conductor falls silent, the rank runs its wave to the end, keeps its record and leaves
/// with code 2.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Member {
    stage: Stage,
    wants_stop: Option<StopReason>,
    wants_end: Option<Wave>,
    progress: Progress,
    verdict: Option<Verdict>,
    files_ready: bool,
    start: Option<Start>,
    /// Last wave that has ended on all ranks.
    all_ended: Option<Wave>,
    /// Last wave that all end now.
    over: Option<Wave>,
    stop: Option<StopReason>,
    leave: Option<u8>,
    conductor_lost: bool,
    heard_at: Tick,
    report_at: Tick,
    /// A report is to be sent now.
    is_due: bool,
}

/// Verdict on the plan, of all ranks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Sound everywhere: lay out the files, except for those with these indexes.
    Sound {
        /// Indexes of files that another rank lays out.
        others: Vec<u16>,
    },
    /// Refused, here or elsewhere: nothing may be made.
    Refused,
}

/// Answer to jobs that wait to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Not yet.
    Wait,
    /// At this time.
    At(Start),
    /// Never.
    Over(StopReason),
}

impl Member {
    /// Creates a rank that begins to check its plan.
    #[must_use]
    pub fn new(now: Tick) -> Self {
        Self {
            stage: Stage::Checking,
            wants_stop: None,
            wants_end: None,
            progress: Progress::default(),
            verdict: None,
            files_ready: false,
            start: None,
            all_ended: None,
            over: None,
            stop: None,
            leave: None,
            conductor_lost: false,
            heard_at: now,
            report_at: now + REPORT_EVERY,
            is_due: true,
        }
    }

    /// Moves on to a later stage, and reports it. [`Stage::Running`] and [`Stage::Left`] follow
    /// from orders; an earlier stage than the current one is ignored.
    pub fn enter(&mut self, stage: Stage) {
        if Place::of(&stage).key() > Place::of(&self.stage).key() {
            self.stage = stage;
            self.is_due = true;
        }
        self.give_up();
    }

    /// Requests that all ranks stop. The first reason counts.
    pub fn ask_stop(&mut self, reason: StopReason) {
        if self.wants_stop.is_none() {
            self.wants_stop = Some(reason);
            self.is_due = true;
        }
    }

    /// Requests that all ranks end this wave, such as for `exitall`.
    pub fn ask_end(&mut self, wave: Wave) {
        if self.wants_end < Some(wave) {
            self.wants_end = Some(wave);
            self.is_due = true;
        }
    }

    /// Sets the progress for the next report.
    pub const fn set_progress(&mut self, progress: Progress) {
        self.progress = progress;
    }

    /// Handles an order.
    pub fn handle_order(&mut self, now: Tick, order: Order) {
        self.heard_at = self.heard_at.max(now);
        match order {
            Order::Heard => {}
            Order::Refused => self.decided(Verdict::Refused),
            Order::LayOut { others } => self.decided(Verdict::Sound { others }),
            Order::FilesReady => self.files_ready = true,
            Order::Start(start) => {
                if self.stage == Stage::Ready(start.wave) && self.stop.is_none() {
                    self.start = Some(start);
                    // Reported with the next regular report: until then it is taken to be so.
                    self.stage = Stage::Running(start.wave);
                }
            }
            Order::AllEnded(wave) => {
                if self.stage == Stage::Ended(wave) {
                    self.all_ended = Some(wave);
                }
            }
            Order::EndWave(wave) => self.over = self.over.max(Some(wave)),
            Order::Stop(reason) => self.stopped(reason),
            Order::Leave { code } => {
                if Place::of(&self.stage) == Place::Through {
                    self.leave = Some(code);
                    self.stage = Stage::Left;
                    self.is_due = true;
                }
            }
        }
    }

    /// Handles the word of the transport that the conductor is gone.
    pub fn handle_gone(&mut self) {
        // Beside the reason to stop: there may have been another one before.
        self.conductor_lost = true;
        self.stopped(StopReason::ConductorLost);
        self.give_up();
    }

    /// Reports if a second has passed, and notices a silent conductor.
    pub fn handle_timeout(&mut self, now: Tick) {
        if now >= self.report_at {
            let late = now - self.report_at;
            // This process did not run: what it did not hear may still be waiting for it.
            if late > REPORT_EVERY {
                self.heard_at += late;
            }
            self.is_due = true;
            self.report_at = now + REPORT_EVERY;
        }
        if now - self.heard_at >= SILENCE_MAX {
            self.handle_gone();
        }
        self.give_up();
    }

    /// Takes the report to be sent now, if any.
    pub fn poll_report(&mut self) -> Option<Report> {
        std::mem::take(&mut self.is_due).then(|| Report {
            stage: self.stage.clone(),
            wants_stop: self.wants_stop,
            wants_end: self.wants_end,
            progress: self.progress,
        })
    }

    /// Returns the time of the next call of [`handle_timeout`](Self::handle_timeout).
    #[must_use]
    pub const fn wake_at(&self) -> Tick {
        self.report_at
    }

    /// Returns the current stage.
    #[must_use]
    pub const fn stage(&self) -> &Stage {
        &self.stage
    }

    /// Returns the verdict on the plan, once there is one.
    #[must_use]
    pub const fn verdict(&self) -> Option<&Verdict> {
        self.verdict.as_ref()
    }

    /// Returns whether the files of all ranks are laid out.
    #[must_use]
    pub const fn files_ready(&self) -> bool {
        self.files_ready
    }

    /// Returns whether the jobs of the next wave may be prepared: the wave that has ended here has
    /// ended on all ranks.
    #[must_use]
    pub fn may_prepare(&self) -> bool {
        match self.stage {
            Stage::Ended(wave) => self.all_ended == Some(wave),
            _ => true,
        }
    }

    /// Returns the last agreed start.
    #[must_use]
    pub const fn start(&self) -> Option<Start> {
        self.start
    }

    /// Returns when the jobs of this wave start, or that they wait or never will.
    #[must_use]
    pub fn gate(&self, wave: Wave) -> Gate {
        let start = self.start.filter(|start| start.wave == wave);
        match (self.stop, start) {
            (Some(reason), _) if reason.ends_running() => Gate::Over(reason),
            (_, Some(start)) => Gate::At(start),
            (Some(reason), None) => Gate::Over(reason),
            (None, None) => Gate::Wait,
        }
    }

    /// Returns whether jobs of this wave that run have to end.
    #[must_use]
    pub fn ends(&self, wave: Wave) -> bool {
        self.over >= Some(wave) || self.stop.is_some_and(StopReason::ends_running)
    }

    /// Returns the reason for which nothing more starts, if so.
    #[must_use]
    pub const fn stop(&self) -> Option<StopReason> {
        self.stop
    }

    /// Returns the exit code, once the rank may leave.
    #[must_use]
    pub const fn may_leave(&self) -> Option<u8> {
        self.leave
    }

    fn decided(&mut self, verdict: Verdict) {
        self.verdict.get_or_insert(verdict);
    }

    fn stopped(&mut self, reason: StopReason) {
        if reason.replaces(self.stop) {
            self.stop = Some(reason);
        }
    }

    /// Leaves by itself once it is through, if the conductor is lost.
    fn give_up(&mut self) {
        if self.conductor_lost && self.leave.is_none() && Place::of(&self.stage) == Place::Through {
            self.leave = Some(EXIT_FAILED);
        }
    }
}

/// Interval between reports of a rank.
pub const REPORT_EVERY: Nanos = Nanos::from_secs(1);

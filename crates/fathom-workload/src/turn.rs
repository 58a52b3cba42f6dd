//! The loop: one turn of one worker, called by both drivers.
//!
//! ```text
//!            ┌────────────── turn ──────────────┐
//!  Delayed ─►│ Running ─► Draining ─► (Syncing) │─► Finished
//!            │    ▲          │    ▲       │     │
//!            │    └──────────┘    └ ReadingBack │
//!            └──────────────────────────────────┘
//! ```
//!
//! A dry run is in DryRun in place of Running (`dry_run.rs`).
//!
//! The loop never blocks and never reads the clock. Time comes from the caller, from `submit`,
//! whose one clock read is the issue time of the submitted ops, the completion time of those reaped
//! next, and the start of the next op, and from `reaped_at` of an engine that has entered the
//! kernel without submitting.
//!
//! # What this costs
//! One clock read per submission (by the engine), and per op: one slot taken and put, two latencies
//! and one histogram bucket. Rules that a job does not use cost nothing here.

use fathom_core::{
    Direction, Engine, Errno, FileIndex, Nanos, PerDirection, Step, StopRequest, Submitted, Tick,
};

use crate::config::Pace;
use crate::path::Path;
use crate::results::{JobActivity, JobError};
use crate::timers::Timers;
use crate::worker::{After, Stage, Worker};

/// Runs one turn: does what is possible at `now` without waiting, and returns what to wait for.
///
/// Call it again with a later `now` when that has happened, until it returns [`Step::Done`]. A turn
/// ends at the latest after a fixed number of rounds or a fixed time, so that an order to stop is
/// seen soon.
pub fn turn<E: Engine>(worker: &mut Worker, engine: &mut E, stop: &StopRequest, now: Tick) -> Step {
    if stop.is_requested() || worker.is_steady() {
        worker.stop_issuing();
    }
    // A coarse clock may still stand where the last turn began.
    let mut now = now.max(worker.timers.turned);
    let step = rounds(worker, engine, &mut now);
    worker.timers.turned = now;
    step
}

/// Runs the rounds of a turn.
#[inline]
fn rounds<E: Engine>(worker: &mut Worker, engine: &mut E, now: &mut Tick) -> Step {
    if !worker.queue.prepared.is_empty() {
        // The engine was blocked in the last turn's submission.
        if let Some(step) = worker.submit_prepared(engine, now) {
            return step;
        }
    }
    let until = *now + TURN;
    for _ in 0..ROUNDS_PER_TURN {
        if let Some(step) = worker.round(engine, now, until) {
            return step;
        }
        if *now >= until {
            break;
        }
    }
    Step::Again
}

impl Worker {
    /// Runs one round; `None` if the next one can follow at once.
    #[inline]
    fn round<E: Engine>(&mut self, engine: &mut E, now: &mut Tick, until: Tick) -> Option<Step> {
        if *now >= self.timers.next_rule && self.apply_rules(*now) {
            // The driver resets figures of its own at this point.
            return Some(Step::Again);
        }
        match self.stage {
            Stage::Running => self.run(engine, now, until),
            stage => self.step_uncommon_stage(stage, engine, now),
        }
    }

    /// Issues while there are free slots, reaps when there are none.
    #[inline]
    fn run<E: Engine>(&mut self, engine: &mut E, now: &mut Tick, until: Tick) -> Option<Step> {
        if self.queue.slots.free() == 0 || self.queue.draining_to_low {
            if self.path == Path::Replenish
                && self.queue.retry.is_empty()
                && !self.source.pass.invalidate
            {
                return self.replenish(engine, now, until);
            }
            return self.make_room(engine, now);
        }
        self.reap_early(engine, now);
        if self.path.is_fast() && self.queue.retry.is_empty() && !self.source.pass.invalidate {
            self.issue_batch(engine, now)
        } else {
            self.issue_checked(engine, now)
        }
    }

    #[inline]
    fn reap_early<E: Engine>(&mut self, engine: &mut E, now: &mut Tick) {
        if self.queue.reaps_early && self.queue.in_flight > 0 {
            self.reap(engine, now);
        }
    }

    #[inline]
    pub(crate) fn make_room<E: Engine>(&mut self, engine: &mut E, now: &mut Tick) -> Option<Step> {
        if !self.queue.retry.is_empty() {
            return self.issue_retries(engine, now);
        }
        let taken = self.reap(engine, now);
        let low = self.config.batching.low;
        self.queue.draining_to_low = self.queue.in_flight > low;
        if taken == 0 {
            return Some(self.wait_for_room());
        }
        None
    }

    /// Returns what to wait for if nothing has completed.
    pub(crate) fn wait_for_room(&self) -> Step {
        let min = self
            .config
            .batching
            .complete_min
            .clamp(1, self.queue.in_flight);
        Step::Wait {
            min,
            until: None,
            spin: false,
        }
    }

    /// Submits the prepared ops and stamps them.
    #[inline]
    pub(crate) fn submit_prepared<E: Engine>(
        &mut self,
        engine: &mut E,
        now: &mut Tick,
    ) -> Option<Step> {
        let want = if self.queue.slots.free() > 0 {
            0
        } else {
            self.wanted_of_full_queue()
        };
        let Submitted::Issued { issue, now: after } = engine.submit(want) else {
            return Some(Step::Blocked);
        };
        if issue < *now {
            let states = self.queue.slots.states();
            let prepared = self.queue.prepared.iter();
            prepared.for_each(|slot| states[slot.index()].start_by(issue));
        }
        self.stamp(issue);
        *now = Timers::after_submission(after, self.timers.clock_read);
        None
    }

    /// Stamps the submitted ops with their issue time.
    #[inline]
    fn stamp(&mut self, issue: Tick) {
        let count = u32::try_from(self.queue.prepared.len()).unwrap_or(u32::MAX);
        self.queue.in_flight += count;
        self.recorder.issued(self.queue.in_flight, count);
        let states = self.queue.slots.states();
        if self.queue.remainders_prepared {
            // The rest of a short transfer keeps the times of its first piece. One test per batch:
            // one per op cost two instructions of the 150 of an op in batches of 8.
            self.queue.remainders_prepared = false;
            for &slot in &self.queue.prepared {
                let state = &mut states[slot.index()];
                if state.op.buffer_offset == 0 {
                    state.issue = issue;
                }
            }
        } else {
            for &slot in &self.queue.prepared {
                states[slot.index()].issue = issue;
            }
        }
        self.queue.prepared.clear();
    }

    /// Performs a step of any stage but `Running`.
    #[cold]
    fn step_uncommon_stage<E: Engine>(
        &mut self,
        stage: Stage,
        engine: &mut E,
        now: &mut Tick,
    ) -> Option<Step> {
        match stage {
            Stage::Delayed => self.begin(engine, *now),
            Stage::DryRun => self.draw_ops(*now),
            Stage::ReadingBack if self.queue.slots.free() == 0 => self.make_room(engine, now),
            Stage::Running | Stage::ReadingBack => {
                self.reap_early(engine, now);
                self.issue_checked(engine, now)
            }
            Stage::Draining(after) => self.drain(engine, now, after),
            Stage::Syncing(file, after) => self.sync_file(engine, now, file, after),
            Stage::Finished => {
                self.take_checks(true);
                self.commit_zones(engine);
                self.leave_groups();
                Some(Step::Done)
            }
        }
    }

    fn begin<E: Engine>(&mut self, engine: &mut E, now: Tick) -> Option<Step> {
        let start = self.timers.origin + self.config.start_delay;
        if now < start {
            return Some(Step::Wait {
                min: 0,
                until: Some(start),
                spin: false,
            });
        }
        if self.engine.moves_data {
            self.prepare_buffers(engine);
        }
        self.timers.io_period_start = now;
        self.timers.rate_check = now + RATE_MIN_GRACE;
        if !self.has_least_rate() {
            self.timers.rate_check = Tick::MAX;
        }
        self.source.schedules.begin(now);
        if let Some(replay) = &mut self.source.replay {
            replay.begin(now);
        }
        if let Some(recording) = &mut self.source.recording {
            recording.begin(now);
        }
        if self.config.ramp.is_zero() {
            self.measure_from(now);
        } else {
            self.timers.ramp_end = now + self.config.ramp;
        }
        if let Some(limits) = &mut self.limits {
            limits.begin(now);
        }
        self.stage = self.stage_of_ops();
        self.set_next_rule();
        None
    }

    fn prepare_buffers<E: Engine>(&mut self, engine: &mut E) {
        if !self.source.used.write {
            return;
        }
        for number in 0..self.queue.slots.count() {
            self.filler
                .prepare(engine.buffer(fathom_core::Slot::new(number)));
        }
    }

    /// Starts measuring at `now`.
    pub(crate) fn measure_from(&mut self, now: Tick) {
        let waiting = u32::try_from(self.queue.retry.len()).unwrap_or(u32::MAX);
        let in_flight = self.queue.in_flight + waiting;
        self.recorder.begin(now, in_flight);
        if let Some(limits) = &mut self.limits {
            limits.restart_count(in_flight);
        }
        self.watch_from(now);
        if let Some(priorities) = &mut self.priorities {
            priorities.clear();
        }
        self.timers.ramp_end = Tick::MAX;
        self.restart_rate_checks(now);
        if let Some(runtime) = self.config.runtime {
            self.timers.deadline = now + runtime;
        }
    }

    /// Applies all rules that depend on time, and returns whether the ramp has ended.
    #[cold]
    fn apply_rules(&mut self, now: Tick) -> bool {
        if matches!(self.stage, Stage::Delayed | Stage::Finished) {
            return false;
        }
        let ramp_ends = now >= self.timers.ramp_end;
        if ramp_ends {
            self.measure_from(now);
        }
        if now >= self.recorder.next_sample() {
            self.recorder.sample(now);
        }
        if now >= self.timers.rate_check {
            match self.judges_rate() {
                true => self.check_rate(now),
                // Until the next pass, or the end of the ramp.
                false => self.timers.rate_check = Tick::MAX,
            }
        }
        self.watch_steadiness(now);
        if now >= self.timers.deadline {
            self.stop_issuing();
        }
        self.set_next_rule();
        ramp_ends
    }

    pub(crate) fn set_next_rule(&mut self) {
        let clock = &mut self.timers;
        let ending = matches!(
            self.stage,
            Stage::Finished | Stage::Draining(After::End) | Stage::Syncing(_, After::End)
        );
        // A deadline that has passed is not checked again.
        let deadline = if ending { Tick::MAX } else { clock.deadline };
        clock.next_rule = clock
            .ramp_end
            .min(deadline)
            .min(self.recorder.next_sample())
            .min(clock.rate_check)
            .min(
                self.steady
                    .as_ref()
                    .map_or(Tick::MAX, |steady| steady.next()),
            );
    }

    /// Returns whether the rate of ops counts: not in the ramp, nor while none are issued, because
    /// the job reads back, syncs its files or waits for its last ops. All of this is as in fio.
    fn judges_rate(&self) -> bool {
        let issues = matches!(self.stage, Stage::Running | Stage::Draining(After::Think));
        issues && self.timers.ramp_end == Tick::MAX
    }

    /// Begins the observation of `rate_min` anew.
    fn restart_rate_checks(&mut self, now: Tick) {
        self.timers.rate_checked = None;
        self.timers.rate_seen = PerDirection::default();
        if self.has_least_rate() && self.timers.rate_check == Tick::MAX {
            self.timers.rate_check = now;
        }
    }

    /// Stops the checks of `rate_min` at the end of a pass: what follows issues no ops.
    pub(crate) fn pause_rate_checks(&mut self, now: Tick) {
        let timers = &mut self.timers;
        let left = match timers.rate_check == Tick::MAX {
            true => Nanos::ZERO,
            false => timers.rate_check - now,
        };
        timers.rate_paused = (now, left);
        timers.rate_check = Tick::MAX;
    }

    /// Resumes the checks of `rate_min` with a pass, as if no time had passed since the last one.
    pub(crate) fn resume_rate_checks(&mut self, now: Tick) {
        if !self.has_least_rate() {
            return;
        }
        let timers = &mut self.timers;
        let (paused, left) = timers.rate_paused;
        timers.rate_checked = timers.rate_checked.map(|checked| checked + (now - paused));
        timers.rate_check = now + left;
    }

    fn has_least_rate(&self) -> bool {
        self.config.rate_min.iter().any(|(_, pace)| pace.is_some())
    }

    /// Fails the job if a direction is below its `rate_min`. The first check only starts the
    /// observation, as in fio.
    fn check_rate(&mut self, now: Tick) {
        let window = self.config.rate_cycle.max(Nanos::from_millis(1));
        let looked = self.timers.rate_checked.replace(now);
        for direction in Direction::ALL {
            let (ios, bytes) = self.recorder.measured(direction);
            let seen = std::mem::replace(&mut self.timers.rate_seen[direction], (ios, bytes));
            let (moved, least, unit) = match self.config.rate_min[direction] {
                None => continue,
                Some(Pace::Bytes(least)) => (bytes.saturating_sub(seen.1), least, "B/s"),
                Some(Pace::Ops(least)) => (ios.saturating_sub(seen.0), least, "IOPS"),
            };
            let Some(since) = looked.map(|looked| now - looked) else {
                continue;
            };
            let per_second = u128::from(moved) * 1_000_000_000 / u128::from(since.get().max(1));
            if self.source.used[direction] && per_second < u128::from(least) {
                self.fail(JobError {
                    errno: Errno::EIO,
                    activity: JobActivity::RateMin,
                    file: FileIndex::new(0),
                    offset: 0,
                    length: 0,
                    detail: Some(format!(
                        "{} rate {per_second} {unit} is below the minimum {least} {unit}",
                        direction.name()
                    )),
                });
            }
        }
        self.timers.rate_check = now + window;
    }

    /// Ends the job with an error, after draining.
    #[cold]
    pub(crate) fn fail(&mut self, error: JobError) {
        self.recorder.failed(error);
        self.abandon_retries();
        self.source.held = None;
        if self.stage != Stage::Finished {
            self.stage = Stage::Draining(After::End);
        }
    }

    /// Stops issuing; ops in flight are drained.
    pub(crate) fn stop_issuing(&mut self) {
        match self.stage {
            Stage::Finished | Stage::Syncing(_, After::End) | Stage::Draining(After::End) => {}
            Stage::Delayed => self.stage = Stage::Finished,
            _ => {
                self.source.held = None;
                self.stage = Stage::Draining(After::End);
            }
        }
    }
}

/// Rounds after which a turn returns to the driver; a round makes at most one submission.
const ROUNDS_PER_TURN: u32 = 256;

/// Time after which a turn returns: on a device that takes 10 ms per op this is every op, so that
/// an order to stop is seen at once.
const TURN: Nanos = Nanos::from_millis(5);

/// Time before the first check of `rate_min`, as in fio; it is judged one `rate_cycle` later.
const RATE_MIN_GRACE: Nanos = Nanos::from_secs(2);

//! Stages between passes and at the end: draining, syncing, readback, starting over.

use fathom_core::{Engine, FileIndex, PerDirection, Step, Tick};

use crate::source::never_finishes;
use crate::worker::{After, Stage, Worker};

impl Worker {
    /// Drains the queue; rests of short transfers are still issued.
    pub(crate) fn drain<E: Engine>(
        &mut self,
        engine: &mut E,
        now: &mut Tick,
        after: After,
    ) -> Option<Step> {
        if !self.queue.prepared.is_empty() {
            return self.submit_prepared(engine, now);
        }
        if !self.queue.retry.is_empty() {
            return self.issue_retries(engine, now);
        }
        if self.queue.in_flight > 0 {
            if self.reap(engine, now) == 0 {
                return Some(Step::Wait {
                    min: 1,
                    until: None,
                    spin: false,
                });
            }
            return None;
        }
        let step = self.drained(*now, after);
        if self.source.pass.recreate {
            self.renew_files(engine);
        }
        step
    }

    /// Performs what follows once nothing is in flight.
    fn drained(&mut self, now: Tick, after: After) -> Option<Step> {
        // Readback fills the queue too, and may end while it drains.
        self.queue.draining_to_low = false;
        match after {
            After::Think => return self.think(now),
            After::Pass => self.end_pass(now),
            After::Readback => {
                self.close_io_period(READS, now);
                self.next_pass(now);
            }
            After::End => {
                let which = match self.is_reading_back() {
                    true => READS,
                    false => self.directions_in_use(),
                };
                self.close_io_period(which, now);
                self.stage = match self.wants_final_sync() {
                    true => Stage::Syncing(FileIndex::new(0), After::End),
                    false => Stage::Finished,
                };
            }
        }
        None
    }

    fn think(&mut self, now: Tick) -> Option<Step> {
        let resumed = self.stage_of_ops();
        let Some(thinking) = &mut self.thinking else {
            self.stage = resumed;
            return None;
        };
        let pause = thinking.pause(now);
        // Think time does not outlast the job.
        let until = pause.until.min(self.timers.deadline);
        if now < pause.spin_until.min(until) {
            return Some(Step::Wait {
                min: 0,
                until: Some(pause.spin_until),
                spin: true,
            });
        }
        if now < until {
            return Some(Step::Wait {
                min: 0,
                until: Some(until),
                spin: false,
            });
        }
        thinking.resume();
        if thinking.moves_schedule() {
            self.source.schedules.delay(now - pause.began);
        }
        self.stage = resumed;
        None
    }

    fn end_pass(&mut self, now: Tick) {
        self.pause_rate_checks(now);
        if !self.config.is_dry_run {
            self.close_io_period(self.directions_in_use(), now);
        }
        let reads_back = self.reads_back_after_pass();
        if self.wants_final_sync() || reads_back {
            let after = if reads_back {
                After::Readback
            } else {
                After::Pass
            };
            self.stage = Stage::Syncing(FileIndex::new(0), after);
        } else {
            self.next_pass(now);
        }
    }

    /// Syncs one file after the other; these syncs are not counted.
    pub(crate) fn sync_file<E: Engine>(
        &mut self,
        engine: &mut E,
        now: &mut Tick,
        file: FileIndex,
        after: After,
    ) -> Option<Step> {
        if self.queue.in_flight > 0 || !self.queue.prepared.is_empty() {
            return self.wait_for_sync(engine, now);
        }
        if let Some((file, kind, next)) = self
            .next_final_sync(file)
            .filter(|_| self.source.used.write)
        {
            self.stage = Stage::Syncing(next, after);
            self.prepare_sync(engine, *now, file, kind);
            return self.submit_prepared(engine, now);
        }
        self.sync.synced_at = self.source.sequence;
        match after {
            After::Readback => self.begin_readback(engine, *now),
            After::End => self.stage = Stage::Finished,
            After::Pass | After::Think => self.next_pass(*now),
        }
        if self.source.pass.recreate {
            self.renew_files(engine);
        }
        None
    }

    fn wait_for_sync<E: Engine>(&mut self, engine: &mut E, now: &mut Tick) -> Option<Step> {
        if !self.queue.prepared.is_empty() {
            return self.submit_prepared(engine, now);
        }
        if self.reap(engine, now) == 0 {
            return Some(Step::Wait {
                min: 1,
                until: None,
                spin: false,
            });
        }
        None
    }

    fn begin_readback<E: Engine>(&mut self, engine: &mut E, now: Tick) {
        for number in 0..self.config.pattern.files.len() {
            let file = FileIndex::new(u32::try_from(number).unwrap_or(u32::MAX));
            // Pages that cannot be dropped are read from the cache: the data are the same.
            let _ = engine.invalidate(file);
        }
        if let Some(readback) = &mut self.readback {
            readback.begin();
        }
        self.timers.io_period_start = now;
        self.stage = Stage::ReadingBack;
    }

    /// Starts the next pass, or ends the job.
    fn next_pass(&mut self, now: Tick) {
        let is_last = self.is_last_pass();
        let keeps_log = self.config.is_dry_run && !is_last;
        if let Some(readback) = self.readback.as_mut().filter(|_| !keeps_log) {
            readback.end();
        }
        if is_last {
            self.stage = match self.wants_final_sync() {
                true => Stage::Syncing(FileIndex::new(0), After::End),
                false => Stage::Finished,
            };
            return;
        }
        self.source.pass.more = self.source.pass.more.saturating_sub(1);
        self.start_over();
        self.begin_pass_of_zones();
        match (self.config.recreate_each_pass, self.config.is_dry_run) {
            (true, true) => self.forget_drawn(),
            (recreate, _) => self.source.pass.recreate = recreate,
        }
        self.timers.io_period_start = now;
        self.resume_rate_checks(now);
        self.stage = self.stage_of_ops();
        self.set_next_rule();
    }

    /// Returns the stage in which the job's ops are issued now.
    pub(crate) fn stage_of_ops(&self) -> Stage {
        match &self.readback {
            Some(readback) if readback.is_reading() => Stage::ReadingBack,
            _ if self.config.is_dry_run => Stage::DryRun,
            _ => Stage::Running,
        }
    }

    /// Returns whether the job reads back what it wrote in a pass. Rules on its own ops, such as
    /// pauses between them, do not hold for these reads.
    pub(crate) fn is_reading_back(&self) -> bool {
        let readback = self.readback.as_ref();
        readback.is_some_and(|readback| readback.is_reading())
    }

    /// Returns whether writes are read back after the pass that ends. A dry run does so
    /// after the last pass alone: later passes have replaced what the earlier ones left.
    pub(crate) fn reads_back_after_pass(&self) -> bool {
        let readback = self.readback.as_ref();
        let has_work = readback.is_some_and(|readback| readback.has_work());
        has_work && (!self.config.is_dry_run || self.is_last_pass())
    }

    fn is_last_pass(&self) -> bool {
        self.source.pass.is_last(&self.config) && !self.config.time_based
    }

    /// Restarts the pattern with all its bytes to issue.
    pub(crate) fn start_over(&mut self) {
        let caches = self.config.invalidate && self.engine.moves_data;
        let invalidate = caches && !never_finishes(&self.config);
        self.source.restart(&self.config, invalidate);
    }

    /// Returns the directions of the ops of a pass.
    pub(crate) fn directions_in_use(&self) -> PerDirection<bool> {
        let mut used = self.source.used;
        used.trim |= self.trims_written();
        used
    }

    /// Adds the current I/O period to the runtime of these directions.
    fn close_io_period(&mut self, which: PerDirection<bool>, now: Tick) {
        self.recorder.ran(which, self.timers.io_period_start, now);
        self.timers.io_period_start = now;
    }

    /// Returns whether syncs at the end of the job are outstanding.
    fn wants_final_sync(&self) -> bool {
        let asked = self.syncs_each_file() || !self.config.sync_filesystems.is_empty();
        let dirty = self.source.used.write && self.source.sequence != self.sync.synced_at;
        asked && dirty && !self.recorder.has_failed()
    }
}

/// Directions whose runtime includes readback: reads alone.
const READS: PerDirection<bool> = PerDirection::new(true, false, false);

//! What happens between passes and at the end: draining, syncing, reading back, going round.

use fathom_core::{Engine, FileIndex, PerDirection, Step, Tick};

use crate::config::{Distribution, MapMode, Mix, RandomGenerator, WorkerConfig};
use crate::worker::{After, Pass, Stage, Worker};

impl Worker {
    /// Waits until nothing is in flight; rests of short transfers are still issued.
    pub(crate) fn drain<E: Engine>(
        &mut self,
        engine: &mut E,
        now: &mut Tick,
        after: After,
    ) -> Option<Step> {
        if !self.prepared.is_empty() {
            return self.submit_prepared(engine, now);
        }
        if !self.retry.is_empty() {
            return self.issue_retries(engine, now);
        }
        if self.in_flight > 0 {
            if self.reap(engine, *now) == 0 {
                return Some(Step::Wait {
                    min: 1,
                    until: None,
                    spin: false,
                });
            }
            return None;
        }
        let step = self.drained(*now, after);
        if self.pass.renew {
            self.renew_files(engine);
        }
        step
    }

    /// Nothing is in flight: what was to follow follows.
    fn drained(&mut self, now: Tick, after: After) -> Option<Step> {
        // Reading back fills the queue as well, and may end on its way down.
        self.sinking = false;
        match after {
            After::Think => return self.think(now),
            After::Pass => self.end_pass(now),
            After::Readback => {
                self.close_stretch(READS, now);
                self.next_pass(now);
            }
            After::End => {
                let reading = self
                    .readback
                    .as_ref()
                    .is_some_and(|readback| readback.is_reading());
                let which = if reading { READS } else { self.used };
                self.close_stretch(which, now);
                self.stage = match self.wants_final_sync() {
                    true => Stage::Syncing(FileIndex::new(0), After::End),
                    false => Stage::Finished,
                };
            }
        }
        None
    }

    fn think(&mut self, now: Tick) -> Option<Step> {
        let Some(thinking) = &mut self.thinking else {
            self.stage = Stage::Running;
            return None;
        };
        let pause = thinking.pause(now);
        // A job does not think past its end.
        let until = pause.until.min(self.clock.deadline);
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
            self.schedules.delay(now - pause.began);
        }
        self.stage = Stage::Running;
        None
    }

    fn end_pass(&mut self, now: Tick) {
        self.close_stretch(self.used, now);
        let reads_back = self
            .readback
            .as_ref()
            .is_some_and(|readback| readback.has_work());
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

    /// One file after the other: an op of its own, not counted.
    pub(crate) fn sync_file<E: Engine>(
        &mut self,
        engine: &mut E,
        now: &mut Tick,
        file: FileIndex,
        after: After,
    ) -> Option<Step> {
        if self.in_flight > 0 || !self.prepared.is_empty() {
            return self.wait_for_sync(engine, now);
        }
        if let Some((file, kind, next)) = self.next_final_sync(file).filter(|_| self.used.write) {
            self.stage = Stage::Syncing(next, after);
            self.prepare_sync(engine, *now, file, kind);
            return self.submit_prepared(engine, now);
        }
        self.sync.synced_at = self.sequence;
        match after {
            After::Readback => self.begin_readback(engine, *now),
            After::End => self.stage = Stage::Finished,
            After::Pass | After::Think => self.next_pass(*now),
        }
        if self.pass.renew {
            self.renew_files(engine);
        }
        None
    }

    fn wait_for_sync<E: Engine>(&mut self, engine: &mut E, now: &mut Tick) -> Option<Step> {
        if !self.prepared.is_empty() {
            return self.submit_prepared(engine, now);
        }
        if self.reap(engine, *now) == 0 {
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
            // What cannot be dropped from the cache is read from it: the data are the same.
            let _ = engine.invalidate(file);
        }
        if let Some(readback) = &mut self.readback {
            readback.begin(self.sequence);
        }
        self.clock.stretch = now;
        self.stage = Stage::ReadingBack;
    }

    /// Goes round again, or ends.
    fn next_pass(&mut self, now: Tick) {
        if let Some(readback) = &mut self.readback {
            readback.end();
        }
        if self.pass.more == 0 && !self.config.time_based {
            self.stage = match self.wants_final_sync() {
                true => Stage::Syncing(FileIndex::new(0), After::End),
                false => Stage::Finished,
            };
            return;
        }
        self.pass.more = self.pass.more.saturating_sub(1);
        self.start_over();
        self.pass.renew = self.config.recreate_each_pass;
        self.clock.stretch = now;
        self.stage = Stage::Running;
    }

    /// The pattern begins anew with all its bytes to go.
    pub(crate) fn start_over(&mut self) {
        self.pattern.restart();
        self.drawn.clear();
        self.pass = Pass {
            remaining: bytes_to_issue(&self.config).saturating_sub(self.pass.over),
            over: 0,
            more: self.pass.more,
            empty_since_restart: false,
            ended: false,
            invalidate: self.config.invalidate
                && self.engine.moves_data
                && !never_through(&self.config),
            renew: false,
        };
    }

    /// The stretch of I/O up to now counts as runtime of these directions.
    fn close_stretch(&mut self, which: PerDirection<bool>, now: Tick) {
        self.recorder.ran(which, self.clock.stretch, now);
        self.clock.stretch = now;
    }

    /// Whether the job's own syncs at its end have still to be made.
    fn wants_final_sync(&self) -> bool {
        let asked = self.syncs_each_file() || !self.config.sync_filesystems.is_empty();
        let dirty = self.used.write && self.sequence != self.sync.synced_at;
        asked && dirty && !self.recorder.has_failed()
    }
}

/// Bytes of all ops of one pass: a trim before each write goes over the same bytes twice.
pub(crate) fn bytes_to_issue(config: &WorkerConfig) -> u64 {
    match config.pattern.mix {
        Mix::TrimWrite => config.bytes_per_pass.saturating_mul(2),
        _ => config.bytes_per_pass,
    }
}

/// Whether a job that goes on for a time draws blocks that may repeat: it is never through with its
/// files, so what is cached of them stays cached, as in fio. Its passes are only ours.
fn never_through(config: &WorkerConfig) -> bool {
    let pattern = &config.pattern;
    let may_repeat = pattern.map == MapMode::Off
        || pattern.shares.is_some()
        || pattern.distribution != Distribution::Uniform;
    let percentages = pattern.percentage_random;
    let is_random = pattern.random
        && pattern.zones.is_none()
        && pattern.generator != RandomGenerator::Lfsr
        && percentages.iter().all(|(_, &percent)| percent == 100);
    config.time_based && is_random && may_repeat
}

/// The runtime of reading back is that of reads alone.
const READS: PerDirection<bool> = PerDirection::new(true, false, false);

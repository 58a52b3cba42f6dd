//! A worker on zones: asks for each target, carries out what must come first, and releases zones.

use std::ops::Range;

use fathom_core::{
    Direction, Engine, EngineError, Errno, FileIndex, Nanos, Slot, Tick, Zone, ZoneCondition,
};

use crate::config::{Mix, WorkerConfig};
use crate::issue::IssueStatus;
use crate::pattern::OpTarget;
use crate::results::{JobActivity, JobError};
use crate::worker::Worker;

use super::access::ZoneAccess;
use super::answer::{StepKind, ZoneAnswer, ZoneHold, ZoneRules, ZoneStep, ZoneUser};
use super::recorded::RecordedAnswer;

/// State of a job on the zones of its files.
#[derive(Debug)]
pub(crate) struct Zoned {
    access: ZoneAccess,
    files: Box<[(ZoneRules, ZoneUser)]>,
    /// Zones held by the ops in flight, by slot.
    holds: Box<[Option<(FileIndex, ZoneHold)>]>,
    /// Zone held by the op that is issued next.
    next: Option<(FileIndex, ZoneHold)>,
    /// Times in a row that the job has asked in vain for a zone of another one.
    waits: u32,
}

impl Zoned {
    /// Prepares a job of this configuration; `None` if it does not use zones.
    pub(crate) fn new(config: &WorkerConfig, depth: u32) -> Option<Box<Self>> {
        let access = config.zoned.as_ref()?;
        let pattern = &config.pattern;
        let smallest = |direction| pattern.sizes[direction].smallest().max(1);
        let files = pattern.files.iter().zip(&access.sets).map(|(file, set)| {
            let mut table = set.lock();
            let rules = ZoneRules {
                job: access.job,
                range: table.inside(file.offset, file.offset.saturating_add(file.length)),
                random: pattern.random,
                pairs: pattern.mix == Mix::TrimWrite,
                smallest_read: smallest(Direction::Read),
                smallest_write: smallest(Direction::Write),
                open_max: access.open_max,
                job_open_max: access.job_open_max,
                reads_beyond: access.reads_beyond,
                writes_remainder: access.writes_remainder,
                keeps_data: access.keeps_data,
                reset: access.reset,
                areas: access.areas,
                appends: access.appends,
            };
            let user = table.register(&rules);
            (rules, user)
        });
        Some(Box::new(Self {
            files: files.collect(),
            holds: vec![None; depth as usize].into_boxed_slice(),
            next: None,
            waits: 0,
            access: access.clone(),
        }))
    }

    /// Begins a pass: data of the one before need not stay.
    pub(crate) fn begin_pass(&self) {
        if self.access.keeps_data {
            for ((rules, _), set) in self.files.iter().zip(&self.access.sets) {
                set.lock().begin_pass(rules.range.clone());
            }
        }
    }

    /// Gives the zone of the op that is issued next to its slot.
    pub(crate) fn bind(&mut self, slot: Slot) {
        self.holds[slot.index()] = self.next.take();
    }

    /// Releases the zone of an op that has moved all its bytes (`done`), or has failed. Returns the
    /// direction of the op if it had a zone.
    pub(crate) fn end(&mut self, slot: Slot, done: bool) -> Option<Direction> {
        let (file, hold) = self.holds[slot.index()].take()?;
        self.access.sets[file.index()].lock().end(hold, done);
        Some(hold.direction)
    }

    /// Gives up the job's claim to open zones.
    pub(crate) fn leave(&self) {
        for set in &self.access.sets {
            set.lock().leave(self.access.job);
        }
    }

    /// Gives the zone of the op that was to be issued next back, unused.
    fn unbind(&mut self) {
        if let Some((file, hold)) = self.next.take() {
            self.access.sets[file.index()].lock().give_back(hold);
        }
    }

    fn admit_recorded(&mut self, target: &OpTarget) -> RecordedAnswer {
        let file = target.file.index();
        let (rules, _) = &self.files[file];
        let answer = self.access.sets[file].lock().admit_recorded(rules, target);
        if let RecordedAnswer::Issue(hold) = answer {
            self.next = Some((target.file, hold));
            self.waits = 0;
        }
        answer
    }

    fn admit(&mut self, target: &OpTarget, now: Tick) -> ZoneAnswer {
        let file = target.file.index();
        let (rules, user) = &mut self.files[file];
        let answer = self.access.sets[file]
            .lock()
            .admit(rules, user, target, now);
        if let ZoneAnswer::Issue(_, hold) = answer {
            self.next = Some((target.file, hold));
            self.waits = 0;
        }
        answer
    }

    /// Returns the time after which the job asks again for a zone that another one holds.
    fn recheck(&mut self) -> Nanos {
        let doublings = self.waits.min(RECHECK_DOUBLINGS);
        self.waits = doublings + 1;
        Nanos::from_micros(RECHECK_US << doublings)
    }

    /// Carries out a step, without the lock: other jobs use other zones meanwhile.
    fn perform<E: Engine>(
        &self,
        engine: &mut E,
        file: FileIndex,
        step: &ZoneStep,
    ) -> Result<(), EngineError> {
        let set = &self.access.sets[file.index()];
        let done = match step.kind.action() {
            _ if set.is_emulated() => Ok(step.zone),
            Some(action) => engine
                .manage_zone(file, action, &step.zone)
                .map(|()| step.zone),
            None => engine.report_zone(file, step.zone.start),
        };
        set.lock().settle(step, done.as_ref().ok());
        done.map(|_zone| ())
    }

    /// Commits what lies in random write areas; returns the first step that fails.
    fn commit<E: Engine>(&self, engine: &mut E) -> Option<(FileIndex, ZoneStep, EngineError)> {
        for (number, (rules, _)) in (0..).zip(&self.files) {
            let file = FileIndex::new(number);
            let next = || self.access.sets[file.index()].lock().commit_of(rules);
            while let Some(step) = next() {
                if let Err(error) = self.perform(engine, file, &step) {
                    return Some((file, step, error));
                }
            }
        }
        None
    }

    /// Describes the zone of an op that has failed with `errno`, from the device.
    fn fault<E: Engine>(&self, engine: &mut E, slot: Slot, errno: u32) -> Option<String> {
        let (file, hold) = self.holds[slot.index()]?;
        let set = &self.access.sets[file.index()];
        if set.is_emulated() {
            return None;
        }
        let known = *set.lock().zone(hold.zone as usize);
        Some(match engine.report_zone(file, known.start) {
            Ok(found) => fault(hold, errno, set.lock().agrees(hold, &found), &found),
            // A device that has gone fails writes with one of several codes, ENOSPC among them.
            Err(error) => format!(
                "zone {} at {}: the device does not report its state either: {error}",
                hold.zone, known.start
            ),
        })
    }
}

impl Worker {
    /// Returns the next op, placed in a zone that it holds.
    pub(crate) fn place_in_zone<E: Engine>(
        &mut self,
        engine: &mut E,
        target: OpTarget,
        now: Tick,
    ) -> Result<Option<OpTarget>, IssueStatus> {
        let mut target = target;
        loop {
            let Some(zoned) = &mut self.zoned else {
                return Ok(Some(target));
            };
            match zoned.admit(&target, now) {
                ZoneAnswer::Issue(placed, _) => return Ok(Some(placed)),
                ZoneAnswer::Skip => return Ok(None),
                ZoneAnswer::Wait => return Err(self.wait_for_zone(target, now)),
                ZoneAnswer::Do(step) => {
                    self.carry_out(engine, target.file, &step)?;
                }
                ZoneAnswer::Exhausted { for_good } => match target.direction {
                    // As in fio, a mixed job writes while there is nothing to read.
                    Direction::Read if self.source.used.write => {
                        target.direction = Direction::Write;
                        target.length = self.config.pattern.sizes.write.largest();
                    }
                    direction => {
                        return Err(self.without_zone(direction, target.file, for_good, now));
                    }
                },
            }
        }
    }

    /// Gives the zone of a placed op back: it is not issued yet.
    pub(crate) fn unplace_in_zone(&mut self) {
        if let Some(zoned) = &mut self.zoned {
            zoned.unbind();
        }
    }

    /// Holds the zone of an op that a log has placed, or says why it cannot be done there.
    pub(crate) fn hold_zone_of_recorded<E: Engine>(
        &mut self,
        engine: &mut E,
        target: &OpTarget,
        now: Tick,
    ) -> Result<(), IssueStatus> {
        loop {
            let Some(zoned) = &mut self.zoned else {
                return Ok(());
            };
            match zoned.admit_recorded(target) {
                RecordedAnswer::Issue(_) => return Ok(()),
                RecordedAnswer::Wait if self.queue.is_drained() => {
                    return Err(IssueStatus::NotDue(now + zoned.recheck()));
                }
                RecordedAnswer::Wait => return Err(IssueStatus::NeedsDrain),
                RecordedAnswer::Do(step) => {
                    self.carry_out(engine, target.file, &step)?;
                }
                RecordedAnswer::Refused(refusal) => {
                    self.fail(JobError {
                        errno: Errno::EIO,
                        activity: JobActivity::Replay,
                        file: target.file,
                        offset: target.offset,
                        length: target.length,
                        detail: Some(refusal.to_string()),
                    });
                    return Err(IssueStatus::Failed);
                }
            }
        }
    }

    /// Informs the zones that a pass begins, whose predecessor was read back if it had to be.
    pub(crate) fn begin_pass_of_zones(&self) {
        if let Some(zoned) = &self.zoned {
            zoned.begin_pass();
        }
    }

    /// Releases the zone of an op.
    pub(crate) fn release_zone(&mut self, slot: Slot, done: bool) {
        if let Some(zoned) = &mut self.zoned {
            let direction = zoned.end(slot, done);
            self.recorder.zone_resets += u64::from(done && direction == Some(Direction::Trim));
        }
    }

    /// Carries out a step of the zones of a file.
    fn carry_out<E: Engine>(
        &mut self,
        engine: &mut E,
        file: FileIndex,
        step: &ZoneStep,
    ) -> Result<(), IssueStatus> {
        // First, because the next job may read the zone as soon as it is done.
        if let Some(tracking) = &self.tracking {
            tracking.forget(file, lost_by(step));
        }
        let done = match &self.zoned {
            Some(zoned) => zoned.perform(engine, file, step),
            None => Ok(()),
        };
        if let Err(error) = done {
            self.fail(step_error(file, step, &error));
            return Err(IssueStatus::Failed);
        }
        self.recorder.zone_resets += u64::from(matches!(step.kind, StepKind::Reset(_)));
        Ok(())
    }

    /// Has the write pointers of the job's zones move over all that was written, at its end.
    #[cold]
    pub(crate) fn commit_zones<E: Engine>(&mut self, engine: &mut E) {
        let Some(zoned) = &self.zoned else {
            return;
        };
        if let Some((file, step, error)) = zoned.commit(engine) {
            self.fail(step_error(file, &step, &error));
        }
    }

    /// Describes the zone of a failed op; `None` for a job without zones.
    #[cold]
    pub(crate) fn zone_fault<E: Engine>(
        &self,
        engine: &mut E,
        slot: Slot,
        errno: u32,
    ) -> Option<String> {
        self.zoned.as_ref()?.fault(engine, slot, errno)
    }

    /// Keeps a target until another op has released a zone: one of this job, or of another.
    fn wait_for_zone(&mut self, target: OpTarget, now: Tick) -> IssueStatus {
        self.source.held = Some(target);
        match self.queue.is_drained() {
            false => IssueStatus::NeedsDrain,
            true => {
                let pause = self
                    .zoned
                    .as_mut()
                    .map_or(Nanos::ZERO, |zoned| zoned.recheck());
                IssueStatus::NotDue(now + pause)
            }
        }
    }

    /// Ends the pass or the job, or waits for others to write: no zone takes such an op.
    #[cold]
    fn without_zone(
        &mut self,
        direction: Direction,
        file: FileIndex,
        for_good: bool,
        now: Tick,
    ) -> IssueStatus {
        if for_good {
            let (activity, done) = match direction {
                Direction::Trim => (JobActivity::Trim, "reset"),
                _ => (JobActivity::Write, "written"),
            };
            self.fail(JobError {
                errno: Errno::EIO,
                activity,
                file,
                offset: 0,
                length: 0,
                detail: Some(format!("no zone of the job's range can be {done}")),
            });
            return IssueStatus::Failed;
        }
        if direction != Direction::Write && self.config.time_based {
            return IssueStatus::NotDue(now + NO_DATA_PAUSE);
        }
        self.source.pairs.restart();
        self.source.pass.remaining = 0;
        IssueStatus::EndOfPass
    }
}

/// Returns the bytes without written data after a step: those of a zone that is reset, or those
/// behind the write pointer of one that is finished, which may be read.
const fn lost_by(step: &ZoneStep) -> Range<u64> {
    let zone = &step.zone;
    match step.kind {
        StepKind::Reset(_) => zone.start..zone.write_end(),
        StepKind::Finish(_) => zone.write_pointer..zone.write_end(),
        StepKind::OpenWithArea | StepKind::Commit | StepKind::Report => zone.start..zone.start,
    }
}

/// Returns the error of a step that the device refused.
fn step_error(file: FileIndex, step: &ZoneStep, error: &EngineError) -> JobError {
    let what = match step.kind {
        StepKind::Reset(_) => "cannot reset",
        StepKind::Finish(_) => "cannot finish",
        StepKind::OpenWithArea => "cannot give a random write area to",
        StepKind::Commit => "cannot commit what was written in",
        StepKind::Report => "cannot ask for the state of",
    };
    let (number, start) = (step.number, step.zone.start);
    JobError {
        errno: error.errno.unwrap_or(Errno::EIO),
        activity: JobActivity::Write,
        file,
        offset: start,
        length: 0,
        detail: Some(format!("{what} zone {number} at {start}: {error}")),
    }
}

/// Describes the failure of an op on a zone from its state as found, and from whether that agrees
/// with what the job knows.
fn fault(hold: ZoneHold, errno: u32, agrees: bool, found: &Zone) -> String {
    let (number, start, offset) = (hold.zone, found.start, hold.offset);
    let is_write = hold.direction == Direction::Write;
    if is_write && found.has_pointer() && !agrees {
        return format!(
            "zone {number} at {start}: written at {offset}, but its write pointer is at {} ({}): \
             something other than this run has written or reset it",
            found.write_pointer, found.condition
        );
    }
    if is_write && found.condition == ZoneCondition::Full {
        return format!(
            "zone {number} at {start}: written at {offset}, but it is full: something other than \
             this run has written or finished it"
        );
    }
    // The kernel's codes for too many open and too many active zones.
    let too_many = [Errno::ETOOMANYREFS, Errno::EOVERFLOW].map(Errno::unsigned);
    if is_write && too_many.contains(&errno) {
        return format!(
            "zone {number} at {start} is {}: the device has no room for another open or active \
             zone: lower `max_open_zones`, or remove `ignore_zone_limits`",
            found.condition
        );
    }
    format!("zone {number} at {start} is {}", found.condition)
}

/// First time after which a job asks again for a zone that another one holds: about a write on
/// flash. It doubles with each question in vain, up to 1.28 ms: hundreds of jobs that wait for one
/// zone would otherwise take the processors from the one that writes.
const RECHECK_US: u64 = 10;
const RECHECK_DOUBLINGS: u32 = 7;

/// Time after which a job that does not write asks again for data.
const NO_DATA_PAUSE: Nanos = Nanos::from_millis(1);

//! The checked path from the pattern to the engine.
//!
//! Every rule is applied to every op: is it due, may it overtake those in flight, what must its
//! buffer hold? The fast paths, `batch` and `replenish`, serve jobs to which no such rule applies.

use fathom_core::{Direction, Engine, FileIndex, Queueing, Step, Tick};

use crate::config::Mix;
use crate::job_limits::IssueBlock;
use crate::pattern::OpTarget;
use crate::think::Thinking;
use crate::worker::{After, Stage, Worker};

impl Worker {
    /// Takes a slot for `target` and prepares it; there must be a free one.
    #[inline]
    pub(crate) fn prepare_op<E: Engine>(
        &mut self,
        engine: &mut E,
        target: &OpTarget,
        due: Tick,
        now: Tick,
    ) {
        let Some(slot) = self.queue.slots.take() else {
            unreachable!("callers see to it that a slot is free");
        };
        let state = self.queue.slots.state(slot);
        state.start_op(target, due, now, self.source.sequence);
        self.source.sequence += 1;
        engine.prepare(&state.op);
        self.queue.prepared.push(slot);
        self.track(slot);
        self.record_op(target, now);
    }

    /// Issues up to one batch, applying every rule to each op.
    pub(crate) fn issue_checked<E: Engine>(
        &mut self,
        engine: &mut E,
        now: &mut Tick,
    ) -> Option<Step> {
        if self.source.pass.invalidate {
            self.drop_caches(engine);
            // Filling took time: the next op starts with a fresh clock read.
            return Some(Step::Again);
        }
        if !self.queue.retry.is_empty() {
            return self.issue_retries(engine, now);
        }
        let mut status = IssueStatus::Ready;
        while self.queue.prepared.len() < self.queue.batch && self.queue.slots.free() > 0 {
            status = self.issue_one(engine, *now);
            if status != IssueStatus::Ready {
                break;
            }
        }
        if !self.queue.prepared.is_empty() {
            return self.submit_prepared(engine, now);
        }
        self.wait_to_issue(engine, now, status)
    }

    /// Decides what to wait for, or do, when nothing could be issued.
    pub(crate) fn wait_to_issue<E: Engine>(
        &mut self,
        engine: &mut E,
        now: &mut Tick,
        status: IssueStatus,
    ) -> Option<Step> {
        match status {
            IssueStatus::EndOfPass => return self.end_of_pass(),
            IssueStatus::EndOfPattern => return self.end_of_pattern(),
            IssueStatus::ThinkTime => self.go_thinking(),
            // A failed job drains in the next round.
            IssueStatus::Ready | IssueStatus::Failed => {}
            IssueStatus::NotDue(due) => {
                if self.reap(engine, now) == 0 {
                    let until = due.min(self.timers.next_rule);
                    let min = self.queue.in_flight.min(1);
                    return Some(Step::Wait {
                        min,
                        until: Some(until),
                        spin: false,
                    });
                }
            }
            IssueStatus::NeedsDrain => {
                if self.reap(engine, now) == 0 {
                    return Some(Step::Wait {
                        min: 1,
                        until: None,
                        spin: false,
                    });
                }
            }
        }
        None
    }

    /// Requests a pause.
    fn go_thinking(&mut self) {
        self.thinking.iter_mut().for_each(Thinking::call);
        self.stage = Stage::Draining(After::Think);
    }

    /// Issues one op, or returns what it waits for.
    fn issue_one<E: Engine>(&mut self, engine: &mut E, now: Tick) -> IssueStatus {
        let status = self.issue_next(engine, now);
        match status.is_an_end() && self.stage == Stage::Running {
            true => self.issue_rest_of_trims(engine, now, status),
            false => status,
        }
    }

    fn issue_next<E: Engine>(&mut self, engine: &mut E, now: Tick) -> IssueStatus {
        let thinking = self.thinking.as_ref();
        if thinking.is_some_and(|thinking| thinking.is_due(now)) && !self.is_reading_back() {
            return IssueStatus::ThinkTime;
        }
        if !self.queue.admits(self.queue.last) {
            return IssueStatus::NeedsDrain;
        }
        self.queue.last = Queueing::Queued;
        if self.sync.watches
            && let Some(kind) = self.sync_due()
        {
            return self.issue_sync(engine, now, kind);
        }
        if let Some(held) = self.held_back(now) {
            return self.hold(held);
        }
        if let Some(written) = self.next_to_read_back() {
            return self.issue_readback(engine, written, now);
        }
        if let Some(written) = self.next_to_trim(false) {
            return self.issue_trim(engine, written, now);
        }
        if self.stage == Stage::ReadingBack {
            return IssueStatus::EndOfPass;
        }
        if self.source.replay.is_some() {
            return self.issue_replayed(engine, now);
        }
        let target = match self.next_placed_target(engine, now) {
            Ok(target) => target,
            Err(status) => return status,
        };
        if self.must_wait(&target) {
            // Another op may need the zone until this one is asked for again.
            self.unplace_in_zone();
            self.source.held = Some(target);
            return IssueStatus::NeedsDrain;
        }
        let target = self.with_more_ranges(engine, target, now);
        // A direction without a rate has no schedule: its ops are due now.
        let due = self
            .source
            .schedules
            .take_if_due(&target, now)
            .unwrap_or(now);
        self.issue_target(engine, &target, due, now);
        IssueStatus::Ready
    }

    /// Returns whether the ops in flight must complete before `target` is issued.
    pub(crate) fn must_wait(&self, target: &OpTarget) -> bool {
        // The write of a pair comes after its trim, whatever the engine does in parallel.
        let pairs = self.config.pattern.mix == Mix::TrimWrite;
        let ordered = self.config.serialize_overlap || pairs;
        !self.queue.admits(self.queueing(target)) || ordered && self.queue.slots.overlaps(target)
    }

    /// Returns the engine's rule for `target`.
    pub(crate) const fn queueing(&self, target: &OpTarget) -> Queueing {
        match target.direction {
            Direction::Trim => self.engine.trims,
            Direction::Read | Direction::Write => Queueing::Queued,
        }
    }

    /// Prepares `target`, to which no rule objects; there must be a free slot.
    pub(crate) fn issue_target<E: Engine>(
        &mut self,
        engine: &mut E,
        target: &OpTarget,
        due: Tick,
        now: Tick,
    ) {
        if let (Some(zoned), Some(slot)) = (&mut self.zoned, self.queue.slots.peek()) {
            zoned.bind(slot);
        }
        self.queue.last = self.queueing(target);
        self.fill_buffer(engine, target, now);
        if let (Some(priorities), Some(slot)) = (&mut self.priorities, self.queue.slots.peek()) {
            self.queue.slots.state(slot).op.priority = priorities.choose(target);
        }
        self.prepare_op(engine, target, due, now);
        self.source.pass.issue(u64::from(target.length));
        self.count_issue(target, now);
    }

    /// Returns the next op, if it may be issued now; on zones, at the place that their rules give
    /// it.
    fn next_placed_target<E: Engine>(
        &mut self,
        engine: &mut E,
        now: Tick,
    ) -> Result<OpTarget, IssueStatus> {
        loop {
            let target = self.next_target(now)?;
            if self.zoned.is_none() {
                return Ok(target);
            }
            if let Some(placed) = self.place_in_zone(engine, target, now)? {
                return Ok(placed);
            }
        }
    }

    /// Returns the next op, if it may be issued now.
    pub(crate) fn next_target(&mut self, now: Tick) -> Result<OpTarget, IssueStatus> {
        let target = match self.source.held.take() {
            Some(target) => target,
            None if self.source.pass.remaining == 0 && !self.source.pairs.owes_writes() => {
                return Err(IssueStatus::EndOfPass);
            }
            None => self.draw_target(now).ok_or(IssueStatus::EndOfPattern)?,
        };
        self.source.pass.empty_since_restart = false;
        let due = self.source.schedules.next_due(target.direction);
        if due > now {
            self.source.held = Some(target);
            return Err(IssueStatus::NotDue(due));
        }
        Ok(target)
    }

    /// Draws the next op; `None` at the end of the pattern.
    fn draw_target(&mut self, now: Tick) -> Option<OpTarget> {
        match self.config.pattern.mix {
            Mix::TrimWrite => {
                let limits = self.limits.as_ref();
                let ops = limits.map_or(u64::MAX, |limits| limits.ops_left());
                self.source.draw_of_pair(ops)
            }
            _ => self.source.draw(now),
        }
    }

    /// Fills the buffer of a write.
    fn fill_buffer<E: Engine>(&mut self, engine: &mut E, target: &OpTarget, now: Tick) {
        if target.direction != Direction::Write || !self.engine.moves_data {
            return;
        }
        let Some(slot) = self.queue.slots.peek() else {
            return;
        };
        let buffer = &mut engine.buffer(slot)[..target.length as usize];
        match &mut self.readback {
            Some(readback) if readback.fills() => {
                readback.stamp(buffer, target, self.source.sequence, now.get());
            }
            _ => self.filler.refresh(buffer, target.offset, now.get()),
        }
    }

    /// Returns what to wait for when a rule holds the next op back.
    pub(crate) fn hold(&mut self, held: IssueBlock) -> IssueStatus {
        match held {
            IssueBlock::Until(then) => IssueStatus::NotDue(then),
            IssueBlock::AtDepth => IssueStatus::NeedsDrain,
            IssueBlock::OpsExhausted => {
                self.source.held = None;
                self.source.pairs.restart();
                self.source.pass.remaining = 0;
                self.source.pass.more = 0;
                self.source.pass.left = 0;
                IssueStatus::EndOfPass
            }
        }
    }

    pub(crate) fn count_issue(&mut self, target: &OpTarget, now: Tick) {
        let counts = self.counts_as_op(target);
        if let Some(limits) = self
            .limits
            .as_mut()
            .filter(|_| self.stage == Stage::Running)
        {
            limits.take_turn();
            if counts {
                limits.count_op();
            }
        }
        if let Some(thinking) = &mut self.thinking
            && self.stage != Stage::ReadingBack
        {
            thinking.issued(now);
        }
        if target.direction == Direction::Write {
            self.sync.wrote(target);
        }
    }

    /// Returns whether an op counts as one: trim and write of a pair do so together, as in fio.
    pub(crate) fn counts_as_op(&self, target: &OpTarget) -> bool {
        target.direction != Direction::Trim || self.config.pattern.mix != Mix::TrimWrite
    }

    /// Issues the rests of short transfers, in their own slots.
    pub(crate) fn issue_retries<E: Engine>(
        &mut self,
        engine: &mut E,
        now: &mut Tick,
    ) -> Option<Step> {
        self.queue.remainders_prepared = true;
        while let Some(slot) = self.queue.retry.pop() {
            engine.prepare(&self.queue.slots.state(slot).op);
            self.queue.prepared.push(slot);
        }
        self.submit_prepared(engine, now)
    }

    /// Abandons the rests of short transfers.
    pub(crate) fn abandon_retries(&mut self) {
        while let Some(slot) = self.queue.retry.pop() {
            self.release_failed(slot);
        }
    }

    /// Ends a pass all of whose bytes are issued: drains, or starts over if only time limits the
    /// job.
    #[cold]
    pub(crate) fn end_of_pass(&mut self) -> Option<Step> {
        let reads_back = self.reads_back_after_pass();
        if self.stage == Stage::ReadingBack {
            self.stage = Stage::Draining(After::Readback);
        } else if self.config.time_based && !reads_back {
            self.start_over();
            self.begin_pass_of_zones();
        } else {
            self.stage = Stage::Draining(After::Pass);
        }
        None
    }

    /// Restarts an exhausted pattern if bytes remain to issue, else ends the pass.
    #[cold]
    pub(crate) fn end_of_pattern(&mut self) -> Option<Step> {
        let whole = self.source.pass.remaining < u64::from(self.source.pattern.smallest());
        if whole || self.source.pass.empty_since_restart || !self.wraps() {
            let pass = &mut self.source.pass;
            if self.config.bytes_in_all.is_some() {
                // Bytes that no op fits into in this pass are left to the next.
                pass.left = pass.left.saturating_add(pass.remaining);
            }
            pass.remaining = 0;
            if self.source.pass.empty_since_restart {
                // No op fits at all: restarting would loop for ever.
                self.stage = Stage::Draining(After::End);
                return None;
            }
            return self.end_of_pass();
        }
        let remaining = self.source.pass.remaining;
        self.start_over();
        self.source.pass.remaining = remaining;
        self.source.pass.empty_since_restart = true;
        None
    }

    /// Returns whether more bytes are to be issued than the pattern holds.
    fn wraps(&self) -> bool {
        let held: u64 = self
            .config
            .pattern
            .files
            .iter()
            .map(|file| file.length)
            .sum();
        let beyond = self.config.bytes_in_all.is_none() && self.config.bytes_per_pass > held;
        // The end of a zone cuts random writes, the rest of which no other op of the pattern has.
        let cut = self.zoned.is_some() && self.config.pattern.random && self.source.used.write;
        self.config.time_based || beyond || cut
    }

    #[cold]
    fn drop_caches<E: Engine>(&mut self, engine: &mut E) {
        self.source.pass.invalidate = false;
        for number in 0..self.config.pattern.files.len() {
            // A page cache that cannot be dropped is no error, as in fio.
            let _ = engine.invalidate(FileIndex::new(u32::try_from(number).unwrap_or(u32::MAX)));
        }
    }
}

/// Answer to an attempt to issue the next op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IssueStatus {
    /// Issued, or free to be issued.
    Ready,
    /// Not due before this time.
    NotDue(Tick),
    /// Excluded by ops in flight: it must run alone, or overlaps one of them.
    NeedsDrain,
    /// A pause comes first.
    ThinkTime,
    /// There is none: all bytes of the pass are issued.
    EndOfPass,
    /// There is none: the pattern is exhausted.
    EndOfPattern,
    /// There is none: the job has failed.
    Failed,
}

impl IssueStatus {
    /// Returns whether there is no next op.
    const fn is_an_end(self) -> bool {
        matches!(self, Self::EndOfPass | Self::EndOfPattern)
    }
}

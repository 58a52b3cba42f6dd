//! From the pattern to the engine.
//!
//! Two ways, one meaning: `issue_batch` lays down a batch of targets that were drawn together;
//! `issue_checked` looks at each op: may it pass others, what must its buffer hold?

use fathom_core::{Direction, Engine, FileIndex, Step, Tick};

use crate::job_limits::IssueBlock;
use crate::pattern::Target;
use crate::think::Thinking;
use crate::worker::{After, Stage, Worker};

impl Worker {
    /// Issues up to one batch of ops; all that is asked of them is whether they are due.
    #[inline]
    pub(crate) fn issue_batch<E: Engine>(
        &mut self,
        engine: &mut E,
        now: &mut Tick,
    ) -> Option<Step> {
        let room = self.batch.min(self.slots.free());
        let mut gate = IssueStatus::Open;
        while gate == IssueStatus::Open && self.prepared.len() < room {
            if self.drawn.is_empty() {
                self.draw_ahead();
            }
            let most = room - self.prepared.len();
            gate = match self.drawn.alike {
                Some(alike) => self.lay_down_alike(&alike, engine, *now, most),
                None => self.lay_down_drawn(engine, *now, most),
            };
        }
        if !self.prepared.is_empty() {
            return self.submit_prepared(engine, now);
        }
        self.at_gate(engine, *now, gate)
    }

    /// Lays down what was drawn ahead and is due, `most` ops at most.
    #[inline]
    fn lay_down_drawn<E: Engine>(&mut self, engine: &mut E, now: Tick, most: usize) -> IssueStatus {
        let mut gate = self.gate_of_drawn();
        let mut count = 0;
        for target in self.drawn.rest().iter().take(most) {
            let Some(due) = self.schedules.take(target, now) else {
                gate = IssueStatus::Due(self.schedules.next_due(target.direction));
                break;
            };
            let Some(slot) = self.slots.take() else {
                unreachable!("there is room for so many");
            };
            let state = self.slots.state(slot);
            state.start_op(target, due, now, self.sequence);
            self.sequence += 1;
            engine.prepare(&state.op);
            self.prepared.push(slot);
            count += 1;
        }
        self.drawn.advance(count);
        gate
    }

    /// Whether there is anything to lay down.
    #[inline]
    pub(crate) const fn gate_of_drawn(&self) -> IssueStatus {
        match (self.drawn.is_empty(), self.pass.remaining) {
            (false, _) => IssueStatus::Open,
            (true, 0) => IssueStatus::EndOfPass,
            (true, _) => IssueStatus::EndOfPattern,
        }
    }

    /// Takes a slot for `target` and prepares it; there must be a free one.
    #[inline]
    fn prepare_op<E: Engine>(&mut self, engine: &mut E, target: &Target, due: Tick, now: Tick) {
        let Some(slot) = self.slots.take() else {
            unreachable!("callers see to it that a slot is free");
        };
        let state = self.slots.state(slot);
        state.start_op(target, due, now, self.sequence);
        self.sequence += 1;
        engine.prepare(&state.op);
        self.prepared.push(slot);
    }

    /// Issues up to one batch, each op looked at.
    pub(crate) fn issue_checked<E: Engine>(
        &mut self,
        engine: &mut E,
        now: &mut Tick,
    ) -> Option<Step> {
        if self.pass.invalidate {
            self.drop_caches(engine);
            // That took a while; the next op starts on a fresh clock.
            return Some(Step::Again);
        }
        if !self.retry.is_empty() {
            return self.issue_retries(engine, now);
        }
        let mut gate = IssueStatus::Open;
        while self.prepared.len() < self.batch && self.slots.free() > 0 {
            gate = self.issue_one(engine, *now);
            if gate != IssueStatus::Open {
                break;
            }
        }
        if !self.prepared.is_empty() {
            return self.submit_prepared(engine, now);
        }
        self.at_gate(engine, *now, gate)
    }

    /// Nothing could be issued: what to do instead.
    fn at_gate<E: Engine>(&mut self, engine: &mut E, now: Tick, gate: IssueStatus) -> Option<Step> {
        match gate {
            IssueStatus::EndOfPass => return self.end_of_pass(),
            IssueStatus::EndOfPattern => return self.end_of_pattern(),
            IssueStatus::Think => self.go_thinking(),
            IssueStatus::Open => {}
            IssueStatus::Due(due) => {
                if self.reap(engine, now) == 0 {
                    let until = due.min(self.clock.next_rule);
                    let min = self.in_flight.min(1);
                    return Some(Step::Wait {
                        min,
                        until: Some(until),
                        spin: false,
                    });
                }
            }
            IssueStatus::Drained => {
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

    /// A pause comes next.
    fn go_thinking(&mut self) {
        self.thinking.iter_mut().for_each(Thinking::call);
        self.stage = Stage::Draining(After::Think);
    }

    /// Issues one op, or says what it waits for.
    fn issue_one<E: Engine>(&mut self, engine: &mut E, now: Tick) -> IssueStatus {
        if self
            .thinking
            .as_ref()
            .is_some_and(|thinking| thinking.is_due(now))
        {
            return IssueStatus::Think;
        }
        if self.alone && !self.is_drained() {
            return IssueStatus::Drained;
        }
        self.alone = false;
        if self.sync.watches
            && let Some(kind) = self.sync_due()
        {
            return self.issue_sync(engine, now, kind);
        }
        if let Some(held) = self.held_back(now) {
            return self.hold(held);
        }
        let target = match self.next_target(now) {
            Ok(target) => target,
            Err(gate) => {
                self.sync.gave_way &= self.config.time_based || !gate.is_an_end();
                return gate;
            }
        };
        let alone = target.direction == Direction::Trim && !self.engine.queued_trim;
        if alone && !self.is_drained()
            || self.config.serialize_overlap && self.slots.overlaps(&target)
        {
            self.held = Some(target);
            return IssueStatus::Drained;
        }
        self.alone = alone;
        // What is read back may be early, and is then due now.
        let due = self.schedules.take(&target, now).unwrap_or(now);
        self.fill_buffer(engine, &target, now);
        if let (Some(priorities), Some(slot)) = (&mut self.priorities, self.slots.peek()) {
            self.slots.state(slot).op.priority = priorities.choose(&target);
        }
        self.prepare_op(engine, &target, due, now);
        if self.stage != Stage::ReadingBack {
            self.pass.issue(u64::from(target.length));
        }
        self.count_issue(&target, now);
        IssueStatus::Open
    }

    /// Whether the engine has nothing to do.
    pub(crate) const fn is_drained(&self) -> bool {
        self.in_flight == 0 && self.prepared.is_empty()
    }

    /// The op that comes next, if it may come now.
    fn next_target(&mut self, now: Tick) -> Result<Target, IssueStatus> {
        let target = match self.held.take() {
            Some(target) => target,
            None if self.stage == Stage::ReadingBack => {
                return self.next_readback().ok_or(IssueStatus::EndOfPass);
            }
            None if self.pass.remaining == 0 => return Err(IssueStatus::EndOfPass),
            None => self.draw(now).ok_or(IssueStatus::EndOfPattern)?,
        };
        self.pass.empty_since_restart = false;
        let due = self.schedules.next_due(target.direction);
        if due > now {
            self.held = Some(target);
            return Err(IssueStatus::Due(due));
        }
        Ok(target)
    }

    /// Draws an op: of the direction that is due first, or as the mix has it.
    fn draw(&mut self, now: Tick) -> Option<Target> {
        if self.pass.ended {
            return None;
        }
        let mut direction = self.pattern.draw_direction();
        let other = match direction {
            Direction::Read => Direction::Write,
            Direction::Write => Direction::Read,
            Direction::Trim => Direction::Trim,
        };
        if self.used[other]
            && self.config.pattern.mix != crate::config::Mix::TrimWrite
            && self.schedules.next_due(direction) > now
            && self.schedules.next_due(other) < self.schedules.next_due(direction)
        {
            direction = other;
        }
        let target = self.pattern.next(direction);
        self.pass.ended = target.is_none();
        target
    }

    fn next_readback(&mut self) -> Option<Target> {
        self.readback.as_mut()?.next_target()
    }

    /// What must stand in the buffer before it is written.
    fn fill_buffer<E: Engine>(&mut self, engine: &mut E, target: &Target, now: Tick) {
        if target.direction != Direction::Write || !self.engine.moves_data {
            return;
        }
        let Some(slot) = self.slots.peek() else {
            return;
        };
        let buffer = &mut engine.buffer(slot)[..target.length as usize];
        self.filler.refresh(buffer, target.offset, now.get());
        if let Some(readback) = &mut self.readback {
            readback.stamp(buffer, target, self.sequence, now.get());
        }
    }

    /// What is to be waited for where a rule keeps the next op back.
    fn hold(&mut self, held: IssueBlock) -> IssueStatus {
        match held {
            IssueBlock::Until(then) => IssueStatus::Due(then),
            IssueBlock::Full => IssueStatus::Drained,
            IssueBlock::Enough => {
                self.held = None;
                self.pass.remaining = 0;
                self.pass.more = 0;
                IssueStatus::EndOfPass
            }
        }
    }

    fn count_issue(&mut self, target: &Target, now: Tick) {
        if let Some(limits) = self
            .limits
            .as_mut()
            .filter(|_| self.stage == Stage::Running)
        {
            limits.issued();
        }
        if let Some(thinking) = &mut self.thinking {
            thinking.issued(now);
        }
        if target.direction == Direction::Write {
            self.sync.wrote(target);
        }
        self.sync.gave_way = false;
    }

    /// Issues the rests of short transfers, in their own slots.
    pub(crate) fn issue_retries<E: Engine>(
        &mut self,
        engine: &mut E,
        now: &mut Tick,
    ) -> Option<Step> {
        while let Some(slot) = self.retry.pop() {
            engine.prepare(&self.slots.state(slot).op);
            self.prepared.push(slot);
        }
        self.submit_prepared(engine, now)
    }

    /// Gives up the rests of short transfers.
    pub(crate) fn abandon_retries(&mut self) {
        while let Some(slot) = self.retry.pop() {
            self.slots.put_anew(slot);
        }
    }

    /// All bytes of the pass are issued.
    #[cold]
    fn end_of_pass(&mut self) -> Option<Step> {
        let reads_back = self
            .readback
            .as_ref()
            .is_some_and(|readback| readback.has_work());
        if self.stage == Stage::ReadingBack {
            self.stage = Stage::Draining(After::Readback);
        } else if self.config.time_based && !reads_back {
            self.start_over();
        } else {
            self.stage = Stage::Draining(After::Pass);
        }
        None
    }

    /// The pattern has been everywhere, but bytes remain (`io_size` above `size`): begin anew.
    #[cold]
    fn end_of_pattern(&mut self) -> Option<Step> {
        let whole = self.pass.remaining < u64::from(self.pattern.smallest());
        if whole || self.pass.empty_since_restart || !self.wraps() {
            self.pass.remaining = 0;
            if self.pass.empty_since_restart {
                // Not one op fits: going round for ever would be silence.
                self.stage = Stage::Draining(After::End);
                return None;
            }
            return self.end_of_pass();
        }
        let remaining = self.pass.remaining;
        self.start_over();
        self.pass.remaining = remaining;
        self.pass.empty_since_restart = true;
        None
    }

    /// Whether there is more to issue than the files hold.
    fn wraps(&self) -> bool {
        let held: u64 = self
            .config
            .pattern
            .files
            .iter()
            .map(|file| file.length)
            .sum();
        self.config.time_based || self.config.bytes_per_pass > held
    }

    #[cold]
    fn drop_caches<E: Engine>(&mut self, engine: &mut E) {
        self.pass.invalidate = false;
        for number in 0..self.config.pattern.files.len() {
            // A cache that cannot be dropped is no error: fio goes on as well.
            let _ = engine.invalidate(FileIndex::new(u32::try_from(number).unwrap_or(u32::MAX)));
        }
    }
}

/// What keeps the next op back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IssueStatus {
    /// Nothing.
    Open,
    /// It is not due before then.
    Due(Tick),
    /// It may not run beside others, or not beside one of them.
    Drained,
    /// A pause comes first.
    Think,
    /// There is none: all bytes of the pass are issued.
    EndOfPass,
    /// There is none: the pattern is exhausted.
    EndOfPattern,
}

impl IssueStatus {
    /// Whether there is no next op.
    const fn is_an_end(self) -> bool {
        matches!(self, Self::EndOfPass | Self::EndOfPattern)
    }
}

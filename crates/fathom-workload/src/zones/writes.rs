//! Rules of writes: choice of a zone, limits of open zones, resets and finishes that come first.

use fathom_core::{Nanos, Tick, ZoneCondition, ZoneKind};

use crate::pattern::OpTarget;

use super::access::ResetRule;
use super::answer::{FinishReason, ResetReason, StepKind, ZoneAnswer, ZoneRules, ZoneUser};
use super::table::{Held, ZoneState, ZoneTable, cut, issue};

/// Fitness of a zone for a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fitness {
    Ready,
    /// Held, or read by ops that a reset would disturb.
    Busy,
    /// One zone too many would be open.
    NoRoom,
    /// Full of data that stay until the pass ends.
    Kept,
    /// Offline, read-only, conventional, or too short for a block.
    Unusable,
}

impl ZoneTable {
    pub(super) fn admit_write(
        &mut self,
        rules: &ZoneRules,
        user: &mut ZoneUser,
        drawn: usize,
        target: &OpTarget,
        now: Tick,
    ) -> ZoneAnswer {
        if let Some(finish) = self.finish_written() {
            return finish;
        }
        let state = &self.zones[drawn];
        // A sequential job writes a full zone again when it comes to it: the rest of its blocks
        // there are beyond the capacity, or have been written by others.
        let stays = user
            .last_write
            .is_some_and(|last| last < target.offset && last >= state.zone.start);
        if !rules.random && state.is_full() && stays {
            return ZoneAnswer::Skip;
        }
        let fitness = self.fitness(rules, drawn);
        match fitness {
            Fitness::Ready => return self.write_into(rules, user, drawn, target),
            Fitness::Busy if !rules.random || rules.pairs => return ZoneAnswer::Wait,
            Fitness::Kept | Fitness::Unusable if !rules.random => return ZoneAnswer::Skip,
            _ => {}
        }
        let mut busy = fitness == Fitness::Busy;
        let from = drawn % self.open.len().max(1);
        for place in 0..self.open.len() {
            let index = self.open[(from + place) % self.open.len()] as usize;
            if rules.range.contains(&index) {
                match self.fitness(rules, index) {
                    Fitness::Ready => return self.write_into(rules, user, index, target),
                    fitness => busy |= fitness == Fitness::Busy,
                }
            }
        }
        if matches!(fitness, Fitness::Kept | Fitness::Unusable) {
            match self.next_writable(rules, drawn) {
                Ok(index) => return self.write_into(rules, user, index, target),
                Err(ZoneAnswer::Skip) => {}
                Err(answer) => return answer,
            }
        } else if busy {
            return ZoneAnswer::Wait;
        }
        self.make_room(rules, user, now)
    }

    /// Writes at the pointer of a zone that is ready, or does what must come first.
    pub(super) fn write_into(
        &mut self,
        rules: &ZoneRules,
        user: &mut ZoneUser,
        index: usize,
        target: &OpTarget,
    ) -> ZoneAnswer {
        let state = &self.zones[index];
        if state.stale {
            return self.hold_for(index, StepKind::Report);
        }
        if state.is_full() {
            return self.hold_for(index, StepKind::Reset(ResetReason::Full));
        }
        if state.is_outdated(rules) {
            return self.hold_for(index, StepKind::Reset(ResetReason::OldData));
        }
        let is_quiet = || state.reads == 0 && !self.is_held(index);
        let beyond = self.reset_rule_in_force(rules, user);
        let is_due = beyond.is_some_and(|rule| user.writes.saturating_add(1) >= rule.every);
        if is_due && state.written() > 0 && is_quiet() {
            user.writes = 0;
            return self.hold_for(index, StepKind::Reset(ResetReason::Threshold));
        }
        if rules.appends && self.has_area(index) {
            return self.hold_for(index, StepKind::Finish(FinishReason::Area));
        }
        if self.wants_area(rules, index) {
            // Counted from now on: another job might open one zone too many meanwhile.
            self.open(index, rules.job);
            return self.hold_for(index, StepKind::OpenWithArea);
        }
        let offset = self.next_write(index);
        let room = state.zone.write_end() - offset;
        let room = u32::try_from(room).unwrap_or(u32::MAX);
        let length = match cut(target.length, room, rules.smallest_write) {
            // Zones and capacities are multiples of the logical block, and so is the rest.
            0 if rules.writes_remainder => room,
            0 => return self.hold_for(index, StepKind::Finish(FinishReason::Remainder)),
            length => length,
        };
        if self.overfills(index, length.into()) {
            return ZoneAnswer::Wait;
        }
        user.writes = user.writes.saturating_add(u32::from(beyond.is_some()));
        user.waits_since = None;
        self.open(index, rules.job);
        if rules.appends {
            return self.append(index, target, length);
        }
        if self.has_area(index) {
            return self.issue_shared(index, target, length);
        }
        self.zones[index].held = Held::Writing;
        issue(index, target, offset, length)
    }

    /// Returns the next zone of the range that takes a write; otherwise what to do instead: skip
    /// if the limit of open zones is all that is in the way.
    pub(super) fn next_writable(
        &self,
        rules: &ZoneRules,
        from: usize,
    ) -> Result<usize, ZoneAnswer> {
        let (mut busy, mut kept, mut no_room) = (false, false, false);
        for index in self.after(rules, from) {
            match self.fitness(rules, index) {
                Fitness::Ready => return Ok(index),
                Fitness::Busy => busy = true,
                Fitness::NoRoom => no_room = true,
                Fitness::Kept => kept = true,
                Fitness::Unusable => {}
            }
        }
        Err(match (busy, no_room) {
            (true, _) => ZoneAnswer::Wait,
            (false, true) => ZoneAnswer::Skip,
            (false, false) => ZoneAnswer::Exhausted { for_good: !kept },
        })
    }

    /// Finishes a zone so that the job may open one, or waits.
    fn make_room(&mut self, rules: &ZoneRules, user: &mut ZoneUser, now: Tick) -> ZoneAnswer {
        let own_limit = self.is_at_own_limit(rules);
        let since = *user.waits_since.get_or_insert(now);
        let is_patient = now.since(since) < PATIENCE;
        let fits = |&&number: &&u32| {
            let state = &self.zones[number as usize];
            let claimed = state.owner.is_some() && is_patient && !own_limit;
            let is_one = !own_limit || state.owner == Some(rules.job);
            !self.is_held(number as usize) && is_one && !claimed
        };
        match self.open.iter().find(fits) {
            Some(&number) => {
                self.hold_for(number as usize, StepKind::Finish(FinishReason::OpenLimit))
            }
            None => ZoneAnswer::Wait,
        }
    }

    fn fitness(&self, rules: &ZoneRules, index: usize) -> Fitness {
        let state = &self.zones[index];
        let unusable = matches!(
            state.zone.condition,
            ZoneCondition::Offline | ZoneCondition::ReadOnly
        );
        let is_short = state.zone.capacity < u64::from(rules.smallest_write)
            && !(rules.writes_remainder && state.zone.capacity > 0);
        if unusable || is_short || state.zone.kind == ZoneKind::Conventional {
            return Fitness::Unusable;
        }
        let is_full = state.is_full();
        if rules.keeps_data && is_full && state.of_pass {
            return Fitness::Kept;
        }
        let reset = is_full || state.is_outdated(rules);
        let takes = match self.has_area(index) {
            true if rules.appends => !self.is_held(index),
            true => self.takes_another(rules, index),
            false => !self.is_held(index) || rules.appends && self.takes_another(rules, index),
        };
        if !takes || reset && (state.reads > 0 || self.is_held(index)) {
            return Fitness::Busy;
        }
        if state.open_at.is_some() {
            return Fitness::Ready;
        }
        let at_limit = (rules.open_max).is_some_and(|max| self.open.len() >= max as usize);
        match at_limit || self.is_at_own_limit(rules) {
            true => Fitness::NoRoom,
            false => Fitness::Ready,
        }
    }

    /// Returns whether the job has as many zones open as it may.
    pub(super) fn is_at_own_limit(&self, rules: &ZoneRules) -> bool {
        let Some(max) = rules.job_open_max else {
            return false;
        };
        let own = |&&number: &&u32| self.zones[number as usize].owner == Some(rules.job);
        self.open.iter().filter(own).count() >= max as usize
    }

    /// Returns the job's rule of resets while its threshold is reached.
    fn reset_rule_in_force(&self, rules: &ZoneRules, user: &ZoneUser) -> Option<ResetRule> {
        let count = &self.counts[user.count?];
        let rule = rules.reset?;
        let limit = u128::from(count.bytes) * u128::from(rule.threshold_ppm);
        (u128::from(count.written) * 1_000_000 >= limit).then_some(rule)
    }
}

impl ZoneState {
    /// Returns whether data of an earlier pass are in the way of a job that reads its own back.
    const fn is_outdated(&self, rules: &ZoneRules) -> bool {
        rules.keeps_data && !self.of_pass && self.written() > 0
    }
}

/// Time for which a job leaves the open zones of others alone: as long as tens of thousands of ops
/// on flash, and shorter than a pause that anybody would take for a hang.
pub(crate) const PATIENCE: Nanos = Nanos::from_millis(100);

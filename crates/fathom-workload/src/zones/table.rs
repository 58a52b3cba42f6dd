//! Table of a device's zones, and the rules by which jobs use them.
//!
//! A write goes to the drawn zone if it may, else to an open zone of the job's range, and always
//! to the write pointer. A zone is *held* by the one write in flight in it, or by the command that
//! changes its state; it is *open* from its first write until it is full, finished or reset.
//!
//! Rules that wait name a state that another op ends: a held zone, or too many open ones. A job
//! that finds the limit used up by zones outside its range finishes one of them, at once if its
//! owner has ended, and after [`PATIENCE`] otherwise. So no set of jobs can block itself.

use std::ops::Range;

use fathom_core::{Direction, Nanos, Tick, Zone, ZoneAction, ZoneCondition, ZoneKind, ZoneReport};

use crate::pattern::OpTarget;

use super::access::ResetRule;

/// Zones of a device.
#[derive(Debug)]
pub(crate) struct ZoneTable {
    zones: Box<[ZoneState]>,
    /// Length of all zones but the last; 0 if they differ.
    uniform: u64,
    /// Numbers of the open zones; has space for all.
    open: Vec<u32>,
    /// Written bytes of the ranges whose jobs reset by them.
    counts: Vec<RangeCount>,
}

/// Zone and its use by the jobs of a run.
#[derive(Clone, Copy, Debug)]
struct ZoneState {
    zone: Zone,
    held: Held,
    /// Reads in flight.
    reads: u32,
    /// Place in the list of open zones.
    open_at: Option<u32>,
    /// Job that opened it.
    owner: Option<u32>,
    /// It has data of the current pass.
    of_pass: bool,
    /// A write failed: only the device knows the write pointer.
    stale: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Free,
    /// By a write in flight.
    Writing,
    /// By a command that changes its state.
    Managed,
}

/// Written bytes of a range of zones.
#[derive(Clone, Debug)]
struct RangeCount {
    range: Range<usize>,
    written: u64,
    capacity: u64,
}

/// Rules of a job on a device.
#[derive(Clone, Debug)]
pub(crate) struct ZoneRules {
    /// Number of the job in the run.
    pub(crate) job: u32,
    /// Zones of its range.
    pub(crate) range: Range<usize>,
    /// Offsets are random: another zone may take the place of the drawn one.
    pub(crate) random: bool,
    /// Smallest read and smallest write, bytes, ≥ 1.
    pub(crate) smallest_read: u32,
    pub(crate) smallest_write: u32,
    pub(crate) open_max: Option<u32>,
    pub(crate) job_open_max: Option<u32>,
    pub(crate) reads_beyond: bool,
    pub(crate) writes_remainder: bool,
    pub(crate) keeps_data: bool,
    pub(crate) reset: Option<ResetRule>,
}

/// State of a job on a device.
#[derive(Clone, Debug, Default)]
pub(crate) struct ZoneUser {
    /// Writes since the last reset by the threshold.
    writes: u32,
    /// Time since which the limit of open zones holds it up.
    waits_since: Option<Tick>,
    /// Offset of the last write that was issued or skipped, as it was drawn.
    last_write: Option<u64>,
    /// Targets skipped in a row, and their bytes.
    skipped: u64,
    skipped_bytes: u64,
    /// Count of its range.
    count: Option<usize>,
}

/// Answer to the question for a target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ZoneAnswer {
    /// Issue this op; it holds its zone until [`ZoneTable::end`].
    Issue(OpTarget, ZoneHold),
    /// Carry this out, tell [`ZoneTable::settle`], and ask again.
    Do(ZoneStep),
    /// Ask again when something has completed.
    Wait,
    /// Draw another target.
    Skip,
    /// No zone of the range takes such an op: `kept`: only until the pass ends.
    Exhausted {
        /// Zones are full of data of this pass, which must stay.
        kept: bool,
    },
}

/// Use of a zone by an op in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ZoneHold {
    pub(crate) zone: u32,
    pub(crate) direction: Direction,
    length: u32,
}

/// Command to the device that must come first; the zone is held meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ZoneStep {
    pub(crate) number: u32,
    pub(crate) zone: Zone,
    pub(crate) kind: StepKind,
}

/// Kind of a command, and its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepKind {
    /// The zone is reset.
    Reset(ResetReason),
    /// The zone is finished.
    Finish(FinishReason),
    /// The device is asked for the zone's state, after a failed write.
    Report,
}

impl StepKind {
    /// Returns the device's command; `None` for a report.
    pub(crate) const fn action(self) -> Option<ZoneAction> {
        match self {
            Self::Reset(_) => Some(ZoneAction::Reset),
            Self::Finish(_) => Some(ZoneAction::Finish),
            Self::Report => None,
        }
    }
}

/// Reason of a reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResetReason {
    /// The zone is full and is to be written again.
    Full,
    /// The threshold of written bytes is exceeded.
    Threshold,
    /// Its data are of an earlier pass or run, and this pass is read back.
    OldData,
}

/// Reason of a finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FinishReason {
    /// The rest of the zone is shorter than a block.
    Remainder,
    /// Zones outside the range of a job use up the limit of open ones.
    OpenLimit,
}

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
    /// Creates the table of a device as it reports its zones.
    ///
    /// # Panics
    /// If the zones do not follow each other from 0 on, or there is none.
    pub(crate) fn new(report: &ZoneReport) -> Self {
        let mut at = 0;
        for zone in &report.zones {
            assert!(zone.start == at && zone.length > 0, "a gap before {zone:?}");
            at = zone.end();
        }
        let (first, all) = (report.zones[0].length, &report.zones);
        let alike = all[..all.len() - 1].iter().all(|zone| zone.length == first);
        let state = |zone: &Zone| ZoneState {
            // What is said of the pointer of a zone without one is without meaning.
            zone: Zone {
                write_pointer: zone.start,
                ..*zone
            },
            held: Held::Free,
            reads: 0,
            open_at: None,
            owner: None,
            of_pass: false,
            stale: false,
        };
        let mut table = Self {
            zones: all.iter().map(state).collect(),
            uniform: if alike { first } else { 0 },
            open: Vec::with_capacity(all.len()),
            counts: Vec::new(),
        };
        for (index, zone) in all.iter().enumerate() {
            table.adopt(index, zone);
        }
        table
    }

    /// Decides on a target of a job.
    pub(crate) fn admit(
        &mut self,
        rules: &ZoneRules,
        user: &mut ZoneUser,
        target: &OpTarget,
        now: Tick,
    ) -> ZoneAnswer {
        let drawn = self.index(target.offset);
        if self.zones[drawn].zone.kind == ZoneKind::Conventional {
            return self.pass_through(rules, drawn, target);
        }
        let answer = match target.direction {
            Direction::Write => self.admit_write(rules, user, drawn, target, now),
            Direction::Read | Direction::Trim => self.admit_read(rules, drawn, target),
        };
        let ends = matches!(answer, ZoneAnswer::Issue(..) | ZoneAnswer::Skip);
        if ends && target.direction == Direction::Write {
            user.last_write = Some(target.offset);
        }
        match answer {
            ZoneAnswer::Issue(..) => (user.skipped, user.skipped_bytes) = (0, 0),
            ZoneAnswer::Skip => {
                user.skipped += 1;
                user.skipped_bytes += u64::from(target.length);
                if user.skipped.is_multiple_of(SKIPS_MAX) || user.skipped_bytes > self.bytes(rules)
                {
                    return self.after_many_skips(rules, user, target);
                }
            }
            _ => {}
        }
        answer
    }

    /// Ends the use of a zone by an op that has moved all its bytes (`done`), or has failed.
    pub(crate) fn end(&mut self, hold: ZoneHold, done: bool) {
        let index = hold.zone as usize;
        if hold.direction != Direction::Write {
            self.zones[index].reads -= 1;
            return;
        }
        self.zones[index].held = Held::Free;
        if self.zones[index].zone.kind == ZoneKind::Conventional {
            return;
        }
        if !done {
            self.zones[index].stale = true;
            return;
        }
        self.zones[index].of_pass = true;
        let pointer = self.zones[index].zone.write_pointer + u64::from(hold.length);
        self.move_pointer(index, pointer);
    }

    /// Ends a step: with the state of the zone if it succeeded, the reported one after a report.
    pub(crate) fn settle(&mut self, step: &ZoneStep, found: Option<&Zone>) {
        let index = step.number as usize;
        self.zones[index].held = Held::Free;
        match (step.kind, found) {
            (_, None) => self.zones[index].stale = true,
            (StepKind::Report, Some(zone)) => self.adopt(index, zone),
            (StepKind::Reset(_), Some(_)) => {
                let start = self.zones[index].zone.start;
                self.close(index);
                self.zones[index].of_pass = false;
                self.zones[index].zone.condition = ZoneCondition::Empty;
                self.move_pointer(index, start);
            }
            (StepKind::Finish(_), Some(_)) => {
                let end = self.zones[index].zone.write_end();
                self.move_pointer(index, end);
            }
        }
    }

    /// Gives up a job's claim to the zones that it opened.
    pub(crate) fn leave(&mut self, job: u32) {
        for &number in &self.open {
            let state = &mut self.zones[number as usize];
            state.owner = state.owner.filter(|owner| *owner != job);
        }
    }

    /// Begins a pass over a range: what is written there is old from now on.
    pub(crate) fn begin_pass(&mut self, range: Range<usize>) {
        for state in &mut self.zones[range] {
            state.of_pass = false;
        }
    }

    /// Registers a job, whose range is counted if it resets by a threshold.
    pub(crate) fn register(&mut self, rules: &ZoneRules) -> ZoneUser {
        let mut user = ZoneUser::default();
        if rules.reset.is_none() {
            return user;
        }
        let known = |count: &RangeCount| count.range == rules.range;
        user.count = self.counts.iter().position(known).or_else(|| {
            let zones = &self.zones[rules.range.clone()];
            let sequential = zones
                .iter()
                .filter(|state| state.zone.kind != ZoneKind::Conventional);
            self.counts.push(RangeCount {
                range: rules.range.clone(),
                written: sequential.clone().map(ZoneState::written).sum(),
                capacity: sequential.map(|state| state.zone.capacity).sum(),
            });
            Some(self.counts.len() - 1)
        });
        user
    }

    /// Returns the numbers of the zones that lie whole between two offsets.
    pub(crate) fn inside(&self, from: u64, to: u64) -> Range<usize> {
        let first = self.zones.partition_point(|state| state.zone.start < from);
        let last = self.zones.partition_point(|state| state.zone.end() <= to);
        first..last.max(first)
    }

    /// Returns the number of zones.
    pub(crate) fn len(&self) -> usize {
        self.zones.len()
    }

    /// Returns a zone as the jobs of the run have left it.
    pub(crate) fn zone(&self, index: usize) -> &Zone {
        &self.zones[index].zone
    }

    /// Returns the number of open zones.
    #[cfg(test)]
    pub(crate) fn open_count(&self) -> usize {
        self.open.len()
    }

    pub(crate) fn capacity_max(&self) -> u64 {
        let capacities = self.zones.iter().map(|state| state.zone.capacity);
        capacities.max().unwrap_or(0)
    }

    fn admit_write(
        &mut self,
        rules: &ZoneRules,
        user: &mut ZoneUser,
        drawn: usize,
        target: &OpTarget,
        now: Tick,
    ) -> ZoneAnswer {
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
            Fitness::Busy if !rules.random => return ZoneAnswer::Wait,
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
    fn write_into(
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
        if self.is_beyond_threshold(rules, user) && state.written() > 0 && state.reads == 0 {
            user.writes = 0;
            return self.hold_for(index, StepKind::Reset(ResetReason::Threshold));
        }
        let room = state.zone.write_end() - state.zone.write_pointer;
        let room = u32::try_from(room).unwrap_or(u32::MAX);
        let length = match cut(target.length, room, rules.smallest_write) {
            // Zones and capacities are multiples of the logical block, and so is the rest.
            0 if rules.writes_remainder => room,
            0 => return self.hold_for(index, StepKind::Finish(FinishReason::Remainder)),
            length => length,
        };
        let offset = state.zone.write_pointer;
        user.writes = user.writes.saturating_add(1);
        user.waits_since = None;
        self.open(index, rules.job);
        self.zones[index].held = Held::Writing;
        issue(index, target, offset, length)
    }

    fn admit_read(&mut self, rules: &ZoneRules, drawn: usize, target: &OpTarget) -> ZoneAnswer {
        if self.zones[drawn].held == Held::Managed {
            return ZoneAnswer::Wait;
        }
        if let Some(answer) = self.read_from(rules, drawn, target) {
            return answer;
        }
        if !rules.random {
            return ZoneAnswer::Skip;
        }
        match self.next_readable(rules, drawn) {
            Some(index) => {
                let zone = &self.zones[index].zone;
                let moved = OpTarget {
                    offset: zone.start + target.offset % zone.length,
                    ..*target
                };
                let read = self.read_from(rules, index, &moved);
                read.unwrap_or(ZoneAnswer::Skip)
            }
            None => ZoneAnswer::Exhausted { kept: false },
        }
    }

    /// Reads written data of a zone; `None` if it has none that fits.
    fn read_from(
        &mut self,
        rules: &ZoneRules,
        index: usize,
        target: &OpTarget,
    ) -> Option<ZoneAnswer> {
        let state = &self.zones[index];
        if state.zone.condition == ZoneCondition::Offline {
            return None;
        }
        let zone = &state.zone;
        let readable = if rules.reads_beyond {
            zone.end()
        } else {
            zone.start + state.written()
        };
        let smallest = u64::from(rules.smallest_read);
        let left = u32::try_from(readable.saturating_sub(target.offset)).unwrap_or(u32::MAX);
        let length = cut(target.length, left, rules.smallest_read);
        let (offset, length) = if length == target.length || !rules.random && length > 0 {
            (target.offset, length)
        } else if !rules.random || readable - zone.start < smallest {
            return None;
        } else {
            // Another place of the same zone, as likely as any.
            let data = u32::try_from(readable - zone.start).unwrap_or(u32::MAX);
            let length = cut(target.length, data, rules.smallest_read);
            let places = (u64::from(data) - u64::from(length)) / smallest + 1;
            let place = (target.offset - zone.start) / smallest % places;
            (zone.start + place * smallest, length)
        };
        self.zones[index].reads += 1;
        Some(issue(index, target, offset, length))
    }

    /// Issues an op on a conventional zone where it was drawn, cut at the end of the zone.
    fn pass_through(&mut self, rules: &ZoneRules, index: usize, target: &OpTarget) -> ZoneAnswer {
        let writes = target.direction == Direction::Write;
        let smallest = if writes {
            rules.smallest_write
        } else {
            rules.smallest_read
        };
        let left = self.zones[index].zone.end() - target.offset;
        let left = u32::try_from(left).unwrap_or(u32::MAX);
        let length = cut(target.length, left, smallest);
        if length == 0 || self.zones[index].zone.condition == ZoneCondition::Offline {
            return ZoneAnswer::Skip;
        }
        if !writes {
            self.zones[index].reads += 1;
        }
        issue(index, target, target.offset, length)
    }

    /// Answers after so many skips that there may be nothing else. When a sequential job has skipped
    /// as much as its range has, none of its own offsets will do: it goes on at the next zone.
    #[cold]
    fn after_many_skips(
        &mut self,
        rules: &ZoneRules,
        user: &mut ZoneUser,
        target: &OpTarget,
    ) -> ZoneAnswer {
        let from = self.index(target.offset);
        let all_skipped = user.skipped_bytes > self.bytes(rules);
        if target.direction == Direction::Write {
            return match self.next_writable(rules, from) {
                Ok(index) if all_skipped => self.write_into(rules, user, index, target),
                Ok(_) => ZoneAnswer::Skip,
                Err(answer) => answer,
            };
        }
        match self.next_readable(rules, from) {
            Some(index) if all_skipped => {
                let offset = self.zones[index].zone.start;
                let moved = OpTarget { offset, ..*target };
                let read = self.read_from(rules, index, &moved);
                read.unwrap_or(ZoneAnswer::Skip)
            }
            Some(_) => ZoneAnswer::Skip,
            None => ZoneAnswer::Exhausted { kept: false },
        }
    }

    /// Returns the bytes of a range.
    fn bytes(&self, rules: &ZoneRules) -> u64 {
        let zones = &self.zones[rules.range.clone()];
        let (first, last) = (zones.first(), zones.last());
        let span = first
            .zip(last)
            .map(|(first, last)| last.zone.end() - first.zone.start);
        span.unwrap_or(0)
    }

    /// Returns the next zone of the range that takes a write; otherwise what to do instead: skip
    /// if the limit of open zones is all that is in the way.
    fn next_writable(&self, rules: &ZoneRules, from: usize) -> Result<usize, ZoneAnswer> {
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
            (false, false) => ZoneAnswer::Exhausted { kept },
        })
    }

    /// Returns the next zone of the range with data to read.
    fn next_readable(&self, rules: &ZoneRules, from: usize) -> Option<usize> {
        self.after(rules, from).find(|&index| {
            let state = &self.zones[index];
            let data = if rules.reads_beyond {
                state.zone.length
            } else {
                state.written()
            };
            state.held != Held::Managed
                && state.zone.condition != ZoneCondition::Offline
                && state.zone.kind != ZoneKind::Conventional
                && data >= u64::from(rules.smallest_read)
        })
    }

    /// Returns the zones of a range in order, beginning at `from` and wrapping around.
    fn after(&self, rules: &ZoneRules, from: usize) -> impl Iterator<Item = usize> + use<> {
        let (range, length) = (rules.range.clone(), rules.range.len());
        let from = from.saturating_sub(range.start);
        (0..length).map(move |step| range.start + (from + step) % length)
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
            state.held == Held::Free && is_one && !claimed
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
        if state.held != Held::Free || reset && state.reads > 0 {
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
    fn is_at_own_limit(&self, rules: &ZoneRules) -> bool {
        let Some(max) = rules.job_open_max else {
            return false;
        };
        let own = |&&number: &&u32| self.zones[number as usize].owner == Some(rules.job);
        self.open.iter().filter(own).count() >= max as usize
    }

    fn is_beyond_threshold(&self, rules: &ZoneRules, user: &ZoneUser) -> bool {
        let (Some(rule), Some(count)) = (rules.reset, user.count) else {
            return false;
        };
        let count = &self.counts[count];
        let limit = u128::from(count.capacity) * u128::from(rule.threshold_ppm);
        user.writes >= rule.every && u128::from(count.written) * 1_000_000 > limit
    }

    fn hold_for(&mut self, index: usize, kind: StepKind) -> ZoneAnswer {
        self.zones[index].held = Held::Managed;
        ZoneAnswer::Do(ZoneStep {
            number: number(index),
            zone: self.zones[index].zone,
            kind,
        })
    }

    /// Takes over the state of a zone from the device.
    fn adopt(&mut self, index: usize, found: &Zone) {
        self.close(index);
        let state = &mut self.zones[index];
        state.stale = false;
        state.zone.condition = found.condition;
        let pointer = match found.condition {
            ZoneCondition::Full => found.write_end(),
            _ if found.has_pointer() => found.write_pointer,
            // What was written before stays readable.
            ZoneCondition::ReadOnly => state.zone.write_pointer,
            _ => found.start,
        };
        self.move_pointer(index, pointer.clamp(found.start, found.write_end()));
        let written = self.zones[index].written();
        if found.has_pointer() && written > 0 && !self.zones[index].is_full() {
            self.list_as_open(index, None);
        }
    }

    fn move_pointer(&mut self, index: usize, pointer: u64) {
        let state = &mut self.zones[index];
        let before = std::mem::replace(&mut state.zone.write_pointer, pointer);
        let counts = self.counts.iter_mut();
        for count in counts.filter(|count| count.range.contains(&index)) {
            count.written = count.written + pointer - before;
        }
        if self.zones[index].is_full() {
            self.close(index);
        }
    }

    fn open(&mut self, index: usize, job: u32) {
        if self.zones[index].open_at.is_none() {
            self.list_as_open(index, Some(job));
        }
    }

    fn list_as_open(&mut self, index: usize, owner: Option<u32>) {
        self.zones[index].open_at = Some(number(self.open.len()));
        self.zones[index].owner = owner;
        self.open.push(number(index));
    }

    fn close(&mut self, index: usize) {
        let Some(place) = self.zones[index].open_at.take() else {
            return;
        };
        self.zones[index].owner = None;
        self.open.swap_remove(place as usize);
        if let Some(&moved) = self.open.get(place as usize) {
            self.zones[moved as usize].open_at = Some(place);
        }
    }

    /// Returns the number of the zone that contains `offset`, the last one beyond the end.
    fn index(&self, offset: u64) -> usize {
        let index = match self.uniform {
            0 => self
                .zones
                .partition_point(|state| state.zone.end() <= offset),
            length => usize::try_from(offset / length).unwrap_or(usize::MAX),
        };
        index.min(self.zones.len() - 1)
    }
}

impl ZoneState {
    const fn is_full(&self) -> bool {
        self.zone.write_pointer >= self.zone.write_end()
    }

    const fn written(&self) -> u64 {
        self.zone.write_pointer - self.zone.start
    }

    /// Returns whether data of an earlier pass are in the way of a job that reads its own back.
    const fn is_outdated(&self, rules: &ZoneRules) -> bool {
        rules.keeps_data && !self.of_pass && self.written() > 0
    }
}

/// Returns `length` if it fits into `room`, else the largest multiple of `smallest` that does.
const fn cut(length: u32, room: u32, smallest: u32) -> u32 {
    if length <= room {
        length
    } else {
        room - room % smallest
    }
}

/// Returns the answer to issue `target` at another place of a zone.
fn issue(index: usize, target: &OpTarget, offset: u64, length: u32) -> ZoneAnswer {
    let placed = OpTarget {
        offset,
        length,
        ..*target
    };
    let hold = ZoneHold {
        zone: number(index),
        direction: target.direction,
        length,
    };
    ZoneAnswer::Issue(placed, hold)
}

fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// Time for which a job leaves the open zones of others alone: as long as tens of thousands of ops
/// on flash, and shorter than a pause that anybody would take for a hang.
pub(crate) const PATIENCE: Nanos = Nanos::from_millis(100);

/// Targets to skip in a row before the whole range is searched, and from search to search.
const SKIPS_MAX: u64 = 1024;

//! Table of a device's zones, and the rules by which jobs use them.
//!
//! A write goes to the drawn zone if it may, else to an open zone of the job's range, and always
//! to the write pointer. A zone is *held* by the one write in flight in it, or by the command that
//! changes its state; it is *open* from its first write until it is full, finished or reset. A zone
//! with a random write area is not held by writes: as many are in flight as its area takes. Nor is
//! one that jobs append to, but for the jobs that write at the pointer.
//!
//! Rules that wait name a state that another op ends: a held zone, or too many open ones. A job
//! that finds the limit used up by zones outside its range finishes one of them, at once if its
//! owner has ended, and after a tenth of a second otherwise. So no set of jobs can block itself.

use std::ops::Range;

use fathom_core::{Direction, Tick, WriteArea, Zone, ZoneCondition, ZoneKind, ZoneReport};

use crate::pattern::OpTarget;

use super::answer::{StepKind, ZoneAnswer, ZoneHold, ZoneRules, ZoneStep, ZoneUser};
use super::shared_writes::SharedWrites;

/// Zones of a device.
#[derive(Debug)]
pub(crate) struct ZoneTable {
    pub(super) zones: Box<[ZoneState]>,
    /// Length of all zones but the last; 0 if they differ.
    uniform: u64,
    /// Numbers of the open zones; has space for all.
    pub(super) open: Vec<u32>,
    /// Written bytes of the ranges whose jobs reset by them.
    pub(super) counts: Vec<RangeCount>,
    /// Random write areas of the device; `None` if it has none.
    pub(super) area: Option<WriteArea>,
    /// Of each zone the writes of which several are in flight, in an area or appended; empty if
    /// there are none of these.
    pub(super) shared_writes: Box<[SharedWrites]>,
    /// Open zones with an area that are written whole, and have to be finished.
    pub(super) written_whole: u32,
}

/// Zone and its use by the jobs of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct ZoneState {
    pub(super) zone: Zone,
    pub(super) held: Held,
    /// Reads in flight.
    pub(super) reads: u32,
    /// Place in the list of open zones.
    pub(super) open_at: Option<u32>,
    /// Job that opened it.
    pub(super) owner: Option<u32>,
    /// It has data of the current pass.
    pub(super) of_pass: bool,
    /// A write failed: only the device knows the write pointer.
    pub(super) stale: bool,
    /// Appends are in flight.
    pub(super) appends: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    Free,
    /// By a write in flight.
    Writing,
    /// By a command that changes its state.
    Managed,
}

/// Written bytes of a range of zones.
#[derive(Clone, Debug)]
pub(super) struct RangeCount {
    range: Range<usize>,
    /// Bytes written in zones that have a write pointer.
    pub(super) written: u64,
    /// Length of all its zones.
    pub(super) bytes: u64,
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
                has_area: false,
                ..*zone
            },
            held: Held::Free,
            reads: 0,
            open_at: None,
            owner: None,
            of_pass: false,
            stale: false,
            appends: false,
        };
        let mut table = Self {
            zones: all.iter().map(state).collect(),
            uniform: if alike { first } else { 0 },
            open: Vec::with_capacity(all.len()),
            counts: Vec::new(),
            area: None,
            shared_writes: Box::default(),
            written_whole: 0,
        };
        table.take_over(report);
        table
    }

    /// Takes over the state of all zones, and what the device says of random write areas.
    pub(crate) fn take_over(&mut self, report: &ZoneReport) {
        if report.area.is_some() {
            self.area = report.area;
            self.shared_writes = vec![SharedWrites::default(); self.zones.len()].into_boxed_slice();
        }
        for (index, zone) in report.zones.iter().enumerate() {
            self.adopt(index, zone);
        }
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
        let is_conventional = self.zones[drawn].zone.kind == ZoneKind::Conventional;
        if is_conventional && target.direction != Direction::Trim {
            return self.pass_through(rules, drawn, target);
        }
        let answer = match target.direction {
            Direction::Write => self.admit_write(rules, user, drawn, target, now),
            Direction::Read => self.admit_read(rules, drawn, target),
            Direction::Trim => self.admit_trim(rules, drawn, target),
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
                // No room for another target: a pass that was skipped whole must not end unnoticed.
                let is_last = user.skipped_bytes + u64::from(target.length) > self.bytes(rules);
                if user.skipped.is_multiple_of(SKIPS_MAX) || is_last {
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
        if hold.direction == Direction::Read {
            self.zones[index].reads -= 1;
            return;
        }
        let is_conventional = self.zones[index].zone.kind == ZoneKind::Conventional;
        if !done && !is_conventional {
            self.zones[index].stale = true;
        }
        if let Some(mark) = hold.mark {
            self.zones[index].of_pass |= done;
            let pointer = self.shared_writes[index].end(mark);
            return self.move_shared_pointer(index, pointer);
        }
        self.zones[index].held = Held::Free;
        if !done || is_conventional {
            return;
        }
        if hold.direction == Direction::Trim {
            return self.empty(index);
        }
        self.zones[index].of_pass = true;
        let pointer = self.zones[index].zone.write_pointer + u64::from(hold.length);
        self.move_pointer(index, pointer);
        self.follow_pointer(index);
    }

    /// Ends the use of a zone by an op that was not issued.
    pub(crate) fn give_back(&mut self, hold: ZoneHold) {
        let index = hold.zone as usize;
        if let Some(mark) = hold.mark {
            let writes = &mut self.shared_writes[index];
            let pointer = writes.take_back(mark, hold.offset, hold.length.into());
            return self.move_shared_pointer(index, pointer);
        }
        let state = &mut self.zones[index];
        match hold.direction {
            Direction::Read => state.reads -= 1,
            Direction::Write | Direction::Trim => state.held = Held::Free,
        }
    }

    /// Ends a step: with the state of the zone if it succeeded, the reported one after a report.
    pub(crate) fn settle(&mut self, step: &ZoneStep, found: Option<&Zone>) {
        let index = step.number as usize;
        self.zones[index].held = Held::Free;
        match (step.kind, found) {
            // It was counted as open, and is not.
            (StepKind::OpenWithArea, None) => self.close(index),
            (StepKind::Commit, _) => {}
            (_, None) => self.zones[index].stale = true,
            (StepKind::OpenWithArea, Some(_)) => self.give_area(index),
            (StepKind::Report, Some(zone)) => self.adopt(index, zone),
            (StepKind::Reset(_), Some(_)) => self.empty(index),
            (StepKind::Finish(_), Some(_)) => {
                self.take_area(index);
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
        self.prepare_appends(rules);
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
                written: sequential.map(ZoneState::written).sum(),
                bytes: zones.iter().map(|state| state.zone.length).sum(),
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

    /// Returns the largest capacity of the zones that lie whole between two offsets.
    pub(crate) fn capacity_max(&self, from: u64, to: u64) -> u64 {
        let zones = &self.zones[self.inside(from, to)];
        let capacities = zones.iter().map(|state| state.zone.capacity);
        capacities.max().unwrap_or(0)
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

    /// Answers after so many skips that no usable zone may be left. When a sequential job has
    /// skipped as much as its range has, none of its own offsets will do: it goes on at the next
    /// zone.
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
        if target.direction == Direction::Trim {
            // A sequential job has skipped zones that are offline, read-only or conventional.
            return match self.next_trimmable(rules, from) {
                Some(_) => ZoneAnswer::Skip,
                None => self.without_trimmable(rules),
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
            None => ZoneAnswer::Exhausted { for_good: false },
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

    /// Returns the zones of a range in order, beginning at `from` and wrapping around.
    pub(super) fn after(
        &self,
        rules: &ZoneRules,
        from: usize,
    ) -> impl Iterator<Item = usize> + use<> {
        let (range, length) = (rules.range.clone(), rules.range.len());
        let from = from.saturating_sub(range.start);
        (0..length).map(move |step| range.start + (from + step) % length)
    }

    pub(super) fn hold_for(&mut self, index: usize, kind: StepKind) -> ZoneAnswer {
        self.zones[index].held = Held::Managed;
        ZoneAnswer::Do(ZoneStep {
            number: number(index),
            zone: self.zones[index].zone,
            kind,
        })
    }

    /// Takes over the state of a zone from the device.
    fn adopt(&mut self, index: usize, found: &Zone) {
        // A zone that stays open stays its owner's: `job_max_open_zones` counts it.
        let owner = self.zones[index].owner;
        if let Some(pointer) = self.resume_of(index, found) {
            let state = &mut self.zones[index];
            state.stale = false;
            state.zone.condition = found.condition;
            return self.resume_in_area(index, pointer);
        }
        self.take_area(index);
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
        let has_area = found.has_area && self.area.is_some();
        let is_begun = found.has_pointer() && (self.zones[index].written() > 0 || has_area);
        if is_begun && !self.zones[index].is_full() {
            self.list_as_open(index, owner);
            if has_area {
                self.give_area(index);
            }
        }
    }

    /// Notes that a zone was reset.
    fn empty(&mut self, index: usize) {
        self.take_area(index);
        self.close(index);
        let state = &mut self.zones[index];
        state.of_pass = false;
        state.stale = false;
        state.zone.condition = ZoneCondition::Empty;
        let start = state.zone.start;
        self.move_pointer(index, start);
    }

    pub(super) fn move_pointer(&mut self, index: usize, pointer: u64) {
        let state = &mut self.zones[index];
        let before = std::mem::replace(&mut state.zone.write_pointer, pointer);
        let counts = self.counts.iter_mut();
        for count in counts.filter(|count| count.range.contains(&index)) {
            count.written = count.written + pointer - before;
        }
        if self.zones[index].is_full() && !self.has_area(index) {
            self.close(index);
        }
    }

    pub(super) fn open(&mut self, index: usize, job: u32) {
        if self.zones[index].open_at.is_none() {
            self.list_as_open(index, Some(job));
        }
    }

    fn list_as_open(&mut self, index: usize, owner: Option<u32>) {
        self.zones[index].open_at = Some(number(self.open.len()));
        self.zones[index].owner = owner;
        self.open.push(number(index));
    }

    pub(super) fn close(&mut self, index: usize) {
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
    pub(super) fn index(&self, offset: u64) -> usize {
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
    pub(super) const fn is_full(&self) -> bool {
        self.zone.write_pointer >= self.zone.write_end()
    }

    pub(super) const fn written(&self) -> u64 {
        self.zone.write_pointer - self.zone.start
    }
}

/// Returns `length` if it fits into `room`, else the largest multiple of `smallest` that does.
pub(super) const fn cut(length: u32, room: u32, smallest: u32) -> u32 {
    if length <= room {
        length
    } else {
        room - room % smallest
    }
}

/// Returns the answer to issue `target` at another place of a zone.
pub(super) fn issue(index: usize, target: &OpTarget, offset: u64, length: u32) -> ZoneAnswer {
    let placed = OpTarget {
        offset,
        length,
        ..*target
    };
    let hold = ZoneHold {
        zone: number(index),
        direction: target.direction,
        offset,
        length,
        mark: None,
    };
    ZoneAnswer::Issue(placed, hold)
}

fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// Targets to skip in a row before the whole range is searched, and from search to search.
const SKIPS_MAX: u64 = 1024;

//! Rules of replays: the ops of a log stay where they were recorded, and must fit the zones there.

use std::fmt;

use fathom_core::{Direction, Zone, ZoneKind};

use crate::pattern::OpTarget;

use super::answer::{StepKind, ZoneAnswer, ZoneHold, ZoneRules, ZoneStep};
use super::table::{Held, ZoneTable, issue};

/// Answer to the question for a recorded op.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum RecordedAnswer {
    /// Issue it; it holds its zone until `ZoneTable::end`.
    Issue(ZoneHold),
    /// Carry this out, tell `ZoneTable::settle`, and ask again.
    Do(ZoneStep),
    /// Ask again when something has completed.
    Wait,
    /// The device would fail it.
    Refused(Refusal),
}

/// Reason for which a zone takes no recorded op.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Refusal {
    number: usize,
    zone: Zone,
    offset: u64,
    end: u64,
    why: RefusalKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RefusalKind {
    OffPointer,
    BeyondCapacity,
    OpenLimit(u32),
    PartOfZone,
    NoReset,
}

impl ZoneTable {
    /// Decides on an op of a log.
    pub(crate) fn admit_recorded(
        &mut self,
        rules: &ZoneRules,
        target: &OpTarget,
    ) -> RecordedAnswer {
        let index = self.index(target.offset);
        let conventional = self.zones[index].zone.kind == ZoneKind::Conventional;
        let why = match target.direction {
            Direction::Read if self.zones[index].held == Held::Managed => {
                return RecordedAnswer::Wait;
            }
            Direction::Read => {
                self.zones[index].reads += 1;
                None
            }
            Direction::Write if conventional => None,
            _ if self.is_used(index, target.direction) => return RecordedAnswer::Wait,
            Direction::Write if self.zones[index].stale => {
                return match self.hold_for(index, StepKind::Report) {
                    ZoneAnswer::Do(step) => RecordedAnswer::Do(step),
                    _ => RecordedAnswer::Wait,
                };
            }
            Direction::Write => self.refusal_of_write(rules, index, target).or_else(|| {
                self.open(index, rules.job);
                self.zones[index].held = Held::Writing;
                None
            }),
            Direction::Trim => self.refusal_of_trim(index, target).or_else(|| {
                self.zones[index].held = Held::Managed;
                None
            }),
        };
        match (why, issue(index, target, target.offset, target.length)) {
            (None, ZoneAnswer::Issue(_, hold)) => RecordedAnswer::Issue(hold),
            (None, _) => RecordedAnswer::Wait,
            (Some(why), _) => RecordedAnswer::Refused(Refusal {
                number: index,
                zone: self.zones[index].zone,
                offset: target.offset,
                end: target.offset.saturating_add(u64::from(target.length)),
                why,
            }),
        }
    }

    /// Returns whether ops in flight are in the way of a write, or of a reset.
    fn is_used(&self, index: usize, direction: Direction) -> bool {
        let state = &self.zones[index];
        self.is_held(index) || direction == Direction::Trim && state.reads > 0
    }

    fn refusal_of_write(
        &self,
        rules: &ZoneRules,
        index: usize,
        target: &OpTarget,
    ) -> Option<RefusalKind> {
        let state = &self.zones[index];
        let end = target.offset.saturating_add(u64::from(target.length));
        if state.is_full() || target.offset != state.zone.write_pointer {
            return Some(RefusalKind::OffPointer);
        }
        if end > state.zone.write_end() {
            return Some(RefusalKind::BeyondCapacity);
        }
        if state.open_at.is_some() {
            return None;
        }
        let limit = rules
            .open_max
            .filter(|max| self.open.len() >= *max as usize);
        let own = rules.job_open_max.filter(|_| self.is_at_own_limit(rules));
        limit.or(own).map(RefusalKind::OpenLimit)
    }

    fn refusal_of_trim(&self, index: usize, target: &OpTarget) -> Option<RefusalKind> {
        let zone = &self.zones[index].zone;
        if zone.kind == ZoneKind::Conventional {
            return Some(RefusalKind::NoReset);
        }
        let whole = (target.offset, u64::from(target.length)) == (zone.start, zone.length);
        (!whole).then_some(RefusalKind::PartOfZone)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            number,
            zone,
            offset,
            end,
            why,
        } = self;
        write!(f, "zone {number} at {}: the log ", zone.start)?;
        let pointer = zone.write_pointer;
        match why {
            RefusalKind::OffPointer if pointer >= zone.write_end() => write!(
                f,
                "writes at {offset}, but its write pointer is at {pointer}: it is full, and no \
                 trim of the log has reset it"
            ),
            RefusalKind::OffPointer => {
                write!(
                    f,
                    "writes at {offset}, but its write pointer is at {pointer}"
                )
            }
            RefusalKind::BeyondCapacity => {
                write!(
                    f,
                    "writes up to {end}, beyond its capacity, which ends at {}",
                    zone.write_end()
                )
            }
            RefusalKind::OpenLimit(max) => {
                write!(f, "opens it, beside the {max} zones that may be open")
            }
            RefusalKind::PartOfZone => write!(
                f,
                "trims {offset} to {end}, but a zone is reset whole, up to {}",
                zone.end()
            ),
            RefusalKind::NoReset => write!(f, "trims it, but it is conventional: it has no reset"),
        }
    }
}

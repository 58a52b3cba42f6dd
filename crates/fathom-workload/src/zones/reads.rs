//! Rules of reads: they stay below the write pointers.

use fathom_core::{ZoneCondition, ZoneKind};

use crate::pattern::OpTarget;

use super::answer::{ZoneAnswer, ZoneRules};
use super::table::{Held, ZoneTable, cut, issue};

impl ZoneTable {
    pub(super) fn admit_read(
        &mut self,
        rules: &ZoneRules,
        drawn: usize,
        target: &OpTarget,
    ) -> ZoneAnswer {
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
            None => ZoneAnswer::Exhausted { for_good: false },
        }
    }

    /// Reads written data of a zone; `None` if it has none that fits.
    pub(super) fn read_from(
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

    /// Returns the next zone of the range with data to read.
    pub(super) fn next_readable(&self, rules: &ZoneRules, from: usize) -> Option<usize> {
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
}

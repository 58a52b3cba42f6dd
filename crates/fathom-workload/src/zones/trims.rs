//! Rules of trims: each resets a whole zone.

use fathom_core::{ZoneCondition, ZoneKind};

use crate::pattern::OpTarget;

use super::answer::{ZoneAnswer, ZoneRules};
use super::table::{Held, ZoneTable, issue};

impl ZoneTable {
    /// Resets the drawn zone; a random job of trims alone takes the next one with data if that has
    /// none, as in fio.
    pub(super) fn admit_trim(
        &mut self,
        rules: &ZoneRules,
        drawn: usize,
        target: &OpTarget,
    ) -> ZoneAnswer {
        let moves = rules.random && !rules.pairs;
        if self.can_be_reset(drawn) && (!moves || self.has_data(drawn)) {
            return match self.is_quiet(drawn) {
                true => self.reset_by_trim(drawn, target),
                false => ZoneAnswer::Wait,
            };
        }
        if !moves {
            return ZoneAnswer::Skip;
        }
        match self.next_trimmable(rules, drawn) {
            Some(index) if self.is_quiet(index) => self.reset_by_trim(index, target),
            Some(_) => ZoneAnswer::Wait,
            None => self.without_trimmable(rules),
        }
    }

    /// Returns the next zone of the range that a trim may take: for a random job one with data, and
    /// one that nothing uses before one that is in use.
    pub(super) fn next_trimmable(&self, rules: &ZoneRules, from: usize) -> Option<usize> {
        let any = !rules.random || rules.pairs;
        let fits = |index: &usize| self.can_be_reset(*index) && (any || self.has_data(*index));
        let mut quiet = self.after(rules, from).filter(fits);
        let quiet = quiet.find(|&index| self.is_quiet(index));
        quiet.or_else(|| self.after(rules, from).find(fits))
    }

    /// Returns the answer where no zone may be trimmed: for now, if one could be.
    pub(super) fn without_trimmable(&self, rules: &ZoneRules) -> ZoneAnswer {
        let mut zones = rules.range.clone();
        ZoneAnswer::Exhausted {
            for_good: !zones.any(|index| self.can_be_reset(index)),
        }
    }

    fn reset_by_trim(&mut self, index: usize, target: &OpTarget) -> ZoneAnswer {
        let zone = self.zones[index].zone;
        self.zones[index].held = Held::Managed;
        // No zone of a job is longer: `bs` is the length of a zone.
        let length = u32::try_from(zone.length).unwrap_or(u32::MAX);
        issue(index, target, zone.start, length)
    }

    fn can_be_reset(&self, index: usize) -> bool {
        let zone = &self.zones[index].zone;
        let is_lost = matches!(
            zone.condition,
            ZoneCondition::Offline | ZoneCondition::ReadOnly
        );
        zone.kind != ZoneKind::Conventional && !is_lost
    }

    /// Returns whether a zone has data, or may have some that a failed write has left.
    fn has_data(&self, index: usize) -> bool {
        let state = &self.zones[index];
        state.written() > 0 || state.stale || self.is_held(index)
    }

    /// Returns whether no op in flight uses a zone.
    fn is_quiet(&self, index: usize) -> bool {
        !self.is_held(index) && self.zones[index].reads == 0
    }
}

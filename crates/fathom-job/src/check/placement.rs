//! Rules on the ranks that have a section.

use super::{JobCheck, problem};
use crate::rank_place;

impl JobCheck<'_> {
    /// `ranks` must name a rank of the run, and `rank_shift` lead to another one.
    pub(super) fn placement(&mut self) {
        let placement = &self.layer.options.placement;
        let ranks = self.own.rank.ranks;
        let names_none = |list: &crate::RankList| !list.names_any_of(ranks);
        let nobody = placement.ranks.as_ref().is_some_and(names_none);
        let shift = rank_place::target(placement.shift, self.own, self.environment);
        if nobody {
            let why = match ranks {
                1 => "`ranks` names no rank of this run, whose only rank is 0".to_owned(),
                ranks => format!(
                    "`ranks` names none of the {ranks} ranks, 0 to {}",
                    ranks - 1
                ),
            };
            let fix = "name a rank below the number of ranks, which `--rank=N/M` gives";
            self.error_at(&["ranks"], problem("no-ranks", why).fix(fix));
        }
        if let Err(problem) = shift {
            self.error_at(&["rank_shift"], problem);
        }
    }
}

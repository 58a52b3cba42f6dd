//! Plan checks and files to lay out, gathered from all ranks.

use std::collections::BTreeMap;

use crate::messages::Checks;
use crate::{FileKey, Rank, Text};

/// Checks of all ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Checklist {
    /// Ranks that refuse the plan, by reason.
    refusals: BTreeMap<Text, Vec<Rank>>,
    /// Reasons that are not among them.
    left_out: u64,
    /// Lowest rank that names each file.
    owners: BTreeMap<FileKey, Rank>,
    /// Files of each rank, in its order, until it has laid them out.
    files: BTreeMap<Rank, Vec<FileKey>>,
}

/// Reason against the plan, with the ranks that have it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Refusal {
    /// Reason.
    pub reason: Text,
    /// Ranks, rising.
    pub ranks: Vec<Rank>,
}

impl Checklist {
    /// Adds the checks of a rank.
    pub(crate) fn add(&mut self, rank: Rank, checks: Checks) {
        self.left_out += u64::from(checks.left_out());
        for reason in checks.refusals() {
            if self.refusals.len() < REASONS_MAX || self.refusals.contains_key(reason) {
                self.refusals.entry(reason.clone()).or_default().push(rank);
            } else {
                self.left_out += 1;
            }
        }
        for &file in checks.files() {
            let owner = self.owners.entry(file).or_insert(rank);
            *owner = rank.min(*owner);
        }
        self.files.insert(rank, checks.files().to_vec());
    }

    /// Returns whether no rank refuses the plan.
    pub(crate) fn is_sound(&self) -> bool {
        self.refusals.is_empty() && self.left_out == 0
    }

    /// Returns the reasons by the lowest rank that has each, and how many more there are.
    pub(crate) fn refusals(&self) -> (Vec<Refusal>, u64) {
        let all = self.refusals.iter().map(|(reason, ranks)| {
            let mut ranks = ranks.clone();
            ranks.sort_unstable();
            ranks.dedup();
            let reason = reason.clone();
            Refusal { reason, ranks }
        });
        let mut all: Vec<Refusal> = all.collect();
        all.sort_by(|one, other| one.ranks.cmp(&other.ranks));
        (all, self.left_out)
    }

    /// Returns the indexes of a rank's files that another rank lays out.
    pub(crate) fn others(&self, rank: Rank) -> Vec<u16> {
        let files = self.files.get(&rank).map_or(&[][..], Vec::as_slice);
        // At most 4,096 files, the limit of a message.
        (0u16..)
            .zip(files)
            .filter(|(_, file)| self.owners.get(file) != Some(&rank))
            .map(|(index, _)| index)
            .collect()
    }

    /// Forgets the files of a rank that has laid them out.
    pub(crate) fn laid_out(&mut self, rank: Rank) {
        self.files.remove(&rank);
    }

    /// Forgets all files, once all ranks have laid theirs out.
    pub(crate) fn forget_files(&mut self) {
        (self.files, self.owners) = Default::default();
    }
}

/// Most different reasons that are kept; beyond, the user fixes these first.
const REASONS_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn checks(refusals: &[&str], files: &[u64]) -> Checks {
        let refusals: Vec<String> = refusals.iter().map(|&reason| reason.into()).collect();
        let files = files.iter().map(|&digest| FileKey::new(digest)).collect();
        Checks::new(&refusals, files).unwrap()
    }

    #[test]
    fn the_lowest_rank_lays_out_whatever_the_order_of_the_checks() {
        let (first, second, third) = (Rank::new(0), Rank::new(1), Rank::new(2));
        let mut list = Checklist::default();
        list.add(third, checks(&[], &[7, 9, 5]));
        list.add(first, checks(&[], &[8]));
        list.add(second, checks(&[], &[5, 9, 8]));
        assert!(list.is_sound());
        assert_eq!(list.others(first), []);
        assert_eq!(list.others(second), [2]);
        assert_eq!(list.others(third), [1, 2]);
        assert_eq!(list.others(Rank::new(9)), []);
    }

    #[test]
    fn equal_reasons_are_told_once() {
        let mut list = Checklist::default();
        list.add(Rank::new(2), checks(&["b", "a"], &[]));
        list.add(Rank::new(1), checks(&["a"], &[]));
        let (refusals, left_out) = list.refusals();
        let told: Vec<_> = refusals
            .iter()
            .map(|one| (one.reason.as_str(), one.ranks.as_slice()))
            .collect();
        let both = [Rank::new(1), Rank::new(2)];
        assert_eq!(told, [("a", &both[..]), ("b", &both[1..])]);
        assert!(!list.is_sound() && left_out == 0);
    }

    #[test]
    fn endless_reasons_take_bounded_memory() {
        let mut list = Checklist::default();
        for rank in 0..300 {
            list.add(Rank::new(rank), checks(&[&format!("reason {rank}")], &[]));
        }
        let (refusals, left_out) = list.refusals();
        assert_eq!((refusals.len(), left_out), (256, 44));
    }
}

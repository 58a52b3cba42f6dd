//! Histograms of the slots of a timeline, which take memory by groups of buckets.
//!
//! ```text
//! slot 0   groups  · · 1 3 · …      counts  │ none │ 1: slot 0 │ 2: slot 1 │ 3: slot 0 │ reserved
//! slot 1   groups  · · 2 · · …
//! ```
//!
//! The latencies of a window lie in a few of the 59 groups. The memory of all is reserved at once,
//! but neither zeroed nor touched before a value falls into a group: a run of moments, of which
//! labs have thousands, would spend most of its time on zeroing 7 MiB.

use std::ops::RangeInclusive;

use crate::Histogram;
use crate::histogram::GROUP_BUCKETS;

/// Histograms of a fixed number of slots.
#[derive(Debug)]
pub(crate) struct SlotCounts {
    /// Place of each slot's groups in `counts`, in groups; 0 for one without values.
    places: Box<[u16]>,
    /// Counts, in groups; the first one is not used. Its capacity is that of all groups.
    counts: Vec<u64>,
}

impl SlotCounts {
    /// Reserves the memory of all slots.
    pub(crate) fn new(slots: usize) -> Self {
        let groups = slots * GROUPS;
        assert!(groups < usize::from(u16::MAX), "a place has 16 bits");
        let mut counts = Vec::with_capacity((groups + 1) * GROUP_BUCKETS);
        counts.resize(GROUP_BUCKETS, 0);
        Self {
            places: vec![0; groups].into_boxed_slice(),
            counts,
        }
    }

    /// Adds the values since `before`, a previous state of `now`, to a slot, and brings `before` up
    /// to date. All of them lie within the bounds.
    pub(crate) fn take_difference(
        &mut self,
        slot: usize,
        now: &Histogram,
        before: &mut Histogram,
        bounds: (u64, u64),
    ) {
        for group in groups(bounds) {
            let (now, before) = (now.group(group), before.group_mut(group));
            if now == &*before {
                continue;
            }
            for ((count, before), &now) in
                self.group_mut(slot, group).iter_mut().zip(before).zip(now)
            {
                *count += now - *before;
                *before = now;
            }
        }
    }

    /// Adds the values of a slot, which lie within the bounds, to another one, and empties it.
    pub(crate) fn move_slot(&mut self, from: usize, to: usize, bounds: (u64, u64)) {
        for group in groups(bounds) {
            let (source, target) = (from * GROUPS + group, to * GROUPS + group);
            if self.places[source] == 0 {
                continue;
            }
            if self.places[target] == 0 {
                self.places.swap(source, target);
                continue;
            }
            let (source, target) = (start(self.places[source]), start(self.places[target]));
            for bucket in 0..GROUP_BUCKETS {
                let moved = std::mem::take(&mut self.counts[source + bucket]);
                self.counts[target + bucket] += moved;
            }
        }
    }

    /// Returns index and count of the non-empty buckets of a slot, whose values lie within the
    /// bounds.
    pub(crate) fn bins(&self, slot: usize, bounds: (u64, u64)) -> Vec<(usize, u64)> {
        let mut bins = Vec::new();
        for group in groups(bounds) {
            let counts = &self.counts[start(self.places[slot * GROUPS + group])..][..GROUP_BUCKETS];
            let indices = group * GROUP_BUCKETS..;
            bins.extend(
                indices
                    .zip(counts.iter().copied())
                    .filter(|&(_, count)| count > 0),
            );
        }
        bins
    }

    /// Returns the counts of a slot's group, which it takes if it has none.
    fn group_mut(&mut self, slot: usize, group: usize) -> &mut [u64] {
        let place = &mut self.places[slot * GROUPS + group];
        if *place == 0 {
            let end = self.counts.len();
            // Fits, because there are no more groups than `new` has asked for.
            *place = u16::try_from(end / GROUP_BUCKETS).unwrap_or(0);
            // Within the capacity: nothing is allocated.
            self.counts.resize(end + GROUP_BUCKETS, 0);
        }
        let start = start(*place);
        &mut self.counts[start..start + GROUP_BUCKETS]
    }
}

/// Returns the groups from that of the smallest to that of the largest value.
fn groups((min, max): (u64, u64)) -> RangeInclusive<usize> {
    Histogram::index_of(min) / GROUP_BUCKETS..=Histogram::index_of(max) / GROUP_BUCKETS
}

/// Returns the first count of a place.
fn start(place: u16) -> usize {
    usize::from(place) * GROUP_BUCKETS
}

/// Groups of a histogram.
const GROUPS: usize = Histogram::BUCKETS / GROUP_BUCKETS;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_groups_of_all_slots_fit_into_the_memory_reserved() {
        let mut counts = SlotCounts::new(3);
        let capacity = counts.counts.capacity();
        let (mut now, mut before) = (Histogram::new(), Histogram::new());
        for slot in [2, 0, 1] {
            for index in 0..Histogram::BUCKETS {
                now.record(Histogram::lower_bound(index));
            }
            counts.take_difference(slot, &now, &mut before, (0, u64::MAX));
        }
        for (from, to) in [(0, 1), (2, 1), (1, 0)] {
            counts.move_slot(from, to, (0, u64::MAX));
        }
        let all: Vec<_> = (0..Histogram::BUCKETS).map(|index| (index, 3)).collect();
        assert_eq!(counts.bins(0, (0, u64::MAX)), all);
        assert_eq!(counts.bins(1, (0, u64::MAX)), []);
        counts.take_difference(2, &Histogram::new(), &mut Histogram::new(), (0, u64::MAX));
        assert_eq!(counts.counts.capacity(), capacity);
    }
}

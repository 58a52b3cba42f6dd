//! Completions that a layer holds back until their time.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use fathom_core::{Finished, Tick};

/// Completions ordered by time, and by a given key among those of the same time.
#[derive(Debug, Default)]
pub(crate) struct HeldBack {
    heap: BinaryHeap<HeldCompletion>,
}

#[derive(Debug)]
struct HeldCompletion {
    order: u64,
    finished: Finished,
}

impl HeldBack {
    /// Holds a completion back until its time.
    pub(crate) fn push(&mut self, order: u64, finished: Finished) {
        self.heap.push(HeldCompletion { order, finished });
    }

    /// Returns the time of the earliest one.
    pub(crate) fn next(&self) -> Option<Tick> {
        self.heap.peek().map(|held| held.finished.at)
    }

    /// Removes and returns the earliest one, if its time has come.
    pub(crate) fn pop(&mut self, now: Tick) -> Option<Finished> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|held| held.finished)
    }
}

impl HeldCompletion {
    const fn key(&self) -> (Tick, u64) {
        (self.finished.at, self.order)
    }
}

impl Ord for HeldCompletion {
    /// Compares in reverse: the heap returns the greatest, which must be the earliest.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl PartialOrd for HeldCompletion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for HeldCompletion {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for HeldCompletion {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_leave_by_time_and_then_by_order() {
        let mut held = HeldBack::default();
        for (tag, order, at) in [(1, 5, 20), (2, 4, 20), (3, 9, 10)] {
            held.push(order, Finished::new(tag, Tick::new(at), 0));
        }
        assert_eq!(held.next(), Some(Tick::new(10)));
        assert_eq!(held.pop(Tick::new(9)), None);
        let mut tags = || held.pop(Tick::new(20)).map(|finished| finished.tag);
        assert_eq!(
            [tags(), tags(), tags(), tags()],
            [Some(3), Some(2), Some(1), None]
        );
    }
}

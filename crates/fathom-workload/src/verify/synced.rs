//! Blocks of a file whose latest write a completed sync covers (`verify_policy=fsynced`).
//!
//! ```text
//!  write ends: its blocks get the number of the next sync ──┐
//!  sync begins: takes that number                           ├─► covered: number of the block
//!  sync ends:   all numbers up to its own are covered ──────┘   ≤ the largest that has ended
//! ```
//!
//! A write that ends while a sync is in flight waits for the next one: the sync may have begun
//! before its data were there. Lists of the writes since a sync were rejected: a job that never
//! syncs would fill the memory with them.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use fathom_core::NoMemory;

use super::entries::{Entries, zeroed};

/// Number of a sync in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncNumber(u32);

/// Numbers of syncs: those that have begun, the largest that has ended, and for each block the
/// first that covers its latest write; 0 for a block that needs none.
#[derive(Debug, Default)]
pub(super) struct SyncedBlocks(OnceLock<Entries>);

impl SyncedBlocks {
    /// Words in front of those of the blocks.
    pub(super) const HEAD: u64 = 2;
    /// Their bytes.
    pub(super) const HEAD_BYTES: usize = 8;

    /// Keeps the numbers in this memory, which has the head and a word per block, all 0.
    pub(super) fn kept_in(memory: Entries) -> Self {
        Self(OnceLock::from(memory))
    }

    pub(super) fn reserve(&self, blocks: u64) -> Result<(), NoMemory> {
        if self.0.get().is_none() {
            // Two workers may come here together: one of them is dropped unused.
            let _ = self
                .0
                .set(Entries::Own(zeroed(blocks.saturating_add(Self::HEAD))?));
        }
        Ok(())
    }

    /// Notes that a write of these blocks has ended, before their entries say so.
    pub(super) fn written(&self, blocks: Range<usize>) {
        let Some((begun, _, numbers)) = self.parts() else {
            return;
        };
        let next = begun.load(Ordering::Acquire).saturating_add(1);
        for number in numbers.get(blocks).unwrap_or_default() {
            number.store(next, Ordering::Relaxed);
        }
        // A process that is killed here leaves numbers ahead of the entries, never behind them.
        fence(Ordering::Release);
    }

    /// Notes that the latest write of these blocks needs no sync.
    pub(super) fn cover(&self, blocks: Range<usize>) {
        if let Some((_, _, numbers)) = self.parts() {
            let numbers = numbers.get(blocks).unwrap_or_default();
            numbers
                .iter()
                .for_each(|number| number.store(0, Ordering::Release));
        }
    }

    /// Begins a sync; `None` if there have been too many to count.
    pub(super) fn begin(&self) -> Option<SyncNumber> {
        let next = |begun: u32| Some(begun + 1).filter(|next| *next < u32::MAX);
        let begun = self.parts()?.0;
        // AcqRel: pairs with the load of `written`.
        let before = begun.fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
        before.ok().and_then(next).map(SyncNumber)
    }

    /// Notes that a sync has ended without an error.
    pub(super) fn end(&self, sync: SyncNumber) {
        if let Some((_, ended, _)) = self.parts() {
            ended.fetch_max(sync.0, Ordering::AcqRel);
        }
    }

    /// Returns whether a sync covers the latest write of a block, or there was none.
    pub(super) fn covers(&self, block: usize) -> bool {
        let Some((_, ended, numbers)) = self.parts() else {
            return false;
        };
        let number = numbers
            .get(block)
            .map(|number| number.load(Ordering::Acquire));
        number.is_some_and(|number| number <= ended.load(Ordering::Acquire))
    }

    /// Forgets all writes.
    pub(super) fn clear(&self) {
        let numbers = self.parts().into_iter().flat_map(|(_, _, numbers)| numbers);
        numbers.for_each(|number| number.store(0, Ordering::Release));
    }

    fn parts(&self) -> Option<(&AtomicU32, &AtomicU32, &[AtomicU32])> {
        match self.0.get()?.words() {
            [begun, ended, numbers @ ..] => Some((begun, ended, numbers)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks() -> SyncedBlocks {
        let blocks = SyncedBlocks::default();
        blocks.reserve(4).unwrap();
        blocks
    }

    #[test]
    fn a_sync_covers_the_writes_that_ended_before_it_began() {
        let blocks = blocks();
        blocks.written(0..1);
        let first = blocks.begin().unwrap();
        blocks.written(1..2);
        assert_eq!(
            [0, 1, 2].map(|block| blocks.covers(block)),
            [false, false, true]
        );
        blocks.end(first);
        assert_eq!([0, 1].map(|block| blocks.covers(block)), [true, false]);
        // Written again, the block waits for the next sync.
        blocks.written(0..1);
        let (second, third) = (blocks.begin().unwrap(), blocks.begin().unwrap());
        blocks.end(third);
        assert!(blocks.covers(0) && blocks.covers(1));
        blocks.end(second);
        assert!(blocks.covers(0));
    }

    #[test]
    fn a_sync_that_fails_or_has_not_ended_covers_nothing() {
        let blocks = blocks();
        blocks.written(0..4);
        let _lost = blocks.begin().unwrap();
        assert!(!blocks.covers(0));
        assert!(!blocks.covers(4), "there is no such block");
        blocks.clear();
        assert!(blocks.covers(0));
    }

    #[test]
    fn syncs_are_counted_up_to_the_largest_number() {
        let words = [u32::MAX - 2, 0, 0].map(AtomicU32::new);
        let blocks = SyncedBlocks::kept_in(Entries::Own(Box::new(words)));
        let last = blocks.begin().unwrap();
        assert_eq!(blocks.begin(), None);
        blocks.end(last);
        blocks.written(0..1);
        assert!(!blocks.covers(0), "no later sync is counted");
    }
}

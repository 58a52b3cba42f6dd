//! Blocks with writes in flight together, of which either may be the last.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use super::entries::{State, UNKNOWN, UNTRACKED, generation, state, word};
use super::generation::Generation;

/// Blocks of a map that overlapping writes contend for, or contended for without a winner.
///
/// Of the completed writes of a block, one that had completed before another began is out: the
/// later one is in its place. The rest are candidates, each of which the block may hold.
///
/// ```text
/// time ───────────────────►
/// 1  [=======]                  1 is out: 3 began after its end
/// 2       [===========]         candidates: 2 and 3
/// 3            [==========]
/// ```
///
/// Blocks without a winner stay here until they are written again, at most [`UNDECIDED_MAX`] of
/// them; the others become unknown.
#[derive(Debug, Default)]
pub(super) struct ContendedBlocks {
    blocks: HashMap<usize, ContendedBlock>,
    /// Number of changes, so that no two entries of a contended block are alike.
    version: u32,
}

#[derive(Debug, Default)]
struct ContendedBlock {
    /// Begins and ends so far.
    clock: u64,
    writes: Vec<OverlappingWrite>,
}

#[derive(Clone, Copy, Debug)]
struct OverlappingWrite {
    generation: Generation,
    began: u64,
    /// `None` while it is in flight.
    ended: Option<u64>,
    /// Entry that it leaves.
    settled: u32,
}

impl ContendedBlocks {
    /// Begins a write of a block that seemed to have another one in flight.
    pub(super) fn begin(&mut self, index: usize, entry: &AtomicU32, new: Generation) {
        loop {
            // Relaxed, here and below: contended entries change only under the lock, and others
            // are exchanged or read again.
            let old = entry.load(Ordering::Relaxed);
            let in_flight = word(State::InFlight, new);
            let next = match state(old) {
                State::InFlight => {
                    let mut block = ContendedBlock::default();
                    block.begin(generation(old));
                    block.begin(new);
                    self.blocks.insert(index, block);
                    self.next_version()
                }
                State::Contended => match self.blocks.get_mut(&index) {
                    Some(block) if block.is_in_flight() => {
                        block.begin(new);
                        self.next_version()
                    }
                    _ => {
                        self.blocks.remove(&index);
                        in_flight
                    }
                },
                _ => in_flight,
            };
            // Release: pairs with the acquire of `observe`.
            let exchanged = entry.compare_exchange(old, next, Ordering::Release, Ordering::Relaxed);
            if exchanged.is_ok() {
                return;
            }
            // The write in flight has just ended: its record would stay for ever.
            self.blocks.remove(&index);
        }
    }

    /// Ends a write of a contended block.
    pub(super) fn end(&mut self, index: usize, entry: &AtomicU32, of: Generation, settled: u32) {
        let full = self.blocks.len() > UNDECIDED_MAX;
        let Some(block) = self.blocks.get_mut(&index) else {
            // The map was cleared while the write was in flight.
            return;
        };
        // Beside another write, data without a stamp cannot be distinguished from damage.
        block.end(
            of,
            if settled == UNTRACKED {
                UNKNOWN
            } else {
                settled
            },
        );
        let next = match block.outcome() {
            Outcome::Undecided if !full || block.is_in_flight() => self.next_version(),
            outcome => {
                self.blocks.remove(&index);
                match outcome {
                    Outcome::Decided(settled) => settled,
                    Outcome::Undecided => UNKNOWN,
                }
            }
        };
        entry.store(next, Ordering::Release);
    }

    /// Forgets all blocks.
    pub(super) fn clear(&mut self) {
        self.blocks.clear();
    }

    /// Returns the candidates of a stamped block that these entries hold; `None` while a write is
    /// in flight, or if the entries have not the same ones.
    pub(super) fn candidates(&self, mut entries: Range<usize>) -> Option<Vec<Generation>> {
        let first = self.stamped(entries.next()?, State::First)?;
        let mut rest = entries.map(|index| self.stamped(index, State::Rest));
        rest.all(|those| those.as_ref() == Some(&first))
            .then_some(first)
    }

    /// Returns whether this write is a candidate for a block, or in flight.
    pub(super) fn may_hold(&self, index: usize, of: Generation) -> bool {
        let block = self.blocks.get(&index);
        block.is_some_and(|block| block.writes.iter().any(|write| write.generation == of))
    }

    /// Returns the candidates for a block, all of which must leave this state; `None` while a write
    /// is in flight.
    fn stamped(&self, index: usize, left: State) -> Option<Vec<Generation>> {
        let block = self.blocks.get(&index)?;
        let mut candidates = Vec::with_capacity(block.writes.len());
        for write in &block.writes {
            write.ended.filter(|_| state(write.settled) == left)?;
            candidates.push(write.generation);
        }
        candidates.sort_unstable_by_key(|generation| generation.get());
        Some(candidates)
    }

    /// Returns an entry that differs from all earlier ones.
    fn next_version(&mut self) -> u32 {
        self.version = self.version.wrapping_add(1);
        word(State::Contended, generation(self.version))
    }
}

impl ContendedBlock {
    fn begin(&mut self, generation: Generation) {
        let began = self.tick();
        self.writes.push(OverlappingWrite {
            generation,
            began,
            ended: None,
            settled: UNKNOWN,
        });
    }

    fn end(&mut self, of: Generation, settled: u32) {
        let ended = self.tick();
        let mut writes = self.writes.iter_mut();
        let Some(write) = writes.find(|write| write.generation == of && write.ended.is_none())
        else {
            return;
        };
        write.ended = Some(ended);
        write.settled = settled;
        let began = write.began;
        if settled == UNKNOWN {
            // Of the failed ones the last is enough.
            self.writes.retain(|write| {
                write.settled != UNKNOWN || write.ended.is_none_or(|then| then == ended)
            });
        } else {
            self.writes
                .retain(|write| write.ended.is_none_or(|then| then > began));
        }
    }

    /// Returns the entry of the block once nothing is in flight, if there is only one possible.
    fn outcome(&self) -> Outcome {
        if self.is_in_flight() {
            return Outcome::Undecided;
        }
        match &self.writes[..] {
            [write] => Outcome::Decided(write.settled),
            writes if writes.iter().any(|write| write.settled == UNKNOWN) => {
                Outcome::Decided(UNKNOWN)
            }
            _ => Outcome::Undecided,
        }
    }

    fn is_in_flight(&self) -> bool {
        self.writes.iter().any(|write| write.ended.is_none())
    }

    const fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }
}

enum Outcome {
    /// The block has this entry.
    Decided(u32),
    /// Writes are in flight, or several candidates are left.
    Undecided,
}

/// Blocks without a winner that are kept, about 100 MiB of them; a guess at more than any run
/// leaves behind.
const UNDECIDED_MAX: usize = 1 << 20;

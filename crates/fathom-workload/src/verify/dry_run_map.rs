//! Map of the content that the writes of a dry run would have left in a file.

use std::ops::Range;

use fathom_core::NoMemory;

use super::map_layout::MapLayout;

/// Content that the writes of a dry run would have left in each block of a file.
///
/// It knows less than a [`GenerationMap`](super::GenerationMap): not when a block was written, and
/// not which of the ops of a pass was the last, where they are not ordered. An op may be in flight
/// while any number of later ones begin and end, so those that overlap in part leave blocks of
/// which nothing is known.
///
/// # What this costs
/// [`BYTES_PER_BLOCK`](Self::BYTES_PER_BLOCK) bytes per block, reserved at the start.
#[derive(Debug)]
pub(crate) struct DryRunMap {
    layout: MapLayout,
    /// Bytes from the start of a write after which its content starts over.
    period: u32,
    /// Ops that overlap are done in the order in which they are drawn.
    ordered: bool,
    /// Pass of the change noted last, and the number of its first change.
    pass: (u16, u32),
    entries: Vec<Entry>,
}

/// Write or trim of a dry run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DryRunChange {
    pub(crate) offset: u64,
    pub(crate) length: u32,
    /// Number of the change, from 1; after 2³² of them, a block may be read twice.
    pub(crate) number: u32,
    /// Number of the pass; what an earlier one left is replaced for certain.
    pub(crate) pass: u16,
    /// It leaves stamped blocks, not zeros.
    pub(crate) stamps: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// Number of the change drawn last; 0 for none.
    number: u32,
    /// Position in the period, from 1; 0 for a content that is not known.
    position: u32,
}

impl DryRunMap {
    /// Bytes that an entry takes.
    pub(crate) const BYTES_PER_BLOCK: u64 = size_of::<Entry>() as u64;

    /// Creates the map of a file to which nothing was written.
    ///
    /// # Errors
    /// Not enough memory.
    pub(crate) fn new(layout: MapLayout, period: u32, ordered: bool) -> Result<Self, NoMemory> {
        let blocks = layout.blocks();
        let bytes = blocks.saturating_mul(Self::BYTES_PER_BLOCK);
        let mut entries = Vec::new();
        let count = usize::try_from(blocks).map_err(|_| NoMemory { bytes })?;
        let reserved = entries.try_reserve_exact(count);
        reserved.map_err(|_| NoMemory { bytes })?;
        entries.resize(count, Entry::default());
        Ok(Self {
            layout,
            period,
            ordered,
            pass: (0, 1),
            entries,
        })
    }

    /// Notes a change.
    pub(crate) fn note(&mut self, change: &DryRunChange) {
        if change.pass != self.pass.0 {
            self.pass = (change.pass, change.number);
        }
        let (touched, block) = (self.touched(change.offset, change.length), self.block());
        let end = change.offset + u64::from(change.length);
        let starts = self.starts(&touched);
        for (index, at) in touched.zip(starts) {
            let position = match change.stamps && at + block <= end {
                true => self.position(change.offset, at),
                false => 0,
            };
            let may_be_last = !self.ordered && self.is_of_pass(&self.entries[index], change.number);
            let entry = &mut self.entries[index];
            let position = match may_be_last && entry.position != position {
                true => 0,
                false => position,
            };
            *entry = Entry {
                number: change.number,
                position,
            };
        }
    }

    /// Returns whether a block was changed in the pass of change `number`, the last one. So counts
    /// one that was changed 2³² changes before.
    const fn is_of_pass(&self, entry: &Entry, number: u32) -> bool {
        let (_, first) = self.pass;
        entry.number != 0 && number.wrapping_sub(entry.number) <= number.wrapping_sub(first)
    }

    /// Returns whether a block is that of this change, the last one drawn that touches it.
    pub(crate) fn holds(&self, number: u64, offset: u64, length: u32) -> bool {
        let mut touched = self.entries[self.touched(offset, length)].iter();
        let is_held = |entry: &Entry| u64::from(entry.number) == number && entry.position > 0;
        touched.len() > 0 && touched.all(is_held)
    }

    /// Returns whether a block of a write that began at `start` certainly holds its content, be it
    /// written by that write or by another one that left the same.
    pub(crate) fn has(&self, start: u64, offset: u64, length: u32) -> bool {
        let touched = self.touched(offset, length);
        let starts = self.starts(&touched);
        let is_whole = self.layout.is_whole(offset, length) && !touched.is_empty();
        let is_there = |(entry, at): (&Entry, u64)| {
            entry.position > 0 && entry.position == self.position(start, at)
        };
        is_whole && self.entries[touched].iter().zip(starts).all(is_there)
    }

    /// Forgets all changes: the file would have been recreated.
    pub(crate) fn clear(&mut self) {
        self.entries.fill(Entry::default());
    }

    /// Returns the position of the block `at` in a write that began at `start`; 0 if it is not one
    /// of its blocks.
    fn position(&self, start: u64, at: u64) -> u32 {
        let Some(within) = at.checked_sub(start) else {
            return 0;
        };
        let within = within % u64::from(self.period);
        match within.is_multiple_of(self.block()) {
            // Cannot be cut: the period has 32 bits, and so one more than its last position.
            true => u32::try_from(within / self.block() + 1).unwrap_or(0),
            false => 0,
        }
    }

    /// Returns the offsets of these blocks.
    fn starts(&self, blocks: &Range<usize>) -> impl Iterator<Item = u64> + use<> {
        let first = self.layout.start + blocks.start as u64 * self.block();
        (first..).step_by(self.layout.block_bytes as usize)
    }

    fn touched(&self, offset: u64, length: u32) -> Range<usize> {
        self.layout.touched(self.entries.len(), offset, length)
    }

    fn block(&self) -> u64 {
        self.layout.block_bytes.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Notes writes, each of a pass, an offset and a length, in a map of 512-byte entries; and
    /// checks of which of them the block of 1 KiB at `offset` is there.
    #[track_caller]
    fn check(ordered: bool, writes: &[(u16, u64, u32)], offset: u64, want: &[u64]) {
        let layout = MapLayout {
            start: 0,
            end: 16 << 10,
            block_bytes: 512,
            interval: 1024,
        };
        let mut map = DryRunMap::new(layout, 1024, ordered).unwrap();
        for (number, &(pass, offset, length)) in (1..).zip(writes) {
            map.note(&DryRunChange {
                offset,
                length,
                number,
                pass,
                stamps: length > 512,
            });
        }
        let there = (1_u64..).zip(writes).filter(|(_, (_, start, length))| {
            let covers = *start <= offset && offset + 1024 <= start + u64::from(*length);
            covers && map.has(*start, offset, 1024)
        });
        let there: Vec<u64> = there.map(|(number, _)| number).collect();
        assert_eq!(there, want, "{ordered} {writes:?}");
        let mut held = (1..=writes.len() as u64).filter(|n| map.holds(*n, offset, 1024));
        assert_eq!(
            held.next_back(),
            want.last().copied(),
            "{ordered} {writes:?}"
        );
    }

    #[test]
    fn blocks_that_are_alike_are_there_in_any_order() {
        for ordered in [false, true] {
            check(ordered, &[], 0, &[]);
            check(ordered, &[(1, 0, 4096)], 1024, &[1]);
            check(ordered, &[(1, 0, 4096), (1, 1024, 1024)], 1024, &[1, 2]);
        }
    }

    #[test]
    fn of_blocks_that_overlap_in_part_the_last_is_there_if_it_is_known() {
        check(true, &[(1, 512, 1024), (1, 0, 1024)], 0, &[2]);
        check(true, &[(1, 0, 1024), (1, 512, 1024)], 0, &[]);
        check(false, &[(1, 512, 1024), (1, 0, 1024)], 0, &[]);
        // What a third one leaves is not known either.
        let three = [(1, 512, 1024), (1, 0, 1024), (1, 0, 1024)];
        check(false, &three, 0, &[]);
        check(false, &[(1, 512, 1024), (2, 0, 1024)], 0, &[2]);
    }

    #[test]
    fn ops_of_any_number_of_blocks_are_there() {
        let length = 64 << 20;
        let layout = MapLayout {
            start: 0,
            end: 2 * u64::from(length),
            block_bytes: 512,
            interval: 1024,
        };
        let mut map = DryRunMap::new(layout, length, false).unwrap();
        for (number, offset) in [(1, 0), (2, u64::from(length))] {
            map.note(&DryRunChange {
                offset,
                length,
                number,
                pass: 0,
                stamps: true,
            });
            assert!(map.holds(number.into(), offset, length));
            assert!(map.has(offset, offset, length));
        }
        assert!(!map.has(512, 512, length), "shifted");
    }

    #[test]
    fn trims_leave_nothing_to_check() {
        check(true, &[(1, 0, 1024), (1, 512, 512)], 0, &[]);
        check(true, &[(1, 512, 512), (1, 0, 1024)], 0, &[2]);
    }
}

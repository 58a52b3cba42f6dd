//! Log of a pass's writes, to be read back in order.

use fathom_core::{FileIndex, NoMemory};

/// Logged write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoggedWrite {
    pub(crate) file: FileIndex,
    pub(crate) offset: u64,
    pub(crate) length: u32,
    /// Number of the write in its job.
    pub(crate) sequence: u64,
}

impl LoggedWrite {
    const fn end(&self) -> u64 {
        self.offset + self.length as u64
    }
}

/// Log of a pass's writes.
///
/// Fill it with [`push`], [`seal`] it once, take the writes with [`next`], and [`clear`] it for
/// the next pass. Nothing is allocated after it was made, if it was made large enough.
///
/// [`push`]: Self::push
/// [`seal`]: Self::seal
/// [`next`]: Self::next
/// [`clear`]: Self::clear
#[derive(Debug)]
pub(crate) struct WrittenLog {
    /// Writes, each with whether its data are still intact.
    entries: Vec<(LoggedWrite, bool)>,
    /// Number of writes at which overwritten ones are dropped.
    capacity: usize,
    /// Index of the next write to read back.
    next: usize,
}

impl WrittenLog {
    /// Creates a log for `capacity` intact writes; it grows beyond that.
    ///
    /// # Errors
    /// Not enough memory.
    pub(crate) fn new(capacity: usize) -> Result<Self, NoMemory> {
        let mut entries = Vec::new();
        let bytes = (capacity as u64).saturating_mul(size_of::<(LoggedWrite, bool)>() as u64);
        entries
            .try_reserve_exact(capacity)
            .map_err(|_| NoMemory { bytes })?;
        Ok(Self {
            entries,
            capacity,
            next: 0,
        })
    }

    /// Adds a write.
    #[inline]
    pub(crate) fn push(&mut self, written: LoggedWrite) {
        if self.entries.len() == self.capacity {
            self.drop_overwritten();
        }
        self.entries.push((written, true));
    }

    /// Ends writing: drops writes overwritten by later ones, even in part, and sorts the rest by
    /// order of writing.
    pub(crate) fn seal(&mut self) {
        self.drop_overwritten();
        self.entries
            .sort_unstable_by_key(|(written, _)| written.sequence);
        self.next = 0;
    }

    /// Returns the next write to read back.
    pub(crate) fn next(&mut self) -> Option<LoggedWrite> {
        let written = self.get(self.next as u64)?;
        self.next += 1;
        Some(written)
    }

    /// Returns the write that `next` returns as number `index`.
    pub(crate) fn get(&self, index: u64) -> Option<LoggedWrite> {
        let (written, _) = self.entries.get(usize::try_from(index).ok()?)?;
        Some(*written)
    }

    /// Returns whether there are writes to read back.
    pub(crate) fn is_empty(&self) -> bool {
        self.next >= self.entries.len()
    }

    /// Forgets the writes of this pass.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.next = 0;
    }

    /// Drops each write that a newer one overlaps.
    ///
    /// ```text
    /// offset ─────────────►       sorted by offset, newest first:
    /// 1: [aaaaaaaa]               1 overlaps 2 and 3, both newer: out
    /// 2:     [bbbb]               2 overlaps 3, newer: out
    /// 3:       [cccc]             3 stays
    /// ```
    #[cold]
    fn drop_overwritten(&mut self) {
        self.entries.sort_unstable_by(|(a, _), (b, _)| {
            let place = |w: &LoggedWrite| (w.file, w.offset);
            place(a).cmp(&place(b)).then(b.sequence.cmp(&a.sequence))
        });
        // Of the writes at one offset the newest stays; an older one matters only for what it
        // overwrote, and so only if it is longer than all newer ones. This bounds the work below.
        let mut place = None;
        let mut longest = 0;
        self.entries.retain_mut(|(written, intact)| {
            let new = place != Some((written.file, written.offset));
            place = Some((written.file, written.offset));
            if !new {
                *intact = false;
            }
            let keep = new || written.length > longest;
            longest = if new {
                written.length
            } else {
                longest.max(written.length)
            };
            keep
        });
        for index in 0..self.entries.len() {
            let (first, rest) = self.entries[index..].split_at_mut(1);
            let (written, intact) = &mut first[0];
            for (other, other_intact) in rest {
                if other.file != written.file || other.offset >= written.end() {
                    break;
                }
                if other.sequence > written.sequence {
                    *intact = false;
                } else {
                    *other_intact = false;
                }
            }
        }
        self.entries.retain(|&(_, intact)| intact);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn log_of(writes: &[LoggedWrite], capacity: usize) -> Vec<LoggedWrite> {
        let mut log = WrittenLog::new(capacity).unwrap();
        writes.iter().for_each(|&written| log.push(written));
        log.seal();
        std::iter::from_fn(|| log.next()).collect()
    }

    fn write(sequence: u64, offset: u64, length: u32) -> LoggedWrite {
        LoggedWrite {
            file: FileIndex::new(0),
            offset,
            length,
            sequence,
        }
    }

    #[test]
    fn readback_follows_issue_order_not_completion_order() {
        let writes = [write(1, 4096, 512), write(0, 0, 512), write(2, 512, 512)];
        assert_eq!(log_of(&writes, 3), [writes[1], writes[0], writes[2]]);
    }

    #[test]
    fn the_log_grows_beyond_its_capacity() {
        let writes = [write(0, 0, 1), write(1, 1, 1), write(2, 2, 1)];
        assert_eq!(log_of(&writes, 2), writes);
    }

    #[test]
    fn overwritten_blocks_make_room() {
        let mut log = WrittenLog::new(4).unwrap();
        let memory = log.entries.capacity();
        for n in 0..1000 {
            log.push(write(n, n % 3 * 512, 512));
        }
        assert_eq!(log.entries.capacity(), memory);
        log.seal();
        let kept: Vec<u64> = std::iter::from_fn(|| log.next())
            .map(|w| w.sequence)
            .collect();
        assert_eq!(kept, [997, 998, 999]);
    }

    #[test]
    fn lack_of_memory_is_an_error() {
        assert!(WrittenLog::new(usize::MAX / 64).is_err());
    }

    proptest! {
        #[test]
        fn a_write_stays_until_a_newer_one_touches_it(
            writes in proptest::collection::vec((0u32..2, 0u64..60, 1u32..12), 0..80),
        ) {
            let writes: Vec<LoggedWrite> = writes
                .into_iter()
                .zip(0..)
                .map(|((file, offset, length), sequence)| {
                    LoggedWrite { file: FileIndex::new(file), ..write(sequence, offset, length) }
                })
                .collect();
            let touches = |a: &LoggedWrite, b: &LoggedWrite| {
                a.file == b.file && a.offset < b.end() && b.offset < a.end()
            };
            let want: Vec<LoggedWrite> = writes
                .iter()
                .filter(|a| !writes.iter().any(|b| b.sequence > a.sequence && touches(a, b)))
                .copied()
                .collect();
            prop_assert_eq!(log_of(&writes, 80), want);
        }
    }
}

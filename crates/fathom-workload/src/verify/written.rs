//! Log of completed writes, to be read back.

use std::collections::VecDeque;

use fathom_core::{FileIndex, NoMemory};

use super::generation::Generation;

/// Logged write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoggedWrite {
    pub(crate) file: FileIndex,
    pub(crate) offset: u64,
    pub(crate) length: u32,
    /// Number of the write in its job.
    pub(crate) sequence: u64,
    pub(crate) generation: Generation,
    /// It was a trim: the blocks are to be zeros.
    pub(crate) trimmed: bool,
}

/// Order in which writes are read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadOrder {
    /// In the order in which they were issued.
    Written,
    /// By file and offset: for jobs that may write a block again.
    Offset,
}

/// Log of completed writes.
///
/// Fill it with [`push`], [`gather`] before a batch of reads or [`sort`] before all are read back,
/// and take the writes with [`next`]. Those of which no block is left are passed over, as the
/// `live` given to it decides. Nothing is allocated after it was made, if it was made large enough.
///
/// # What this costs
/// Batches take their writes from a heap, so that writes left by one cost the next ones a few
/// comparisons, and not a sort of them all. A heap of all writes is slower than a list that is
/// sorted once, because it moves each write several times across the memory of the log.
///
/// [`push`]: Self::push
/// [`gather`]: Self::gather
/// [`sort`]: Self::sort
/// [`next`]: Self::next
#[derive(Debug)]
pub(crate) struct WrittenLog {
    entries: VecDeque<LoggedWrite>,
    /// Number of entries at the front that are a binary heap, the next one first.
    heaped: usize,
    /// All entries are sorted.
    sorted: bool,
    /// Number of writes at which overwritten ones are dropped.
    capacity: usize,
    order: ReadOrder,
}

impl WrittenLog {
    /// Creates a log for `capacity` live writes; it grows beyond that.
    ///
    /// # Errors
    /// Not enough memory.
    pub(crate) fn new(capacity: usize, order: ReadOrder) -> Result<Self, NoMemory> {
        let mut entries = VecDeque::new();
        let bytes = (capacity as u64).saturating_mul(size_of::<LoggedWrite>() as u64);
        entries
            .try_reserve_exact(capacity)
            .map_err(|_| NoMemory { bytes })?;
        Ok(Self {
            entries,
            heaped: 0,
            sorted: false,
            capacity,
            order,
        })
    }

    /// Adds a write.
    #[inline]
    pub(crate) fn push(&mut self, written: LoggedWrite, live: impl FnMut(&LoggedWrite) -> bool) {
        if self.entries.len() == self.capacity {
            self.drop_overwritten(live);
        }
        self.entries.push_back(written);
        self.sorted = false;
    }

    /// Puts all writes into the order in which they are read back.
    pub(crate) fn sort(&mut self) {
        let entries = self.entries.make_contiguous();
        match self.order {
            ReadOrder::Written => entries.sort_unstable_by_key(|written| written.sequence),
            ReadOrder::Offset => {
                entries.sort_unstable_by_key(|w| (w.file, w.offset, w.sequence));
            }
        }
        (self.sorted, self.heaped) = (true, 0);
    }

    /// Lets [`next`](Self::next) take the writes so far, in the order in which they are read back.
    pub(crate) fn gather(&mut self) {
        self.sorted = false;
        while self.heaped < self.entries.len() {
            self.sift_up(self.heaped);
            self.heaped += 1;
        }
    }

    /// Takes the next live write.
    pub(crate) fn next(
        &mut self,
        mut live: impl FnMut(&LoggedWrite) -> bool,
    ) -> Option<LoggedWrite> {
        loop {
            let written = match self.sorted {
                true => self.entries.pop_front()?,
                false => self.pop()?,
            };
            if live(&written) {
                return Some(written);
            }
        }
    }

    /// Puts back a write that was taken but cannot be read yet.
    pub(crate) fn put_back(&mut self, written: LoggedWrite) {
        if self.sorted {
            return self.entries.push_front(written);
        }
        self.entries.push_back(written);
        let last = self.entries.len() - 1;
        self.entries.swap(self.heaped, last);
        self.sift_up(self.heaped);
        self.heaped += 1;
    }

    /// Returns whether there are no writes to read back.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Forgets all writes.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        (self.sorted, self.heaped) = (false, 0);
    }

    /// Takes the first write of the heap.
    fn pop(&mut self) -> Option<LoggedWrite> {
        if self.heaped == 0 {
            self.gather();
        }
        self.heaped = self.heaped.checked_sub(1)?;
        self.entries.swap(0, self.heaped);
        let written = self.entries.swap_remove_back(self.heaped);
        self.sift_down();
        written
    }

    /// Moves the entry at `index` towards the front of the heap before it, which it joins.
    fn sift_up(&mut self, mut index: usize) {
        while index > 0 {
            let parent = (index - 1) / 2;
            if self.key(parent) <= self.key(index) {
                break;
            }
            self.entries.swap(parent, index);
            index = parent;
        }
    }

    /// Moves the first entry of the heap to its place.
    fn sift_down(&mut self) {
        let mut index = 0;
        loop {
            let children = (2 * index + 1)..(2 * index + 3).min(self.heaped);
            let Some(child) = children.min_by_key(|&child| self.key(child)) else {
                break;
            };
            if self.key(index) <= self.key(child) {
                break;
            }
            self.entries.swap(index, child);
            index = child;
        }
    }

    /// Returns the place of an entry in the order of reading.
    fn key(&self, index: usize) -> (u32, u64, u64) {
        let written = &self.entries[index];
        match self.order {
            ReadOrder::Written => (0, 0, written.sequence),
            ReadOrder::Offset => (written.file.get(), written.offset, written.sequence),
        }
    }

    #[cold]
    fn drop_overwritten(&mut self, live: impl FnMut(&LoggedWrite) -> bool) {
        self.entries.retain(live);
        self.heaped = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(sequence: u64, offset: u64) -> LoggedWrite {
        LoggedWrite {
            file: FileIndex::new(0),
            offset,
            length: 512,
            sequence,
            generation: Generation::new(0, sequence, 1),
            trimmed: false,
        }
    }

    #[track_caller]
    fn check(order: ReadOrder, writes: &[LoggedWrite], want: &[u64]) {
        let mut log = WrittenLog::new(2, order).unwrap();
        writes
            .iter()
            .for_each(|&written| log.push(written, |_| true));
        log.sort();
        // Number 9 was overwritten.
        let next = || log.next(|written| written.sequence != 9);
        let read: Vec<u64> = std::iter::from_fn(next).map(|w| w.sequence).collect();
        assert_eq!(read, want);
    }

    #[test]
    fn readback_follows_issue_order_or_offsets_not_completion_order() {
        let writes = [write(1, 512), write(0, 1024), write(9, 0), write(2, 0)];
        check(ReadOrder::Written, &writes, &[0, 1, 2]);
        check(ReadOrder::Offset, &writes, &[2, 1, 0]);
    }

    #[test]
    fn batches_take_the_first_writes_of_all_so_far() {
        for order in [ReadOrder::Written, ReadOrder::Offset] {
            let mut log = WrittenLog::new(64, order).unwrap();
            let mut left: Vec<LoggedWrite> = Vec::new();
            for number in 0..500_u64 {
                let written = write(number ^ 5, number * 7919 % 64);
                log.push(written, |written| written.sequence.is_multiple_of(3));
                if left.len() == 64 {
                    left.retain(|written| written.sequence.is_multiple_of(3));
                }
                left.push(written);
                if !number.is_multiple_of(3) {
                    continue;
                }
                left.sort_by_key(|w| match order {
                    ReadOrder::Written => (0, w.sequence),
                    ReadOrder::Offset => (w.offset, w.sequence),
                });
                log.gather();
                let first = log.next(|_| true);
                assert_eq!(first, Some(left[0]));
                if number.is_multiple_of(2) {
                    log.put_back(left[0]);
                    assert_eq!(log.next(|_| true), first);
                }
                left.remove(0);
            }
            log.sort();
            let rest: Vec<_> = std::iter::from_fn(|| log.next(|_| true)).collect();
            left.sort_by_key(|w| match order {
                ReadOrder::Written => (0, w.sequence),
                ReadOrder::Offset => (w.offset, w.sequence),
            });
            assert_eq!(rest, left);
        }
    }

    #[test]
    fn overwritten_writes_make_room() {
        let mut log = WrittenLog::new(4, ReadOrder::Written).unwrap();
        let memory = log.entries.capacity();
        for n in 0..1000 {
            log.push(write(n, 0), |written| written.sequence + 3 > n);
        }
        assert_eq!(log.entries.capacity(), memory);
    }

    #[test]
    fn lack_of_memory_is_an_error() {
        assert!(WrittenLog::new(usize::MAX / 64, ReadOrder::Written).is_err());
    }
}

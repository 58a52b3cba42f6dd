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
/// Fill it with [`push`], [`sort`] it before reading back, and take the writes with [`next`]. Those
/// of which no block is left are passed over, as the `live` given to it decides. Nothing is
/// allocated after it was made, if it was made large enough.
///
/// [`push`]: Self::push
/// [`sort`]: Self::sort
/// [`next`]: Self::next
#[derive(Debug)]
pub(crate) struct WrittenLog {
    entries: VecDeque<LoggedWrite>,
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
    }

    /// Puts the writes into the order in which they are read back.
    pub(crate) fn sort(&mut self) {
        let entries = self.entries.make_contiguous();
        match self.order {
            ReadOrder::Written => entries.sort_unstable_by_key(|written| written.sequence),
            ReadOrder::Offset => {
                entries.sort_unstable_by_key(|w| (w.file, w.offset, w.sequence));
            }
        }
    }

    /// Takes the next live write.
    pub(crate) fn next(
        &mut self,
        mut live: impl FnMut(&LoggedWrite) -> bool,
    ) -> Option<LoggedWrite> {
        loop {
            let written = self.entries.pop_front()?;
            if live(&written) {
                return Some(written);
            }
        }
    }

    /// Puts back a write that was taken but cannot be read yet.
    pub(crate) fn put_back(&mut self, written: LoggedWrite) {
        self.entries.push_front(written);
    }

    /// Returns whether there are no writes to read back.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Forgets all writes.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }

    #[cold]
    fn drop_overwritten(&mut self, live: impl FnMut(&LoggedWrite) -> bool) {
        self.entries.retain(live);
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

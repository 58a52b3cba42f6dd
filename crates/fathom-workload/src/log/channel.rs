//! Channel between jobs and the log writer: empty chunks one way, full ones the other.

use crossbeam_queue::ArrayQueue;
use fathom_core::Tick;

use super::entry::{Items, LogEntry};

/// Chunk or end of a job's log.
#[derive(Debug)]
pub struct Batch {
    /// Number of the job.
    pub job: u32,
    /// Start of the job's measurement, from which entries count.
    pub started: Tick,
    /// Chunk and the number of its filled entries.
    pub(super) chunk: (Box<[LogEntry]>, usize),
    /// Number of dropped lines, in the job's last batch.
    pub end: Option<Dropped>,
}

impl Batch {
    /// Returns the logged items, in order of completion.
    #[must_use]
    #[inline]
    pub fn items(&self) -> Items<'_> {
        Items::new(&self.chunk.0[..self.chunk.1])
    }
}

/// Lines dropped for lack of an empty chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Number of lines.
    pub lines: u64,
}

/// All chunks of a run: the empty ones and the full ones.
#[derive(Debug)]
pub struct LogChannel {
    /// The few chunks that circulate while the writer keeps up: they stay in the CPU's cache.
    warm: ArrayQueue<Box<[LogEntry]>>,
    /// All other empty chunks.
    empty: ArrayQueue<Box<[LogEntry]>>,
    full: ArrayQueue<Batch>,
    chunk: usize,
}

impl LogChannel {
    /// Reserves (and touches) `chunks` chunks of `chunk` entries, for `jobs` jobs.
    #[must_use]
    pub fn new(chunks: usize, chunk: usize, jobs: usize) -> Self {
        let empty = ArrayQueue::new(chunks.max(1));
        for _ in 0..chunks {
            // Cannot fail: the queue was created for all chunks.
            let _fits = empty.push(made(chunk));
        }
        Self {
            // No more than there are: a run in virtual time has none, and labs have thousands.
            warm: ArrayQueue::new((WARM_ENTRIES / chunk.max(1)).clamp(1, chunks.max(1))),
            empty,
            // At its end a job may have allocated a chunk of its own.
            full: ArrayQueue::new(chunks + jobs.max(1)),
            chunk,
        }
    }

    /// Takes the oldest batch.
    #[must_use]
    pub fn take(&self) -> Option<Batch> {
        self.full.pop()
    }

    /// Returns the number of batches to take.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.full.len()
    }

    /// Returns the number of chunks that there are.
    #[must_use]
    pub fn chunks(&self) -> usize {
        self.empty.capacity()
    }

    /// Gives the memory of a batch back to the jobs.
    pub fn give_back(&self, batch: Batch) {
        let (entries, _) = batch.chunk;
        // Others were allocated by a job at its end.
        if entries.len() == self.chunk
            && let Err(entries) = self.warm.push(entries)
        {
            let _one_too_many = self.empty.push(entries);
        }
    }

    /// Returns the number of entries that any chunk holds.
    pub(super) const fn least_chunk(&self) -> usize {
        if self.chunk == 0 {
            usize::MAX
        } else {
            self.chunk
        }
    }

    pub(super) fn empty(&self) -> Option<Box<[LogEntry]>> {
        self.warm.pop().or_else(|| self.empty.pop())
    }

    pub(super) fn send(&self, batch: Batch) {
        let refused = self.full.push(batch).is_err();
        debug_assert!(
            !refused,
            "there is room for every chunk and every job's end"
        );
    }
}

/// Returns a chunk whose memory is allocated, not just reserved.
pub(super) fn made(entries: usize) -> Box<[LogEntry]> {
    // Not zeros: the kernel would not allocate those before the first write.
    vec![LogEntry::TOUCHED; entries].into_boxed_slice()
}

/// Entries of 1 MiB: what 6 million ops per second fill between two polls of the writer.
const WARM_ENTRIES: usize = 64 * 1024;

//! Where chunks change hands: empty ones to the jobs, full ones to the writer.

use crossbeam_queue::ArrayQueue;
use fathom_core::Tick;

use super::entry::{Entry, Items};

/// What a job hands over.
#[derive(Debug)]
pub struct Batch {
    /// The job's number.
    pub job: u32,
    /// When its measuring began; entries count from then.
    pub started: Tick,
    /// A whole chunk, of which so many entries are filled.
    pub(super) chunk: (Box<[Entry]>, usize),
    /// The job's last batch, and how many lines it had to drop.
    pub end: Option<Dropped>,
}

impl Batch {
    /// What was logged, in the order of completion.
    #[must_use]
    #[inline]
    pub fn items(&self) -> Items<'_> {
        Items::new(&self.chunk.0[..self.chunk.1])
    }
}

/// Lines for which there was no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// How many.
    pub lines: u64,
}

/// All chunks of a run: the empty ones and the full ones.
#[derive(Debug)]
pub struct LogChannel {
    /// The few that go round while the writer keeps up: they stay in the processor's cache.
    warm: ArrayQueue<Box<[Entry]>>,
    /// All others.
    empty: ArrayQueue<Box<[Entry]>>,
    full: ArrayQueue<Batch>,
    chunk: usize,
}

impl LogChannel {
    /// Reserves (and touches) `chunks` chunks of `chunk` entries, for so many jobs.
    #[must_use]
    pub fn new(chunks: usize, chunk: usize, jobs: usize) -> Self {
        let empty = ArrayQueue::new(chunks.max(1));
        for _ in 0..chunks {
            // Cannot be refused: it was made for so many.
            let _fits = empty.push(made(chunk));
        }
        Self {
            warm: ArrayQueue::new((WARM_ENTRIES / chunk.max(1)).max(1)),
            empty,
            // When a job ends, what it holds may have grown into a chunk of its own making.
            full: ArrayQueue::new(chunks + jobs.max(1)),
            chunk,
        }
    }

    /// The batch that was handed over first.
    #[must_use]
    pub fn take(&self) -> Option<Batch> {
        self.full.pop()
    }

    /// Gives a batch's memory back to the jobs.
    pub fn give_back(&self, batch: Batch) {
        let (entries, _) = batch.chunk;
        // Others are what a job made when it ended.
        if entries.len() == self.chunk
            && let Err(entries) = self.warm.push(entries)
        {
            let _one_too_many = self.empty.push(entries);
        }
    }

    /// Entries that fit into any chunk.
    pub(super) const fn least_chunk(&self) -> usize {
        if self.chunk == 0 {
            usize::MAX
        } else {
            self.chunk
        }
    }

    pub(super) fn empty(&self) -> Option<Box<[Entry]>> {
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

/// A chunk whose memory is there, and not only promised.
pub(super) fn made(entries: usize) -> Box<[Entry]> {
    // Not zeros: those the kernel would only promise.
    vec![Entry::TOUCHED; entries].into_boxed_slice()
}

/// 1 MiB of entries: what 6 million ops a second fill between two looks of the writer.
const WARM_ENTRIES: usize = 64 * 1024;

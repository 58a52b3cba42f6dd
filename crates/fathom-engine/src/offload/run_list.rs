//! The run list: a ring of slots that one thread fills in batches and several threads empty.
//!
//! ```text
//!  ── taken ──┬── queued ──┬── free ──
//!           head          tail            (free-running counters; index = counter & (entries − 1))
//! ```
//!
//! Only the submitter moves the tail; workers move the head. A slot is on the list at most once and
//! there is an entry for each, so no entry is overwritten before it is taken.

use fathom_core::Slot;

use super::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// Slots that are queued and not yet taken: a single-producer, multi-consumer ring.
///
/// A batch costs its stores, one release store and one fence; taking a batch costs one
/// compare-exchange, however many slots it has. A queue per worker was rejected: an op would wait
/// for a worker that is held up while others are idle, or need stealing on top.
#[derive(Debug)]
pub(crate) struct RunList {
    head: CacheAligned<AtomicU64>,
    tail: CacheAligned<AtomicU64>,
    /// Their number is a power of two.
    entries: Box<[AtomicU32]>,
}

impl RunList {
    /// Creates a list with room for `slots` slots.
    pub(crate) fn new(slots: u32) -> Self {
        let entries = slots.next_power_of_two();
        Self {
            head: CacheAligned(AtomicU64::new(0)),
            tail: CacheAligned(AtomicU64::new(0)),
            entries: (0..entries).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    /// Queues a batch, visible to workers all at once. Only the submitter may call it.
    pub(crate) fn push(&self, batch: &[Slot]) {
        // Relaxed: no other thread moves it.
        let tail = self.tail.0.load(Ordering::Relaxed);
        let mut next = tail;
        for slot in batch {
            // Relaxed: published by the store to the tail.
            self.entry(next).store(slot.get(), Ordering::Relaxed);
            next += 1;
        }
        // Release: pairs with Acquire in `take`, so that a worker sees the entries and the ops'
        // cells.
        self.tail.0.store(next, Ordering::Release);
        // Pairs with the fences in `ParkedWorkers::sleep`: the submitter looks for parked workers
        // after this, as a worker checks the list after it has announced that it parks.
        fence(Ordering::SeqCst);
    }

    /// Returns the number of queued slots, valid for a moment only.
    pub(crate) fn len(&self) -> u64 {
        // Acquire: pairs with Release in `push`.
        let tail = self.tail.0.load(Ordering::Acquire);
        tail.saturating_sub(self.head.0.load(Ordering::Acquire))
    }

    /// Returns the number of slots taken since the start.
    pub(crate) fn taken(&self) -> u64 {
        // Relaxed: no other memory is read through it.
        self.head.0.load(Ordering::Relaxed)
    }

    /// Moves the oldest slots to `to`, as many as `share` grants given the number queued, and
    /// returns the number left.
    pub(crate) fn take(&self, to: &mut Vec<Slot>, share: impl Fn(u64) -> u64) -> u64 {
        let length_before = to.len();
        // Acquire: pairs with Release in the exchange below, so that a newer head is never seen
        // with an older tail.
        let mut head = self.head.0.load(Ordering::Acquire);
        loop {
            // Acquire: pairs with Release in `push`.
            let tail = self.tail.0.load(Ordering::Acquire);
            let queued = tail.saturating_sub(head);
            let count = share(queued).min(queued);
            if count == 0 {
                return queued;
            }
            // Relaxed: if another worker takes them meanwhile, these may be newer slots, but then
            // the exchange below fails.
            to.extend(
                (head..head + count)
                    .map(|number| Slot::new(self.entry(number).load(Ordering::Relaxed))),
            );
            // Release: the entries are read before the submitter may overwrite them.
            let taken = self.head.0.compare_exchange_weak(
                head,
                head + count,
                Ordering::AcqRel,
                Ordering::Acquire,
            );
            match taken {
                Ok(_) => return queued - count,
                Err(seen) => {
                    to.truncate(length_before);
                    head = seen;
                }
            }
        }
    }

    /// Returns the entry of a counter; in range, because their number is a power of two.
    fn entry(&self, number: u64) -> &AtomicU32 {
        #[expect(clippy::cast_possible_truncation, reason = "only the low bits count")]
        let number = number as usize;
        &self.entries[number & (self.entries.len() - 1)]
    }
}

/// Value alone on its cache lines, so that the submitter's writes and the workers' do not share
/// one. 128 bytes: the prefetcher of current x86 fetches lines in pairs.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct CacheAligned<T>(pub(crate) T);

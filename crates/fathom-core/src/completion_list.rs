//! Lock-free list over which many threads return slots to one, linked by slot numbers.
//!
//! ```text
//!         newest ──────────► oldest
//! head ─► 7 ─► 2 ─► 5 ─► NONE             producers push at the head
//!
//! drain: head becomes NONE; the chain is reversed and belongs to the reader
//!
//! ahead ─► 5 ─► 2 ─► 7 ─► NONE            the reader takes from the front, as many as it likes
//! ```
//!
//! A slot is in the list at most once, so one link per slot is all the memory needed. A producer
//! that pushes onto an empty list wakes the reader; others need not. The reader may sleep once
//! [`CompletionList::drain`] returned nothing, provided that an earlier wake-up ends the sleep at
//! once (as with `std::thread::park` and eventfd): either the drain saw the push, or the push saw
//! the list that the drain left empty.

use core::hint::spin_loop;

use crate::Slot;
use crate::sync::atomic::{AtomicU32, Ordering};

/// Slots pushed by any thread and not yet drained.
///
/// A push costs one exchange on a shared line, a drain of any length one exchange. Linking slot
/// numbers instead of pointers needs no `unsafe` and no reclamation.
#[derive(Debug)]
pub struct CompletionList {
    head: OwnLine<AtomicU32>,
    /// Per slot, the slot pushed before it, or the next one once the chain is the reader's;
    /// [`OUTSIDE`] for a slot not in the list.
    links: Box<[AtomicU32]>,
}

/// Right to drain one [`CompletionList`], with the slots taken from it and not yet returned.
#[derive(Debug)]
pub struct CompletionReader {
    ahead: u32,
}

impl CompletionList {
    /// Creates an empty list for slots below `slots`, and its reader.
    ///
    /// # Panics
    /// `slots` is within two of 2³².
    #[must_use]
    pub fn new(slots: u32) -> (Self, CompletionReader) {
        assert!(slots <= OUTSIDE, "two numbers mean no slot");
        let list = Self {
            head: OwnLine(AtomicU32::new(NONE)),
            links: (0..slots).map(|_| AtomicU32::new(OUTSIDE)).collect(),
        };
        (list, CompletionReader { ahead: NONE })
    }

    /// Pushes `slot` and returns whether the list was empty, so that the reader must be woken.
    ///
    /// The slot must not be in the list already.
    ///
    /// # Panics
    /// The list has no such slot. In debug builds also: the slot is in the list already.
    #[must_use = "the reader is woken if this is true"]
    #[inline]
    pub fn push(&self, slot: Slot) -> bool {
        self.expect_outside(slot);
        self.publish(slot, slot)
    }

    /// Pushes several slots, oldest first, with one exchange; returns false if there are none.
    ///
    /// # Panics
    /// As [`push`](Self::push).
    #[must_use = "the reader is woken if this is true"]
    pub fn push_all(&self, slots: &[Slot]) -> bool {
        let [oldest, .., newest] = slots else {
            return slots.first().is_some_and(|&slot| self.push(slot));
        };
        self.expect_outside(*oldest);
        for pair in slots.windows(2) {
            self.expect_outside(pair[1]);
            // Relaxed: published by the exchange.
            self.links[pair[1].index()].store(pair[0].get(), Ordering::Relaxed);
        }
        self.publish(*oldest, *newest)
    }

    /// Prepends a chain and returns whether the list was empty.
    #[inline]
    fn publish(&self, oldest: Slot, newest: Slot) -> bool {
        let link = &self.links[oldest.index()];
        let mut pause = 1;
        // Relaxed: a stale value costs a retry; the exchange below validates it.
        let mut head = self.head.0.load(Ordering::Relaxed);
        loop {
            // Relaxed: published by the exchange.
            link.store(head, Ordering::Relaxed);
            // Release: pairs with Acquire in `take`, so that the reader sees the links and the
            // producer's earlier writes. Later exchanges continue the release sequence. On
            // failure only the number is used.
            let put = self.head.0.compare_exchange_weak(
                head,
                newest.get(),
                Ordering::Release,
                Ordering::Relaxed,
            );
            if put.is_ok() {
                return head == NONE;
            }
            // The winner holds the cache line and will want it again. With a pause each thread
            // writes several times before the line moves: 50 % more pushes with two threads.
            for _ in 0..pause {
                spin_loop();
            }
            pause = (pause * 2).min(PAUSE_SPINS_MAX);
            head = self.head.0.load(Ordering::Relaxed);
        }
    }

    /// Asserts that the slot is not in the list.
    #[inline]
    fn expect_outside(&self, slot: Slot) {
        // Relaxed: a link has one owner at a time, handed over with its slot.
        debug_assert_eq!(
            self.links[slot.index()].load(Ordering::Relaxed),
            OUTSIDE,
            "{slot:?} is pushed twice"
        );
    }

    /// Passes up to `limit` slots to `each`, oldest first, and returns their number.
    ///
    /// Slots pushed by one thread come in its order. `reader` is the one created with this list.
    /// Slots beyond the limit stay with it, so the reader may sleep only after a drain of 0.
    #[inline]
    pub fn drain(
        &self,
        reader: &mut CompletionReader,
        limit: u32,
        mut each: impl FnMut(Slot),
    ) -> u32 {
        let mut drained = 0;
        while drained < limit {
            if reader.ahead == NONE {
                reader.ahead = self.take();
                if reader.ahead == NONE {
                    break;
                }
            }
            let slot = Slot::new(reader.ahead);
            let link = &self.links[slot.index()];
            // Relaxed: the chain is this thread's since `take`.
            reader.ahead = link.load(Ordering::Relaxed);
            link.store(OUTSIDE, Ordering::Relaxed);
            drained += 1;
            each(slot);
        }
        drained
    }

    /// Returns whether nothing was pushed since the last complete drain, without an exchange. A
    /// hint for a spinning reader; only a drain of 0 permits sleeping.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        // Relaxed: a hint.
        self.head.0.load(Ordering::Relaxed) == NONE
    }

    /// Takes the whole chain, reverses it and returns the oldest slot.
    fn take(&self) -> u32 {
        // Acquire: pairs with Release in `push`. An exchange even if the list looks empty: it is
        // ordered with each push, so the next push sees a drain that returned 0.
        let mut at = self.head.0.swap(NONE, Ordering::Acquire);
        let mut behind = NONE;
        while at != NONE {
            // Relaxed: the chain is ours since the exchange.
            let link = &self.links[Slot::new(at).index()];
            let older = link.load(Ordering::Relaxed);
            link.store(behind, Ordering::Relaxed);
            behind = at;
            at = older;
        }
        behind
    }
}

impl CompletionReader {
    /// Returns whether slots are left over from the last drain.
    #[must_use]
    pub const fn has_more(&self) -> bool {
        self.ahead != NONE
    }
}

/// Padded to its own cache lines: producers write the head while the reader reads the links.
#[derive(Debug)]
#[repr(align(128))]
struct OwnLine<T>(T);

/// End of a chain.
const NONE: u32 = u32::MAX;
/// Link of a slot that is in no chain.
const OUTSIDE: u32 = u32::MAX - 1;
/// Spins of a producer after a failed exchange: some hundred nanoseconds.
const PAUSE_SPINS_MAX: u32 = 64;

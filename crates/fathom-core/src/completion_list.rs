//! Where many threads hand slots back to one: a list without a lock, linked by slot numbers.
//!
//! ```text
//!         newest ──────────► oldest
//! head ─► 7 ─► 2 ─► 5 ─► NONE             producers push at the head
//!
//! drain: head becomes NONE, the chain is turned round and belongs to the reader
//!
//! ahead ─► 5 ─► 2 ─► 7 ─► NONE            the reader takes from the front, as many as it likes
//! ```
//!
//! A slot is in the list at most once, so one link for each slot is all the memory there is.
//! Whoever pushes onto an empty list wakes the reader; nobody else needs to. The reader may sleep
//! once [`CompletionList::drain`] gave it nothing, if a wake-up that comes before the sleep ends
//! it at once (as `std::thread::park` and eventfd have it): either the drain saw the push, or the
//! push saw the list that the drain left empty.

use core::hint::spin_loop;

use crate::Slot;
use crate::sync::atomic::{AtomicU32, Ordering};

/// Slots that were pushed by any thread and not yet drained.
#[derive(Debug)]
pub struct CompletionList {
    head: OwnLine<AtomicU32>,
    /// What was pushed before the slot of this index, or what comes after it once it is the
    /// reader's; [`OUTSIDE`] for a slot that is not in the list.
    links: Box<[AtomicU32]>,
}

/// The right to drain one [`CompletionList`]; holds what was taken from it and not yet given out.
#[derive(Debug)]
pub struct CompletionReader {
    ahead: u32,
}

impl CompletionList {
    /// An empty list for slots below `slots`, and the right to drain it.
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

    /// Puts `slot` behind all that were pushed before; whether the list was empty, so that the
    /// reader has to be woken.
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

    /// The same for several slots, oldest first, with one exchange; false if there are none.
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

    /// Puts a chain before the head; whether the list was empty.
    #[inline]
    fn publish(&self, oldest: Slot, newest: Slot) -> bool {
        let link = &self.links[oldest.index()];
        let mut pause = 1;
        // Relaxed: a guess, which the exchange checks.
        let mut head = self.head.0.load(Ordering::Relaxed);
        loop {
            // Relaxed: published by the exchange.
            link.store(head, Ordering::Relaxed);
            // Release: pairs with Acquire in `take`, so the reader sees the links and what the
            // producer did before. Exchanges of later producers prolong it. A failure reads
            // nothing but the number.
            let put = self.head.0.compare_exchange_weak(
                head,
                newest.get(),
                Ordering::Release,
                Ordering::Relaxed,
            );
            if put.is_ok() {
                return head == NONE;
            }
            // Whoever was quicker has the line and will want it again: with a pause each writes
            // several times before the line goes over, which two threads at once measured as half
            // as many adds again.
            for _ in 0..pause {
                spin_loop();
            }
            pause = (pause * 2).min(PAUSE_SPINS_MAX);
            head = self.head.0.load(Ordering::Relaxed);
        }
    }

    /// A slot is on the list once.
    #[inline]
    fn expect_outside(&self, slot: Slot) {
        // Relaxed: a slot's link has one owner, and who pushes it got it from that owner.
        debug_assert_eq!(
            self.links[slot.index()].load(Ordering::Relaxed),
            OUTSIDE,
            "{slot:?} is pushed twice"
        );
    }

    /// Hands up to `limit` slots to `each`, oldest first; how many they were.
    ///
    /// Slots pushed by one thread come in its order. `reader` is the one that was made with this
    /// list. What is beyond the limit stays with it: the reader sleeps only after a drain of 0.
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

    /// Whether nothing was pushed since the last drain that took all, as far as can be seen without
    /// an exchange: to look before the reader sleeps, not to decide that it may.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        // Relaxed: a guess.
        self.head.0.load(Ordering::Relaxed) == NONE
    }

    /// Takes all that was pushed and turns it round; the oldest.
    fn take(&self) -> u32 {
        // Acquire: pairs with Release in `push`. An exchange even if the list looks empty: it comes
        // before or after each push, so a drain that gives 0 is one that the next push sees.
        let mut at = self.head.0.swap(NONE, Ordering::Acquire);
        let mut behind = NONE;
        while at != NONE {
            // Relaxed: ours since the exchange.
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
    /// Whether slots are left over from the last drain.
    #[must_use]
    pub const fn has_more(&self) -> bool {
        self.ahead != NONE
    }
}

/// Alone on its cache lines: producers write the head while the reader looks at the rest.
#[derive(Debug)]
#[repr(align(128))]
struct OwnLine<T>(T);

/// The end of a chain.
const NONE: u32 = u32::MAX;
/// The link of a slot that is in no chain.
const OUTSIDE: u32 = u32::MAX - 1;
/// Of a producer that another was quicker than: turns of a loop, some hundred nanoseconds.
const PAUSE_SPINS_MAX: u32 = 64;

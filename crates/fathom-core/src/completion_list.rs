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
        let link = &self.links[slot.index()];
        // Relaxed: a slot's link has one owner, and who pushes it got it from that owner.
        debug_assert_eq!(
            link.load(Ordering::Relaxed),
            OUTSIDE,
            "{slot:?} is pushed twice"
        );
        // Relaxed: a guess, which the exchange checks.
        let mut newest = self.head.0.load(Ordering::Relaxed);
        loop {
            // Relaxed: published by the exchange.
            link.store(newest, Ordering::Relaxed);
            // Release: pairs with Acquire in `take`, so the reader sees the link and what the
            // producer did before. Exchanges of later producers prolong it. A failure reads
            // nothing but the number.
            let put = self.head.0.compare_exchange_weak(
                newest,
                slot.get(),
                Ordering::Release,
                Ordering::Relaxed,
            );
            match put {
                Ok(_) => return newest == NONE,
                Err(seen) => newest = seen,
            }
        }
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

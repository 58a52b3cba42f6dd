//! The run list: slots that one thread lays down in batches and several take.
//!
//! ```text
//!  ── taken ──┬── to be taken ──┬── free ──
//!           head               tail            (counting on, then & places − 1)
//! ```
//!
//! The submitter alone moves the tail; who takes moves the head. A slot is on the list at most
//! once and there is a place for each, so nothing is overwritten before it is taken.

use fathom_core::Slot;

use super::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// Slots that were laid down and not yet taken.
#[derive(Debug)]
pub(crate) struct RunList {
    head: OwnLine<AtomicU64>,
    tail: OwnLine<AtomicU64>,
    /// A power of two of them.
    places: Box<[AtomicU32]>,
}

impl RunList {
    /// Room for so many slots.
    pub(crate) fn new(slots: u32) -> Self {
        let places = slots.next_power_of_two();
        Self {
            head: OwnLine(AtomicU64::new(0)),
            tail: OwnLine(AtomicU64::new(0)),
            places: (0..places).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    /// Lays a batch down, all at once. The submitter's alone to call.
    pub(crate) fn lay(&self, batch: &[Slot]) {
        // Relaxed: nobody else moves it.
        let tail = self.tail.0.load(Ordering::Relaxed);
        let mut next = tail;
        for slot in batch {
            // Relaxed: published by the tail.
            self.place(next).store(slot.get(), Ordering::Relaxed);
            next += 1;
        }
        // Release: pairs with Acquire in `take`, so that who takes sees the places, and what the
        // submitter wrote of the ops.
        self.tail.0.store(next, Ordering::Release);
        // Pairs with those in `ParkedWorkers::sleep`: the submitter looks for parked workers after
        // this, as a worker looks at the list after it has said that it parks.
        fence(Ordering::SeqCst);
    }

    /// Returns the number of ops that can be taken, valid for a moment only.
    pub(crate) fn len(&self) -> u64 {
        // Acquire: pairs with Release in `lay`.
        let tail = self.tail.0.load(Ordering::Acquire);
        tail.saturating_sub(self.head.0.load(Ordering::Acquire))
    }

    /// Returns the number of ops taken since the start.
    pub(crate) fn taken(&self) -> u64 {
        // Relaxed: a number by itself.
        self.head.0.load(Ordering::Relaxed)
    }

    /// Takes the oldest, as many as `share` allows of those that are there; appends them to `to`.
    /// Takes ops and returns the number left.
    pub(crate) fn take(&self, to: &mut Vec<Slot>, share: impl Fn(u64) -> u64) -> u64 {
        let begin = to.len();
        // Acquire: pairs with Release in the exchange below: the head of a later place is never
        // seen with an older tail.
        let mut head = self.head.0.load(Ordering::Acquire);
        loop {
            // Acquire: pairs with Release in `lay`.
            let tail = self.tail.0.load(Ordering::Acquire);
            let there = tail.saturating_sub(head);
            let count = share(there).min(there);
            if count == 0 {
                return there;
            }
            // Relaxed: if another took them meanwhile the numbers may be newer ones, and the
            // exchange fails.
            to.extend(
                (head..head + count)
                    .map(|number| Slot::new(self.place(number).load(Ordering::Relaxed))),
            );
            // Release: the places were read before the submitter may write to them again.
            let taken = self.head.0.compare_exchange_weak(
                head,
                head + count,
                Ordering::AcqRel,
                Ordering::Acquire,
            );
            match taken {
                Ok(_) => return there - count,
                Err(seen) => {
                    to.truncate(begin);
                    head = seen;
                }
            }
        }
    }

    /// Always one of the places: there is a power of two of them.
    fn place(&self, number: u64) -> &AtomicU32 {
        #[expect(clippy::cast_possible_truncation, reason = "only the low bits count")]
        let number = number as usize;
        &self.places[number & (self.places.len() - 1)]
    }
}

/// Alone on its cache lines: the submitter writes one, those who take the other.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct OwnLine<T>(pub(crate) T);

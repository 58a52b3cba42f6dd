//! Buffers shared by several threads in turn.
//!
//! Each thread has its own handle to the same memory. A slot's buffer belongs to one handle at a
//! time, from its first access until it is released:
//!
//! ```text
//!            take (compare and exchange)
//!   free ───────────────────────────► this handle's
//!        ◄───────────────────────────
//!            release (takes `&mut`, so nothing of the buffer is borrowed)
//! ```

use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use fathom_core::Slot;

use super::{Buffers, Home, MemoryPlacement};

/// Buffers whose handles may be on different threads.
#[derive(Clone, Debug)]
pub struct SharedBuffers(Arc<SharedState>);

#[derive(Debug)]
struct SharedState {
    /// The mapping.
    buffers: Buffers,
    /// Per slot, the handle that holds it, or [`NOBODY`].
    holders: Box<[AtomicU32]>,
    /// Number of handles created so far.
    handles: AtomicU32,
}

// SAFETY: of `buffers` only what never changes is read, and the memory behind it is touched
// through handles alone, of which one at a time has a slot.
unsafe impl Send for SharedState {}
// SAFETY: as above.
unsafe impl Sync for SharedState {}

/// One thread's handle to the buffers.
#[derive(Debug)]
pub(super) struct Handle {
    shared: Arc<SharedState>,
    /// Unique number, other than [`NOBODY`].
    number: u32,
    /// Slots held by this handle, cached so that a thread does not touch the shared line of holders
    /// without need.
    has: Box<[Cell<bool>]>,
}

impl SharedBuffers {
    /// Maps `slots` buffers of `bytes` bytes each, all free.
    ///
    /// # Errors
    /// As [`Buffers::within`].
    ///
    /// # Panics
    /// If there are no slots, or no bytes in them.
    pub fn new(memory: &MemoryPlacement, slots: u32, bytes: u32) -> io::Result<Self> {
        let memory = MemoryPlacement {
            buffers: None,
            ..memory.clone()
        };
        Ok(Self(Arc::new(SharedState {
            buffers: Buffers::within(&memory, slots, bytes)?,
            holders: (0..slots).map(|_| AtomicU32::new(NOBODY)).collect(),
            handles: AtomicU32::new(NOBODY),
        })))
    }

    /// Creates a handle.
    pub(super) fn buffers(&self, slots: u32, bytes: u32) -> Buffers {
        let all = &self.0.buffers;
        assert!(
            slots == all.slots && bytes as usize == all.bytes,
            "buffers of another shape"
        );
        // Relaxed: only uniqueness is needed.
        let number = self.0.handles.fetch_add(1, Ordering::Relaxed) + 1;
        assert!(number != NOBODY, "more handles than numbers");
        Buffers {
            base: all.base,
            stride: all.stride,
            bytes: all.bytes,
            slots: 0,
            home: Home::Shared(Handle {
                shared: Arc::clone(&self.0),
                number,
                has: (0..slots).map(|_| Cell::new(false)).collect(),
            }),
        }
    }
}

impl PartialEq for SharedBuffers {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for SharedBuffers {}

impl Handle {
    pub(super) fn slots(&self) -> u32 {
        self.shared.buffers.slots
    }

    /// Takes the slot; panics if another handle holds it.
    pub(super) fn take(&self, slot: Slot) {
        let (holder, has) = self.of(slot);
        if has.get() {
            return;
        }
        // Acquire: pairs with Release in `release`, to see the other thread's writes.
        let had =
            holder.compare_exchange(NOBODY, self.number, Ordering::Acquire, Ordering::Relaxed);
        assert!(had.is_ok(), "{slot:?} is another thread's");
        has.set(true);
    }

    /// Releases the slot; no effect if this handle does not hold it.
    pub(super) fn release(&self, slot: Slot) {
        let (holder, has) = self.of(slot);
        if has.replace(false) {
            // Release: pairs with Acquire in `take`.
            holder.store(NOBODY, Ordering::Release);
        } else {
            debug_assert_eq!(
                holder.load(Ordering::Relaxed),
                NOBODY,
                "{slot:?} is another thread's"
            );
        }
    }

    fn of(&self, slot: Slot) -> (&AtomicU32, &Cell<bool>) {
        let both = self.shared.holders.get(slot.index());
        both.zip(self.has.get(slot.index()))
            .unwrap_or_else(|| panic!("no slot {}", slot.get()))
    }
}

/// Marker of a free slot.
const NOBODY: u32 = 0;

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Buffers, Buffers) {
        let memory = MemoryPlacement {
            buffers: Some(SharedBuffers::new(&MemoryPlacement::default(), 2, 512).unwrap()),
            ..MemoryPlacement::default()
        };
        let handle = || Buffers::within(&memory, 2, 512).unwrap();
        (handle(), handle())
    }

    #[test]
    fn what_one_wrote_the_next_reads() {
        let (mut one, mut other) = pair();
        assert_eq!((one.slots(), other.slots()), (2, 2));
        one.get(Slot::new(1)).fill(7);
        other.get(Slot::new(0)).fill(1);
        one.release(Slot::new(1));
        assert_eq!(other.get(Slot::new(1)), [7; 512]);
        other.release(Slot::new(1));
        // Releasing twice has no effect.
        other.release(Slot::new(1));
        assert_eq!(one.part(Slot::new(1), 511, 1), [7]);
    }

    #[test]
    #[should_panic(expected = "another thread's")]
    fn a_buffer_is_one_handles_at_a_time() {
        let (mut one, mut other) = pair();
        one.get(Slot::new(0)).fill(7);
        other.get(Slot::new(0)).fill(7);
    }

    #[test]
    #[should_panic(expected = "another thread's")]
    fn nobody_lets_go_of_what_is_not_his() {
        let (mut one, mut other) = pair();
        one.get(Slot::new(0)).fill(7);
        other.release(Slot::new(0));
    }

    #[test]
    #[should_panic(expected = "no slot 2")]
    fn a_slot_past_the_end_is_refused() {
        pair().0.get(Slot::new(2));
    }
}

//! Allocation counter, with which tests prove that a hot path allocates nothing.
//!
//! Only test binaries install `CountingAllocator` as their global allocator.
//!
//! ```
//! use fathom_sys::allocation_counter::{CountingAllocator, thread_allocations};
//!
//! #[global_allocator]
//! static COUNTING: CountingAllocator = CountingAllocator;
//!
//! let before = thread_allocations();
//! let boxed = Box::new(7);
//! assert_eq!(thread_allocations() - before, 1);
//! assert_eq!(*boxed, 7);
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// The system's allocator, with a count of the calls that may allocate.
#[derive(Clone, Copy, Debug, Default)]
pub struct CountingAllocator;

// SAFETY: every call is passed on to the system's allocator as it came, and the counting neither
// allocates nor unwinds: an atomic, and a thread-local cell that needs no initialisation and no
// destructor.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are the callee's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are the callee's.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are the callee's; the block came from `System` too.
        unsafe { System.realloc(block, layout, new_size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are the callee's; the block came from `System` too.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Returns the process's allocations so far; always 0 unless the allocator is installed.
#[must_use]
pub fn allocations() -> u64 {
    // Relaxed: a count that guards no other memory.
    ALL.load(Ordering::Relaxed)
}

/// Returns the calling thread's allocations so far, unaffected by other threads.
#[must_use]
pub fn thread_allocations() -> u64 {
    OWN.get()
}

fn count() {
    // Relaxed: a count that guards no other memory.
    ALL.fetch_add(1, Ordering::Relaxed);
    OWN.set(OWN.get() + 1);
}

static ALL: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static OWN: Cell<u64> = const { Cell::new(0) };
}

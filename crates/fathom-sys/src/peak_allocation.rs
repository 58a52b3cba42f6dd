//! Peak heap usage, for tests of memory limits.
//!
//! ```
//! use fathom_sys::peak_allocation::{HighWater, in_use, peak, reset};
//!
//! #[global_allocator]
//! static MEASURED: HighWater = HighWater;
//!
//! reset();
//! let before = in_use();
//! drop(vec![0_u8; 1 << 20]);
//! assert!(peak() - before >= 1 << 20);
//! assert!(in_use() - before < 1 << 20);
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The system's allocator, with a count of the bytes in use and its maximum.
#[derive(Clone, Copy, Debug, Default)]
pub struct HighWater;

// SAFETY: every call is passed on to the system's allocator as it came, and the counting (two
// atomics) neither allocates nor unwinds.
unsafe impl GlobalAlloc for HighWater {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are the callee's.
        let block = unsafe { System.alloc(layout) };
        taken(block, layout.size());
        block
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are the callee's.
        let block = unsafe { System.alloc_zeroed(layout) };
        taken(block, layout.size());
        block
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller's promises are the callee's; the block came from `System` too.
        let moved = unsafe { System.realloc(block, layout, new_size) };
        if !moved.is_null() {
            taken(moved, new_size);
            given_back(layout.size());
        }
        moved
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are the callee's; the block came from `System` too.
        unsafe { System.dealloc(block, layout) }
        given_back(layout.size());
    }
}

/// Returns the bytes in use; always 0 unless `HighWater` is the global allocator.
#[must_use]
pub fn in_use() -> usize {
    // Relaxed, here and below: counts that guard no other memory.
    IN_USE.load(Ordering::Relaxed)
}

/// Returns the maximum of the bytes in use since the last `reset`.
#[must_use]
pub fn peak() -> usize {
    PEAK.load(Ordering::Relaxed)
}

/// Resets the peak to the bytes in use now.
pub fn reset() {
    PEAK.store(in_use(), Ordering::Relaxed);
}

fn taken(block: *mut u8, bytes: usize) {
    if !block.is_null() {
        let now = IN_USE.fetch_add(bytes, Ordering::Relaxed) + bytes;
        PEAK.fetch_max(now, Ordering::Relaxed);
    }
}

fn given_back(bytes: usize) {
    IN_USE.fetch_sub(bytes, Ordering::Relaxed);
}

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

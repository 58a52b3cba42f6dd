//! Peak heap usage of a thread, for tests of memory limits.
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
use std::cell::Cell;

/// The system's allocator, with each thread's count of the bytes in use and its maximum.
///
/// A block freed by another thread than its owner is subtracted there, so a count can be negative.
/// One count for the process was rejected: tests run side by side, and what one allocates would be
/// charged to the other.
#[derive(Clone, Copy, Debug, Default)]
pub struct HighWater;

// SAFETY: every call is passed on to the system's allocator as it came, and the counting neither
// allocates nor unwinds: two thread-local cells that need no initialisation and no destructor.
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

/// Returns the bytes that the calling thread has in use; always 0 unless `HighWater` is the global
/// allocator.
#[must_use]
pub fn in_use() -> i64 {
    IN_USE.get()
}

/// Returns the maximum of the calling thread's bytes in use since its last `reset`.
#[must_use]
pub fn peak() -> i64 {
    PEAK.get()
}

/// Resets the calling thread's peak to its bytes in use now.
pub fn reset() {
    PEAK.set(IN_USE.get());
}

fn taken(block: *mut u8, bytes: usize) {
    if !block.is_null() {
        let now = IN_USE.get().wrapping_add_unsigned(bytes as u64);
        IN_USE.set(now);
        PEAK.set(PEAK.get().max(now));
    }
}

fn given_back(bytes: usize) {
    IN_USE.set(IN_USE.get().wrapping_sub_unsigned(bytes as u64));
}

thread_local! {
    static IN_USE: Cell<i64> = const { Cell::new(0) };
    static PEAK: Cell<i64> = const { Cell::new(0) };
}

#[cfg(test)]
mod tests {
    use std::alloc::{GlobalAlloc, Layout};

    use super::{HighWater, in_use, peak, reset};

    /// Allocates and frees `bytes` directly from the allocator under test.
    fn allocate(bytes: usize) {
        let layout = Layout::array::<u8>(bytes).expect("a small array");
        // SAFETY: the layout is not empty, and the block is freed with the layout it came from.
        unsafe {
            let block = HighWater.alloc(layout);
            HighWater.dealloc(block, layout);
        }
    }

    #[test]
    fn a_thread_sees_its_own_peak_alone() {
        reset();
        let before = in_use();
        allocate(1 << 16);
        let other = std::thread::spawn(|| {
            allocate(1 << 20);
            peak()
        });
        assert_eq!(other.join().ok(), Some(1 << 20));
        assert_eq!((peak() - before, in_use() - before), (1 << 16, 0));
    }
}

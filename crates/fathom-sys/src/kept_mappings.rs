//! Mappings that could not be released.

use std::ffi::c_void;
use std::io;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

/// Mappings that the kernel did not release, since the start of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptMappings {
    /// Number of them.
    pub count: u32,
    /// Error of the last `munmap(2)` that failed.
    pub errno: i32,
}

impl KeptMappings {
    /// Returns the mappings that were kept so far, if there are any.
    #[must_use]
    pub fn so_far() -> Option<Self> {
        // Relaxed: a program reads this at its end, when the threads that counted are joined.
        let count = KEPT.load(Ordering::Relaxed);
        (count > 0).then(|| Self {
            count,
            errno: KEPT_ERRNO.load(Ordering::Relaxed),
        })
    }
}

/// Releases a mapping, or counts it if `munmap(2)` fails.
///
/// It then stays mapped until the process ends: that costs memory, and harms nothing else. A
/// destructor cannot return an error, and a panic in it would end a run whose results hold.
///
/// # Safety
/// Nothing may use the range afterwards.
pub(crate) unsafe fn unmap(address: *mut c_void, bytes: usize) {
    // SAFETY: as the caller warrants.
    if unsafe { libc::munmap(address, bytes) } == 0 {
        return;
    }
    let errno = io::Error::last_os_error().raw_os_error();
    // Relaxed, both: see `so_far`.
    KEPT_ERRNO.store(errno.unwrap_or(libc::EIO), Ordering::Relaxed);
    KEPT.fetch_add(1, Ordering::Relaxed);
}

static KEPT: AtomicU32 = AtomicU32::new(0);
static KEPT_ERRNO: AtomicI32 = AtomicI32::new(0);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_that_is_kept_is_counted() {
        // SAFETY: no page can begin at this address, so nothing is unmapped.
        unsafe { unmap(std::ptr::without_provenance_mut(1), 4096) };
        let kept = KeptMappings::so_far().expect("one mapping");
        assert_eq!((kept.count, kept.errno), (1, libc::EINVAL));
    }
}

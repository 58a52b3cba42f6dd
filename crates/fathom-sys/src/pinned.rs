//! Locked memory that cannot be paged out (`lockmem`), to leave less for the page cache.

use std::io;
use std::ptr::NonNull;

use crate::kept_mappings;
use crate::memory::{MemoryPlacement, map};

/// Locked memory, released on drop.
#[derive(Debug)]
pub struct Pinned {
    mapping: NonNull<u8>,
    length: usize,
}

// SAFETY: the mapping is owned, and nothing accesses it.
unsafe impl Send for Pinned {}

impl Pinned {
    /// Maps and locks `bytes` bytes, at least one.
    ///
    /// # Errors
    /// The error of `mmap(2)` or `mlock(2)`: ENOMEM or EPERM past `ulimit -l`.
    pub fn new(bytes: u64) -> io::Result<Self> {
        let length = usize::try_from(bytes.max(1))
            .map_err(|_too_large| io::Error::from_raw_os_error(libc::ENOMEM))?;
        let mapping = map(&MemoryPlacement::default(), length)?;
        let pinned = Self { mapping, length };
        // SAFETY: the mapping is ours, and as long as that.
        let failed = unsafe { libc::mlock(mapping.as_ptr().cast(), length) };
        if failed == 0 {
            Ok(pinned)
        } else {
            Err(io::Error::last_os_error())
        }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` with this address and length, and is not used
        // again. It takes its lock along.
        unsafe { kept_mappings::unmap(self.mapping.as_ptr().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locked_kib() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmLck:"));
        let words = line.and_then(|line| line.split_whitespace().next());
        words.and_then(|kib| kib.parse().ok()).unwrap()
    }

    #[test]
    fn memory_is_locked_as_long_as_it_is_held() {
        let before = locked_kib();
        let pinned = match Pinned::new(1 << 20) {
            Ok(pinned) => pinned,
            Err(error) => return println!("skipped: {error}"),
        };
        assert!(locked_kib() >= before + 1024);
        drop(pinned);
        assert!(Pinned::new(u64::MAX).is_err());
    }
}

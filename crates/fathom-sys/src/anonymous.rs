//! Anonymous memory whose pages are touched, to cause page faults.

use std::io;
use std::ptr::NonNull;

use crate::{errno, kept_mappings, system};

/// Private anonymous memory in pages of the smallest size, populated on first touch.
#[derive(Debug)]
pub struct Anonymous {
    base: NonNull<u8>,
    length: usize,
    page: usize,
}

impl Anonymous {
    /// Maps `length` bytes, rounded up to whole pages; at least one.
    ///
    /// # Errors
    /// ENOMEM if the address space or the commit limit is exhausted.
    pub fn new(length: u64) -> io::Result<Self> {
        let too_large = || io::Error::from_raw_os_error(libc::ENOMEM);
        let page = usize::try_from(system::page_size()).map_err(|_| too_large())?;
        let length = usize::try_from(length).map_err(|_| too_large())?;
        let length = length.max(1).checked_next_multiple_of(page);
        let length = length.ok_or_else(too_large)?;
        let (access, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
        );
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), length, access, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or_else(too_large)?;
        let memory = Self { base, length, page };
        // A huge page would take the faults of its 512 pages in one. Kernels without huge pages
        // refuse the advice and need none.
        // SAFETY: the range is the new mapping; the advice changes no content.
        let _refused =
            unsafe { libc::madvise(base.as_ptr().cast(), length, libc::MADV_NOHUGEPAGE) };
        Ok(memory)
    }

    /// Reads or writes a byte of each page that a range touches, and returns the number of pages.
    /// A range is cut at the end of the memory.
    pub fn touch(&mut self, offset: u64, length: u64, write: bool) -> usize {
        let (first, pages) = self.pages(offset, length);
        for page in 0..pages {
            // SAFETY: first + pages × page ≤ length of the mapping.
            let address = unsafe { self.base.as_ptr().add(first + page * self.page) };
            if write {
                // SAFETY: a byte of the mapping, which nothing else owns.
                unsafe { address.write_volatile(1) };
            } else {
                // SAFETY: as above; anonymous memory is initialised: it reads as zeros.
                let _byte = unsafe { address.read_volatile() };
            }
        }
        pages
    }

    /// Gives the pages that a range touches back to the kernel: the next touch faults again.
    ///
    /// # Errors
    /// The error of `madvise(2)`.
    pub fn give_back(&mut self, offset: u64, length: u64) -> io::Result<()> {
        let (first, pages) = self.pages(offset, length);
        // SAFETY: first ≤ length of the mapping.
        let address = unsafe { self.base.as_ptr().add(first) };
        let bytes = pages * self.page;
        // SAFETY: whole pages of the mapping, to which nothing has a reference.
        errno::check(unsafe { libc::madvise(address.cast(), bytes, libc::MADV_DONTNEED) })
    }

    /// Returns the offset of the first page that a range touches, and the number of pages.
    fn pages(&self, offset: u64, length: u64) -> (usize, usize) {
        let clip = |at: u64| usize::try_from(at).map_or(self.length, |at| at.min(self.length));
        let (start, end) = (clip(offset), clip(offset.saturating_add(length)));
        let first = start - start % self.page;
        (first, (end - first).div_ceil(self.page))
    }
}

impl Drop for Anonymous {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's alone and not used afterwards.
        unsafe { kept_mappings::unmap(self.base.as_ptr().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touched_pages_are_those_of_the_range() {
        let mut memory = Anonymous::new(10 * 4096).unwrap();
        let page = memory.page as u64;
        assert_eq!(memory.touch(0, page, true), 1);
        assert_eq!(memory.touch(page - 1, 2, false), 2);
        assert_eq!(memory.touch(0, 0, false), 0);
        let all = memory.length / memory.page;
        assert_eq!(memory.touch(0, u64::MAX, false), all);
        assert_eq!(memory.touch(1 << 62, 4096, true), 0);
        memory.give_back(0, page).unwrap();
        memory.give_back(1 << 62, page).unwrap();
    }

    #[test]
    fn more_than_any_address_space_is_refused() {
        assert!(Anonymous::new(u64::MAX).is_err());
        assert!(Anonymous::new(1 << 60).is_err());
    }
}

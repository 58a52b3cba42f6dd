//! The buffers of a worker's slots: one mapping, page aligned, touched when first used.

use std::io;
use std::ptr::NonNull;

use fathom_core::Slot;

use crate::system;

/// A buffer for each slot, in one anonymous mapping.
///
/// ```text
///  base            base + stride      base + 2 × stride
///  │ slot 0 ······ pad │ slot 1 ······ pad │ …
///    └── bytes ──┘
/// ```
///
/// Pages become resident when they are first written, so slots that are never used cost nothing.
#[derive(Debug)]
pub struct Buffers {
    base: NonNull<u8>,
    /// From one buffer to the next: `bytes` rounded up to pages.
    stride: usize,
    /// Of one buffer.
    bytes: usize,
    slots: u32,
}

impl Buffers {
    /// Maps `slots` buffers of `bytes` bytes each.
    ///
    /// # Errors
    /// What `mmap(2)` said: ENOMEM where the address space or the commit limit is used up.
    ///
    /// # Panics
    /// If there are no slots, or no bytes in them.
    pub fn new(slots: u32, bytes: u32) -> io::Result<Self> {
        assert!(slots > 0 && bytes > 0, "buffers without bytes");
        let too_large = |_| io::Error::from_raw_os_error(libc::ENOMEM);
        let page = usize::try_from(system::page_size()).map_err(too_large)?;
        let bytes = bytes as usize;
        let stride = bytes.next_multiple_of(page);
        let length = stride
            .checked_mul(slots as usize)
            .ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        let base = map_anonymous(length)?;
        Ok(Self {
            base,
            stride,
            bytes,
            slots,
        })
    }

    /// How many there are.
    #[must_use]
    pub const fn slots(&self) -> u32 {
        self.slots
    }

    /// One slot's buffer.
    ///
    /// # Panics
    /// If there is no such slot.
    #[inline]
    pub fn get(&mut self, slot: Slot) -> &mut [u8] {
        let start = self.start(slot);
        // SAFETY: `start` is the beginning of `bytes` mapped bytes that no other reference covers
        // (the slots are apart and `self` is borrowed), zero from the kernel and so initialised.
        unsafe { std::slice::from_raw_parts_mut(start, self.bytes) }
    }

    /// A part of one slot's buffer.
    ///
    /// # Panics
    /// If there is no such slot or it is too short.
    #[inline]
    pub fn part(&mut self, slot: Slot, offset: u32, length: u32) -> &mut [u8] {
        &mut self.get(slot)[offset as usize..][..length as usize]
    }

    /// Where a part of one slot's buffer lies, for the kernel to read or write; the mapping lives
    /// as long as this value.
    ///
    /// # Panics
    /// If there is no such slot or it is too short.
    #[inline]
    pub(crate) fn address(&self, slot: Slot, offset: u32, length: u32) -> *mut u8 {
        if offset as usize + length as usize > self.bytes {
            outside(offset, length, self.bytes);
        }
        // SAFETY: the offset was just seen to lie in the slot's buffer.
        unsafe { self.start(slot).add(offset as usize) }
    }

    /// Gives the mapping up for good: something outside may still write to it.
    pub(crate) fn leak(self) {
        std::mem::forget(self);
    }

    #[inline]
    fn start(&self, slot: Slot) -> *mut u8 {
        assert!(slot.get() < self.slots, "no slot {}", slot.get());
        // SAFETY: slot < slots, so the result lies in the mapping of slots × stride bytes.
        unsafe { self.base.as_ptr().add(slot.index() * self.stride) }
    }
}

/// Not in line, so that what it says is in memory only where it is said.
#[cold]
fn outside(offset: u32, length: u32, bytes: usize) -> ! {
    panic!("an op of {length} bytes from {offset} in a buffer of {bytes}");
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` with this base and this length; nothing refers to
        // it any more: Rust's references ended with the borrow of `self`, and whoever hands
        // addresses to the kernel either waits for it or calls `leak`.
        let failed =
            unsafe { libc::munmap(self.base.as_ptr().cast(), self.stride * self.slots as usize) };
        debug_assert_eq!(failed, 0, "unmapping what was mapped");
    }
}

/// `length` bytes of zeros, at an address of the kernel's choice.
pub(crate) fn map_anonymous(length: usize) -> io::Result<NonNull<u8>> {
    // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
    let base = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(base.cast()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_zero_apart_and_page_aligned() {
        let mut buffers = Buffers::new(3, 5000).unwrap();
        for slot in 0..3 {
            let buffer = buffers.get(Slot::new(slot));
            assert_eq!(buffer.len(), 5000);
            assert_eq!(buffer.as_ptr().addr() % 4096, 0);
            assert!(buffer.iter().all(|&byte| byte == 0));
            buffer.fill(u8::try_from(slot).unwrap() + 1);
        }
        assert!(buffers.get(Slot::new(0)).iter().all(|&byte| byte == 1));
        assert_eq!(buffers.part(Slot::new(2), 4999, 1), [3]);
    }

    #[test]
    #[should_panic(expected = "no slot 3")]
    fn a_slot_past_the_end_is_refused() {
        Buffers::new(3, 512).unwrap().get(Slot::new(3));
    }

    #[test]
    #[should_panic(expected = "1 bytes from 512")]
    fn an_address_past_the_end_is_refused() {
        let _address = Buffers::new(1, 512).unwrap().address(Slot::new(0), 512, 1);
    }

    #[test]
    fn more_than_there_is_room_for_is_an_error() {
        let error = Buffers::new(u32::MAX, u32::MAX).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOMEM));
    }
}

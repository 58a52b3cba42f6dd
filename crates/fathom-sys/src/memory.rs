//! Buffers of a worker's slots: one page-aligned mapping, populated on first use.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

use fathom_core::Slot;

use crate::files::{self, Allocation};
use crate::kept_mappings;
use crate::system;

mod shared;

use shared::Handle;
pub use shared::SharedBuffers;

/// Placement of buffers; by default private memory in normal pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryPlacement {
    /// Use memory that can be shared with other processes.
    pub shared: bool,
    /// Size of huge pages, a power of two; 0: normal pages.
    pub huge: u32,
    /// Map this file; a missing one is created, and removed again.
    pub file: Option<PathBuf>,
    /// Offset of every buffer from the start of a page.
    pub shift: u32,
    /// Use these buffers, shared with other threads in turn, and ignore the other settings.
    pub buffers: Option<SharedBuffers>,
}

/// One buffer per slot, in one mapping.
///
/// ```text
///  base            base + stride      base + 2 × stride
///  │ slot 0 ······ pad │ slot 1 ······ pad │ …
///    └── bytes ──┘
/// ```
///
/// Pages become resident when first written, so unused slots cost nothing. A mapping was preferred
/// to allocations per slot: it can be registered with one call and leaked as a whole when the
/// kernel does not give an op back.
#[derive(Debug)]
pub struct Buffers {
    /// Address of the first buffer.
    base: NonNull<u8>,
    /// Distance between buffers: `bytes` rounded up to pages.
    stride: usize,
    /// Size of one buffer.
    bytes: usize,
    /// Slots usable without a check: all, or none if the buffers are shared.
    slots: u32,
    home: Home,
}

/// Owner of the mapping.
#[derive(Debug)]
enum Home {
    /// This value alone.
    Own(#[expect(dead_code, reason = "there to be dropped")] Mapping),
    /// Shared with other handles.
    Shared(Handle),
}

/// A mapping, unmapped on drop.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

impl Buffers {
    /// Maps `slots` buffers of `bytes` bytes each, in private memory.
    ///
    /// # Errors
    /// The error of `mmap(2)`: ENOMEM if the address space or the commit limit is exhausted.
    ///
    /// # Panics
    /// If there are no slots, or no bytes in them.
    pub fn new(slots: u32, bytes: u32) -> io::Result<Self> {
        Self::within(&MemoryPlacement::default(), slots, bytes)
    }

    /// Maps `slots` buffers of `bytes` bytes each.
    ///
    /// # Errors
    /// The error of `mmap(2)`: ENOMEM if the address space, the commit limit or the huge pages are
    /// exhausted; or the error of opening the file.
    ///
    /// # Panics
    /// If there are no slots, or no bytes in them.
    pub fn within(memory: &MemoryPlacement, slots: u32, bytes: u32) -> io::Result<Self> {
        if let Some(shared) = &memory.buffers {
            return Ok(shared.buffers(slots, bytes));
        }
        assert!(slots > 0 && bytes > 0, "buffers without bytes");
        let too_large = || io::Error::from_raw_os_error(libc::ENOMEM);
        let page = usize::try_from(system::page_size()).map_err(|_| too_large())?;
        let bytes = bytes as usize;
        let stride = bytes.next_multiple_of(page);
        let shift = memory.shift as usize;
        let length = stride
            .checked_mul(slots as usize)
            .and_then(|length| length.checked_add(shift))
            .and_then(|length| length.checked_next_multiple_of(page.max(memory.huge as usize)))
            .ok_or_else(too_large)?;
        let start = map(memory, length)?;
        // SAFETY: the mapping is longer than `shift` by all the buffers.
        let base = unsafe { start.add(shift) };
        Ok(Self {
            base,
            stride,
            bytes,
            slots,
            home: Home::Own(Mapping { start, length }),
        })
    }

    /// Returns the number of buffers.
    #[must_use]
    pub fn slots(&self) -> u32 {
        match &self.home {
            Home::Own(_) => self.slots,
            Home::Shared(handle) => handle.slots(),
        }
    }

    /// Releases a slot's buffer to other threads; no effect if the buffers are not shared.
    ///
    /// # Panics
    /// If there is no such slot, or another thread holds it.
    pub fn release(&mut self, slot: Slot) {
        if let Home::Shared(handle) = &self.home {
            handle.release(slot);
        }
    }

    /// Returns the addresses of all buffers, to be registered with the kernel.
    pub(crate) fn places(&self) -> impl Iterator<Item = (*mut u8, usize)> {
        (0..self.slots() as usize).map(|slot| {
            // SAFETY: below the number of slots, so within the buffers mapped from `base`.
            let place = unsafe { self.base.as_ptr().add(slot * self.stride) };
            (place, self.bytes)
        })
    }

    /// Returns a slot's buffer.
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

    /// Returns a part of a slot's buffer.
    ///
    /// # Panics
    /// If there is no such slot or it is too short.
    #[inline]
    pub fn part(&mut self, slot: Slot, offset: u32, length: u32) -> &mut [u8] {
        &mut self.get(slot)[offset as usize..][..length as usize]
    }

    /// Returns a part of a slot's buffer for reading, several of which may be borrowed at a time.
    ///
    /// # Panics
    /// If there is no such slot or it is too short.
    #[inline]
    pub fn peek(&self, slot: Slot, offset: u32, length: u32) -> &[u8] {
        let start = self.address(slot, offset, length);
        // SAFETY: `start` is the beginning of `length` bytes of the slot's buffer, mapped and zero
        // from the kernel, so initialised; an exclusive reference would borrow `self` exclusively.
        unsafe { std::slice::from_raw_parts(start, length as usize) }
    }

    /// Returns the address of a part of a slot's buffer, for the kernel; valid as long as this
    /// value.
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

    /// Returns a function that maps slots to addresses of the same length.
    ///
    /// # Panics
    /// If buffers are too short; the returned function, if there is no such slot.
    #[inline(always)]
    pub(crate) fn addresses(&self, offset: u32, length: u32) -> impl Fn(Slot) -> *mut u8 {
        let first = self.address(Slot::new(0), offset, length);
        let (slots, stride) = (self.slots, self.stride);
        move |slot| {
            assert!(slot.get() < slots, "no slot {}", slot.get());
            // SAFETY: slot < slots, and what lies in one slot's buffer lies in each one's.
            unsafe { first.add(slot.index() * stride) }
        }
    }

    /// Leaks the mapping, because the kernel may still write to it.
    pub(crate) fn leak(self) {
        std::mem::forget(self);
    }

    #[inline]
    fn start(&self, slot: Slot) -> *mut u8 {
        if slot.get() >= self.slots {
            self.acquire(slot);
        }
        // SAFETY: slot < slots, here or as `acquire` has seen it, so the result lies in the
        // slots × stride bytes mapped from `base`.
        unsafe { self.base.as_ptr().add(slot.index() * self.stride) }
    }
}

impl Buffers {
    /// Panics unless the slot exists and this handle may use it.
    #[cold]
    #[inline(never)]
    fn acquire(&self, slot: Slot) {
        match &self.home {
            Home::Own(_) => panic!("no slot {}", slot.get()),
            Home::Shared(handle) => handle.take(slot),
        }
    }
}

/// Out of line, to keep the formatting out of the hot path.
#[cold]
fn outside(offset: u32, length: u32, bytes: usize) -> ! {
    panic!("an op of {length} bytes from {offset} in a buffer of {bytes}");
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this address and length; nothing refers to it any more:
        // Rust's references ended with the borrow of the buffers, and whoever hands addresses to
        // the kernel either waits for it or calls `leak`.
        unsafe { kept_mappings::unmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// Maps `length` bytes at an address of the kernel's choice.
pub(crate) fn map(memory: &MemoryPlacement, length: usize) -> io::Result<NonNull<u8>> {
    let mut flags = match memory.shared {
        true => libc::MAP_SHARED,
        false => libc::MAP_PRIVATE,
    };
    if let Some(path) = &memory.file {
        return map_file(path, flags, length);
    }
    if memory.huge > 0 {
        let power = memory.huge.trailing_zeros().cast_signed();
        flags |= libc::MAP_HUGETLB | power << libc::MAP_HUGE_SHIFT;
    }
    map_flags(flags | libc::MAP_ANONYMOUS, -1, length)
}

fn map_file(path: &Path, flags: i32, length: usize) -> io::Result<NonNull<u8>> {
    let made = !path.exists();
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    if made {
        // The mapping keeps the file alive. A symbolic link to it stays.
        fs::remove_file(fs::canonicalize(path)?)?;
    }
    let held = file.metadata()?.len();
    if held < length as u64 {
        file.set_len(length as u64)?;
    }
    match reserve(&file, length as u64) {
        Ok(()) => map_flags(flags, file.as_raw_fd(), length),
        Err(error) => {
            if held < length as u64 {
                // Report the original error, not that of the cleanup.
                let _as_it_was = file.set_len(held);
            }
            Err(error)
        }
    }
}

/// Allocates the blocks of a file: a page without space raises SIGBUS when first touched. A private
/// mapping needs them too, as the source of its copies.
fn reserve(file: &File, length: u64) -> io::Result<()> {
    match files::allocate(file, Allocation::Posix, 0, length) {
        // Devices need no allocation; huge pages are reserved by the mapping.
        Err(error)
            if matches!(
                error.raw_os_error(),
                Some(libc::EOPNOTSUPP | libc::EINVAL | libc::ENODEV | libc::ENOSYS)
            ) =>
        {
            Ok(())
        }
        reserved => reserved,
    }
}

fn map_flags(flags: i32, fd: i32, length: usize) -> io::Result<NonNull<u8>> {
    // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours; the
    // descriptor is none, or open for the length of the call.
    let base = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            flags,
            fd,
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
    fn buffers_lie_where_they_are_asked_for() {
        let folder = std::env::temp_dir();
        let path = folder.join(format!("fathom-buffers-{}", std::process::id()));
        for (shared, file, shift) in [
            (true, None, 0),
            (false, None, 512),
            (true, Some(path.clone()), 24),
            (false, Some(path.clone()), 0),
        ] {
            let memory = MemoryPlacement {
                shared,
                file,
                shift,
                huge: 0,
                buffers: None,
            };
            let mut buffers = Buffers::within(&memory, 3, 5000).unwrap();
            for slot in 0..3 {
                let buffer = buffers.get(Slot::new(slot));
                assert_eq!(
                    (buffer.len(), buffer.as_ptr().addr() % 4096),
                    (5000, shift as usize)
                );
                buffer.fill(1);
            }
            assert!(!path.exists(), "a file is left");
        }
        let nowhere = MemoryPlacement {
            file: Some(folder.join("no-such-folder/x")),
            ..MemoryPlacement::default()
        };
        assert!(Buffers::within(&nowhere, 1, 1).is_err());
    }

    #[test]
    fn huge_pages_are_used_or_missing() {
        let memory = MemoryPlacement {
            huge: 2 << 20,
            ..MemoryPlacement::default()
        };
        match Buffers::within(&memory, 2, 4096) {
            Ok(mut buffers) => buffers.get(Slot::new(1)).fill(1),
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::ENOMEM)),
        }
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

//! The buffers of a worker's slots: one mapping, page aligned, touched when first used.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

use fathom_core::Slot;

use crate::errno;
use crate::files::{self, Allocation};
use crate::system;

mod turns;

pub use turns::BuffersInTurns;
use turns::Handle;

/// Where buffers lie; by default in private memory of usual pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// In memory that could be shared with other processes.
    pub shared: bool,
    /// In huge pages of so many bytes, a power of two; 0 for usual pages.
    pub huge: u32,
    /// Mapped from this file; one that is missing is made, and removed again.
    pub file: Option<PathBuf>,
    /// Every buffer begins so many bytes behind the start of a page.
    pub shift: u32,
    /// In these, which other threads use too, each at its turn; the rest is theirs to say.
    pub turns: Option<BuffersInTurns>,
}

/// A buffer for each slot, in one mapping.
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
    /// The first buffer.
    base: NonNull<u8>,
    /// From one buffer to the next: `bytes` rounded up to pages.
    stride: usize,
    /// Of one buffer.
    bytes: usize,
    /// Slots that may be used without asking: all of them, or none where turns are taken.
    slots: u32,
    home: Home,
}

/// What keeps the memory mapped.
#[derive(Debug)]
enum Home {
    /// It is ours alone.
    Own(#[expect(dead_code, reason = "there to be dropped")] Mapping),
    /// Others use it too.
    Shared(Handle),
}

/// Mapped memory.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

impl Buffers {
    /// Maps `slots` buffers of `bytes` bytes each, in private memory.
    ///
    /// # Errors
    /// The error of `mmap(2)`: ENOMEM where the address space or the commit limit is used up.
    ///
    /// # Panics
    /// If there are no slots, or no bytes in them.
    pub fn new(slots: u32, bytes: u32) -> io::Result<Self> {
        Self::within(&Memory::default(), slots, bytes)
    }

    /// Maps `slots` buffers of `bytes` bytes each.
    ///
    /// # Errors
    /// The error of `mmap(2)`: ENOMEM where the address space, the commit limit or the huge pages
    /// are used up; or what opening the file said.
    ///
    /// # Panics
    /// If there are no slots, or no bytes in them.
    pub fn within(memory: &Memory, slots: u32, bytes: u32) -> io::Result<Self> {
        if let Some(turns) = &memory.turns {
            return Ok(turns.buffers(slots, bytes));
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

    /// How many there are.
    #[must_use]
    pub fn slots(&self) -> u32 {
        match &self.home {
            Home::Own(_) => self.slots,
            Home::Shared(handle) => handle.slots(),
        }
    }

    /// Lets another thread have its turn with a slot's buffer; nothing where there are no turns.
    ///
    /// # Panics
    /// If there is no such slot, or another thread has its turn.
    pub fn let_go(&mut self, slot: Slot) {
        if let Home::Shared(handle) = &self.home {
            handle.let_go(slot);
        }
    }

    /// Where all of them lie, whosever turn it is, for the kernel to keep.
    pub(crate) fn places(&self) -> impl Iterator<Item = (*mut u8, usize)> {
        (0..self.slots() as usize).map(|slot| {
            // SAFETY: below the number of slots, so within the buffers mapped from `base`.
            let place = unsafe { self.base.as_ptr().add(slot * self.stride) };
            (place, self.bytes)
        })
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

    /// The same for several slots.
    ///
    /// # Panics
    /// If they are too short; the result, if there is no such slot.
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

    /// Gives the mapping up for good: something outside may still write to it.
    pub(crate) fn leak(self) {
        std::mem::forget(self);
    }

    #[inline]
    fn start(&self, slot: Slot) -> *mut u8 {
        if slot.get() >= self.slots {
            self.take_turn(slot);
        }
        // SAFETY: slot < slots, here or as `take_turn` has seen it, so the result lies in the
        // slots × stride bytes mapped from `base`.
        unsafe { self.base.as_ptr().add(slot.index() * self.stride) }
    }
}

impl Buffers {
    /// Comes back only if the slot's buffer is there and this handle's to use.
    #[cold]
    #[inline(never)]
    fn take_turn(&self, slot: Slot) {
        match &self.home {
            Home::Own(_) => panic!("no slot {}", slot.get()),
            Home::Shared(handle) => handle.take(slot),
        }
    }
}

/// Not in line, so that what it says is in memory only where it is said.
#[cold]
fn outside(offset: u32, length: u32, bytes: usize) -> ! {
    panic!("an op of {length} bytes from {offset} in a buffer of {bytes}");
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this address and length; nothing refers to it any more:
        // Rust's references ended with the borrow of the buffers, and whoever hands addresses to
        // the kernel either waits for it or calls `leak`.
        let failed = unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
        errno::assert_not_misused(failed, "munmap");
    }
}

/// `length` bytes, at an address of the kernel's choice.
pub(crate) fn map(memory: &Memory, length: usize) -> io::Result<NonNull<u8>> {
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
        // Mapped, it lives on without a name. A link to it stays.
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
                // The error to tell of is the one that made this necessary.
                let _as_it_was = file.set_len(held);
            }
            Err(error)
        }
    }
}

/// Gives every page of a file its block: a page that finds no room when it is first touched ends
/// the process with SIGBUS. A private mapping needs the file's pages, too, to copy them from.
fn reserve(file: &File, length: u64) -> io::Result<()> {
    match files::allocate(file, Allocation::Posix, 0, length) {
        // Pages of a device have their place; huge pages are reserved when they are mapped.
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
            let memory = Memory {
                shared,
                file,
                shift,
                huge: 0,
                turns: None,
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
        let nowhere = Memory {
            file: Some(folder.join("no-such-folder/x")),
            ..Memory::default()
        };
        assert!(Buffers::within(&nowhere, 1, 1).is_err());
    }

    #[test]
    fn huge_pages_are_used_or_missing() {
        let memory = Memory {
            huge: 2 << 20,
            ..Memory::default()
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

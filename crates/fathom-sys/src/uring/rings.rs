//! Memory that an io_uring shares with the kernel: submission and completion queue.
//!
//! ```text
//!  entries      ··· │ e │ e │ e │ ···     written at our tail; seen by the kernel once published
//!                     ▲ kernel's head ▲ our tail
//!  completions  ··· │ c │ c │ c │ ···     taken from our head on, and released at once
//!                     ▲ our head      ▲ kernel's tail
//! ```
//!
//! Indices increase without bound and are masked on use. Our own are kept privately, not read back
//! from shared memory, so a batch of any size costs one store or one load of a shared index.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use fathom_core::Completion;

use super::abi::{Parameters, SQ_CQ_OVERFLOW, SQ_NEED_WAKEUP, SQ_TASKRUN};
use crate::in_flight::InFlight;
use crate::kept_mappings;

/// A submission queue entry (`struct io_uring_sqe`) as whole words. The last two are zero for all
/// our ops, as they are in a new queue, and never written, except on rings whose ops have metadata.
pub(super) type EntryWords = [u64; 6];

/// A submission queue entry with its last two words: address and kind of an attribute.
pub(super) type AttributedWords = [u64; 8];

/// A submission queue entry of double size, with a command of 80 bytes for the driver after the
/// words of [`EntryWords`]. The last word is zero for all our commands, and never written.
pub(super) type CommandWords = [u64; 15];

/// Storage for an entry; one of double size has two.
type EntrySlot = [u64; 8];

/// Both queues of a ring and its descriptor. If `BIG`, entries and completions have double size
/// (`SQE128`, `CQE32`), as commands for drivers need.
#[derive(Debug)]
pub(super) struct Rings<const BIG: bool> {
    fd: OwnedFd,
    pub(super) submission: Submission<BIG>,
    pub(super) completion: CompletionQueue<BIG>,
    /// Unmapped on drop.
    _queues: Mapping,
    _entries: Mapping,
}

impl<const BIG: bool> Rings<BIG> {
    /// Creates a ring; the kernel fills in `parameters`.
    ///
    /// # Errors
    /// The error of `io_uring_setup(2)` or `mmap(2)`; ENOSYS for a kernel before 5.11, which cannot
    /// wait with a time-out.
    pub(super) fn set_up(entries: u32, parameters: &mut Parameters) -> io::Result<Self> {
        // SAFETY: the kernel reads and writes one live structure of the layout it expects.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_io_uring_setup,
                entries,
                std::ptr::from_mut(parameters),
            )
        };
        let fd = RawFd::try_from(fd).unwrap_or(-1);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and open, and nothing else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        if !parameters.waits_with_a_time() {
            return Err(io::Error::from_raw_os_error(libc::ENOSYS));
        }
        let queues = Mapping::new(&fd, parameters.queues_bytes(), OFFSET_QUEUES)?;
        let entries = Mapping::new(&fd, parameters.entries_bytes(), OFFSET_ENTRIES)?;
        // SAFETY: the parameters are those of these mappings, which live as long as the result.
        let (submission, completion) = unsafe {
            (
                Submission::new(parameters, &queues, &entries),
                CompletionQueue::new(parameters, &queues),
            )
        };
        Ok(Self {
            fd,
            submission,
            completion,
            _queues: queues,
            _entries: entries,
        })
    }

    /// Returns the ring's descriptor.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Returns the ring's descriptor.
    pub(super) fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Returns the number of ops written and not yet taken back; each completes once.
    #[inline]
    pub(super) const fn in_flight(&self) -> u32 {
        self.submission.tail.wrapping_sub(self.completion.head)
    }
}

/// Submission queue.
#[derive(Debug)]
pub(super) struct Submission<const BIG: bool> {
    places: NonNull<EntrySlot>,
    mask: u32,
    /// Index of the next entry.
    tail: u32,
    /// Tail that was last published.
    published: u32,
    shared_head: NonNull<AtomicU32>,
    shared_tail: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
}

impl<const BIG: bool> Submission<BIG> {
    /// # Safety
    /// The mappings match `parameters` and outlive the result.
    unsafe fn new(parameters: &Parameters, queues: &Mapping, entries: &Mapping) -> Self {
        let offsets = &parameters.submission;
        // Without NO_SQARRAY the kernel finds entries through an array of indices, which we fill
        // with the identity once.
        if let Some(array) = parameters.index_array() {
            for index in 0..parameters.submission_entries {
                // SAFETY: the array has this many places, all in the mapping.
                unsafe { queues.at::<u32>(array).add(index as usize).write(index) };
            }
        }
        Self {
            places: entries.at(0),
            mask: parameters.submission_entries - 1,
            tail: 0,
            published: 0,
            shared_head: queues.at(offsets.head),
            shared_tail: queues.at(offsets.tail),
            flags: queues.at(offsets.flags),
        }
    }

    /// Writes an entry; the kernel does not see it before `publish`.
    ///
    /// # Safety
    /// The queue has a free place. Everything that the entry names stays alive until its
    /// completion.
    #[inline(always)]
    pub(super) unsafe fn push(&mut self, entry: EntryWords) {
        // SAFETY: what is written fits into any entry; the caller vouches for the rest.
        unsafe { self.push_words(entry) };
    }

    /// Writes an entry with all its words.
    ///
    /// # Safety
    /// As for `push`.
    pub(super) unsafe fn push_attributed(&mut self, entry: AttributedWords) {
        // SAFETY: the caller vouches for it.
        unsafe { self.push_words(entry) };
    }

    /// Writes the words of an entry, which has room for them.
    ///
    /// # Safety
    /// As for `push`.
    #[inline(always)]
    unsafe fn push_words<const WORDS: usize>(&mut self, entry: [u64; WORDS]) {
        const { assert!(WORDS <= if BIG { 16 } else { 8 }) };
        let place = ((self.tail & self.mask) as usize) << usize::from(BIG);
        // SAFETY: masked, so in the mapping; the kernel does not read it now, says the caller.
        unsafe { self.places.add(place).cast::<[u64; WORDS]>().write(entry) };
        self.tail = self.tail.wrapping_add(1);
    }

    /// Writes several entries.
    ///
    /// # Safety
    /// As for `push`, for each of them.
    #[inline(always)]
    pub(super) unsafe fn push_all(&mut self, entries: impl Iterator<Item = EntryWords>) {
        // Local copies: the compiler cannot rule out that writing entries changes `self`.
        let (places, mask, mut tail) = (self.places, self.mask, self.tail);
        for entry in entries {
            let place = ((tail & mask) as usize) << usize::from(BIG);
            // SAFETY: masked, so in the mapping; the kernel does not read it now, says the caller.
            unsafe { places.add(place).cast::<EntryWords>().write(entry) };
            tail = tail.wrapping_add(1);
        }
        self.tail = tail;
    }

    /// Publishes the written entries and returns their number.
    #[inline]
    pub(super) fn publish(&mut self) -> u32 {
        let new = self.tail.wrapping_sub(self.published);
        // SAFETY: it lies in the mapping, which lives as long as this value.
        let shared = unsafe { self.shared_tail.as_ref() };
        // Release: pairs with the kernel's acquiring load of the tail, after which it reads
        // entries.
        shared.store(self.tail, Ordering::Release);
        self.published = self.tail;
        new
    }

    /// Returns the entries written and not yet published.
    #[inline]
    pub(super) const fn unpublished(&self) -> u32 {
        self.tail.wrapping_sub(self.published)
    }

    /// Returns the entries that the kernel has not taken, published or not. Without SQPOLL it takes
    /// them only within `io_uring_enter`, so entries left by a failed call never complete.
    pub(super) fn untaken(&self) -> u32 {
        // SAFETY: it lies in the mapping, which lives as long as this value.
        let shared = unsafe { self.shared_head.as_ref() };
        // Acquire: pairs with the kernel's release after it has read the entries.
        self.tail.wrapping_sub(shared.load(Ordering::Acquire))
    }

    /// Returns whether the SQPOLL thread sleeps and must be woken.
    #[inline]
    pub(super) fn needs_wakeup(&self) -> bool {
        // Full fence between our store of the tail and the load of the flag. The kernel has one
        // between setting the flag and its last check of the tail, so one side sees the other.
        fence(Ordering::SeqCst);
        self.flags() & SQ_NEED_WAKEUP != 0
    }

    /// Returns whether task work is pending that only entering the kernel runs.
    #[inline]
    pub(super) fn work_is_waiting(&self) -> bool {
        self.flags() & (SQ_TASKRUN | SQ_CQ_OVERFLOW) != 0
    }

    #[inline]
    fn flags(&self) -> u32 {
        // SAFETY: they lie in the mapping, which lives as long as this value.
        let flags = unsafe { self.flags.as_ref() };
        // Relaxed: a hint; the completions themselves are read with Acquire.
        flags.load(Ordering::Relaxed)
    }
}

impl Submission<true> {
    /// Writes an entry with a command.
    ///
    /// # Safety
    /// As for `push`.
    #[inline(always)]
    pub(super) unsafe fn push_command(&mut self, entry: CommandWords) {
        // SAFETY: the caller vouches for it.
        unsafe { self.push_words(entry) };
    }
}

/// Completion queue.
#[derive(Debug)]
pub(super) struct CompletionQueue<const BIG: bool> {
    entries: NonNull<RawCompletion>,
    mask: u32,
    /// Index of the next completion.
    head: u32,
    shared_head: NonNull<AtomicU32>,
    shared_tail: NonNull<AtomicU32>,
}

impl<const BIG: bool> CompletionQueue<BIG> {
    /// # Safety
    /// The mapping matches `parameters` and outlives the result.
    unsafe fn new(parameters: &Parameters, queues: &Mapping) -> Self {
        let offsets = &parameters.completion;
        Self {
            entries: queues.at(offsets.entries),
            mask: parameters.completion_entries - 1,
            head: 0,
            shared_head: queues.at(offsets.head),
            shared_tail: queues.at(offsets.tail),
        }
    }

    /// Returns the number of available completions.
    #[inline]
    pub(super) fn len(&self) -> u32 {
        // SAFETY: it lies in the mapping, which lives as long as this value.
        let tail = unsafe { self.shared_tail.as_ref() };
        // Acquire: pairs with the kernel's release after it has written the completions.
        tail.load(Ordering::Acquire).wrapping_sub(self.head)
    }

    /// Moves as many completions as fit to `out` and returns their number.
    ///
    /// # Panics
    /// If a completion is for an op that is not in flight.
    #[inline(always)]
    pub(super) fn take(&mut self, out: &mut [Completion], in_flight: &mut InFlight) -> usize {
        let count = (self.len() as usize).min(out.len());
        let (entries, mask, mut head) = (self.entries, self.mask, self.head);
        let mut end = in_flight.ender();
        for place in &mut out[..count] {
            // The second half of a completion of double size is the driver's own result, which no
            // command here has.
            let index = ((head & mask) as usize) << usize::from(BIG);
            // SAFETY: masked, so in the mapping; before the kernel's tail, so written and left
            // alone until we move the head.
            let RawCompletion {
                user_data, result, ..
            } = unsafe { entries.add(index).read() };
            head = head.wrapping_add(1);
            *place = Completion {
                slot: end(user_data),
                result,
            };
        }
        if count > 0 {
            self.head = head;
            // SAFETY: it lies in the mapping, which lives as long as this value.
            let shared = unsafe { self.shared_head.as_ref() };
            // Release: the completions were read before the kernel may reuse their places.
            shared.store(self.head, Ordering::Release);
        }
        count
    }
}

/// `struct io_uring_cqe` of <linux/io_uring.h>.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct RawCompletion {
    user_data: u64,
    result: i32,
    flags: u32,
}

const _: () = assert!(size_of::<RawCompletion>() == 16);

/// A mapped part of the ring's memory.
#[derive(Debug)]
struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
}

impl Mapping {
    fn new(fd: &OwnedFd, bytes: usize, offset: i64) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                fd.as_raw_fd(),
                offset,
            )
        };
        match NonNull::new(base.cast::<u8>()) {
            Some(base) if base.as_ptr().cast() != libc::MAP_FAILED => Ok(Self { base, bytes }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Returns the address at `offset` bytes.
    fn at<T>(&self, offset: u32) -> NonNull<T> {
        let end = offset as usize + size_of::<T>();
        assert!(end <= self.bytes, "the kernel's offsets lie in its mapping");
        // SAFETY: just seen to lie in the mapping.
        unsafe { self.base.add(offset as usize) }.cast()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: made by `new` with this base and length; all references to it end with this
        // value.
        unsafe { kept_mappings::unmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// `IORING_OFF_SQ_RING`, which has been both queues since Linux 5.4, and `IORING_OFF_SQES`.
const OFFSET_QUEUES: i64 = 0;
const OFFSET_ENTRIES: i64 = 0x1000_0000;

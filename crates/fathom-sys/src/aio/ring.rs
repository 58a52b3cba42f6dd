//! The kernel's event ring, mapped into the process.
//!
//! ```text
//!  id  nr  head  tail  magic  compat  incompat  header_length │ event 0 │ … │ event nr − 1 │
//!           ours  the kernel's
//! ```
//!
//! An application may take events itself: the kernel re-reads `head` when the ring seems full. The
//! layout is undocumented; the magic number identifies it.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use super::Event;

/// Event ring of one context, valid as long as the context.
#[derive(Debug)]
pub(super) struct EventRing {
    header: NonNull<Header>,
    places: u32,
}

impl EventRing {
    /// Returns the ring of a context, if its layout is the known one.
    ///
    /// # Safety
    /// `id` is what `io_setup` gave, and the context outlives the result.
    pub(super) unsafe fn of(id: libc::c_ulong) -> Option<Self> {
        let address = usize::try_from(id).ok()?;
        let header = NonNull::new(std::ptr::with_exposed_provenance_mut::<Header>(address))?;
        // SAFETY: the number of a context is the address of its mapping, which the kernel has made
        // readable and writable and which begins with the header.
        let Header {
            places,
            magic,
            incompatible,
            header_length,
            ..
        } = unsafe { header.as_ref() };
        let known = *magic == MAGIC
            && *incompatible == 0
            && *header_length as usize == size_of::<Header>()
            && *places > 0;
        known.then_some(Self {
            header,
            places: *places,
        })
    }

    /// Returns the number of available events.
    pub(super) fn len(&self) -> u32 {
        let header = self.header();
        let head = header.head.load(Ordering::Relaxed);
        // Acquire: pairs with the kernel's barrier between writing an event and moving the tail.
        let tail = header.tail.load(Ordering::Acquire);
        if tail >= head {
            tail - head
        } else {
            tail + self.places - head
        }
    }

    /// Removes and returns the oldest event.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Event> {
        let header = self.header();
        // Only this thread moves the head: here, and the kernel for it in `io_getevents`.
        let head = header.head.load(Ordering::Relaxed);
        // Acquire: pairs with the kernel's barrier between writing an event and moving the tail.
        let tail = header.tail.load(Ordering::Acquire);
        if head == tail || head >= self.places {
            return None;
        }
        // SAFETY: the events follow the header; head < places, so the event lies in the mapping,
        // and since head ≠ tail the kernel has written it and does not touch it.
        let event = unsafe { self.header.add(1).cast::<Event>().add(head as usize).read() };
        let next = if head + 1 == self.places { 0 } else { head + 1 };
        // Release: the event is read before the kernel may overwrite it.
        self.header().head.store(next, Ordering::Release);
        Some(event)
    }

    #[inline]
    fn header(&self) -> &Header {
        // SAFETY: the mapping lives as long as this value (`of`); what the kernel changes in it is
        // atomic here.
        unsafe { self.header.as_ref() }
    }
}

/// The beginning of the mapping, `struct aio_ring` of the kernel.
#[repr(C)]
#[derive(Debug)]
struct Header {
    id: u32,
    places: u32,
    head: AtomicU32,
    tail: AtomicU32,
    magic: u32,
    compatible: u32,
    incompatible: u32,
    header_length: u32,
}

const _: () = assert!(size_of::<Header>() == size_of::<Event>());

const MAGIC: u32 = 0xa10a_10a1;

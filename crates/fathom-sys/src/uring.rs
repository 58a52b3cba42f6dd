//! io_uring: a ring with the buffers and the in-flight table of one worker.
//!
//! `rings.rs` has the queues shared with the kernel, `setup.rs` their creation, `ops.rs` the
//! encoding of ops, `integrity.rs` that of their metadata, `command.rs` that of commands for
//! drivers, `enter.rs` the system call.
//! Submitting, waiting and the ownership of buffers are here.

mod abi;
mod call;
mod command;
mod enter;
mod entry;
mod integrity;
mod ops;
mod rings;
mod setup;
mod streams;
#[cfg(test)]
mod tests;

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::BorrowedFd;

use fathom_core::{Completion, Direction, Nanos, Op, OpKind, Slot};

use crate::file_io::{Descriptor, raw};
use crate::in_flight::{InFlight, Ready};
use crate::memory::Buffers;

use abi::{ENTER_GETEVENTS, IntegrityAttribute};
use enter::{RETRIES, no_room};
use entry::Fields;
use ops::{Mode, buffer_number};
use rings::Rings;
use streams::Streams;

pub use command::{CommandData, NvmeCommand};
pub use integrity::IntegrityChecks;
pub use setup::{RING_ENTRIES_MAX, RingConfig, RingError};

/// An io_uring with the buffers and the in-flight table of one worker.
///
/// `push` queues an op without a system call, `submit` hands all queued ops to the kernel in one
/// `io_uring_enter` that may also run task work and wait, `reap` collects completions. An op owns
/// its slot's buffer from `push` until `reap` has returned its completion.
///
/// Only the creating thread may use a ring; the kernel enforces that (`SINGLE_ISSUER`) where it
/// can. The constructor allocates all memory, and registers buffers and files if asked to. Dropping
/// a busy ring waits up to 30 s, then leaks the memory that the kernel may still write to.
///
/// If `BIG`, it is a [`CommandRing`].
#[derive(Debug)]
pub struct Ring<const BIG: bool = false> {
    rings: Rings<BIG>,
    /// First argument of `io_uring_enter`: the ring's descriptor, or its registered index.
    enter_fd: i32,
    /// Flag for a registered index; 0 for a descriptor.
    enter_flags: u32,
    mode: Mode,
    features: Vec<&'static str>,
    refused: Vec<&'static str>,
    /// Freed by `drop` once nothing is in flight, else leaked.
    memory: ManuallyDrop<Memory>,
    in_flight: InFlight,
    /// Completions made outside of the ring.
    ready: Ready,
    /// Ops until the next one with `IOSQE_ASYNC`.
    until_async: u32,
    /// Streams of writes.
    streams: Option<Streams>,
    /// Submissions for which task work is still run in the same call; see `submit`.
    asks_for_events: u32,
    /// Number of calls of `io_uring_enter`.
    calls: u64,
    /// The last `reap` entered the kernel.
    looked: bool,
}

/// A ring with entries of double size for commands that a driver executes (`IORING_OP_URING_CMD`,
/// Linux 5.19). It takes commands alone: `push_command` instead of `push`.
pub type CommandRing = Ring<true>;

/// Memory that the kernel may be reading or writing.
#[derive(Debug)]
struct Memory {
    buffers: Buffers,
    /// Second buffer of each slot, for metadata and ranges of commands.
    extra: Option<Buffers>,
    /// One per slot if vectors are used; else empty.
    vectors: Box<[libc::iovec]>,
    /// One per slot if ops have metadata; else empty.
    attributes: Box<[IntegrityAttribute]>,
}

impl Ring {
    /// Queues an op, except trims, which the ring cannot take. `file` returns the open file if
    /// files are not registered.
    ///
    /// # Panics
    /// If the op's slot is in flight or its data are outside the slot's buffer.
    #[inline(always)]
    pub fn push<'file>(&mut self, op: &Op, file: impl FnOnce() -> Descriptor<'file>) {
        // Two paths, so that the common one writes nothing but the entry to memory: an op or fields
        // passed to a function would be stored narrow and read wide, which stalls.
        match op.kind {
            OpKind::Data(direction @ (Direction::Read | Direction::Write)) if self.mode.plain => {
                let fields = self.data_fields(op, direction == Direction::Write, file);
                self.push_entry(op.slot, fields);
            }
            _ => {
                let op = *op;
                self.push_uncommon(&op, file());
            }
        }
    }

    /// Queues reads or writes that equal `op` except for slot and offset: one for each of `slots`,
    /// with the next offset of `offset`.
    ///
    /// # Panics
    /// As for `push`.
    #[inline(always)]
    pub fn push_many(
        &mut self,
        op: &Op,
        slots: &[Slot],
        mut offset: impl FnMut() -> u64,
        file: Descriptor<'_>,
    ) {
        let write = match op.kind {
            OpKind::Data(direction @ (Direction::Read | Direction::Write)) if self.mode.plain => {
                direction == Direction::Write
            }
            _ => {
                for &slot in slots {
                    let offset = offset();
                    let op = Op {
                        slot,
                        offset,
                        ..*op
                    };
                    self.push_uncommon(&op, file);
                }
                return;
            }
        };
        let like = self.data_fields(op, write, || file);
        let memory = &*self.memory;
        let address = memory.buffers.addresses(op.buffer_offset, op.length);
        let mut begin = self.in_flight.starter();
        let entries = slots.iter().map(|&slot| {
            let fields = Fields {
                offset: offset(),
                address: address(slot).addr() as u64,
                buffer: buffer_number(slot),
                user_data: begin(slot),
                ..like
            };
            fields.entry()
        });
        // SAFETY: as in `push_entry`.
        unsafe { self.rings.submission.push_all(entries) };
    }

    #[inline(never)]
    fn push_uncommon(&mut self, op: &Op, file: Descriptor<'_>) {
        let fields = self.uncommon_fields(op, file);
        match self.memory.attributes.is_empty() {
            true => self.push_entry(op.slot, fields),
            false => self.push_attributed(op, fields),
        }
    }

    /// Builds the entry of an op from `fields` and its user data.
    #[inline(always)]
    fn push_entry(&mut self, slot: Slot, mut fields: Fields) {
        fields.user_data = self.in_flight.begin(slot);
        // SAFETY: the slot was free, so fewer ops than slots were in flight, and the queue has a
        // place for each slot. The entry names a part of the slot's buffer, checked by
        // `Buffers::address`, and perhaps the slot's vector. Both live in `memory` until the op
        // has completed or for ever (see `drop`), and `buffer` gives no reference to them while
        // the slot is in flight.
        unsafe { self.rings.submission.push(fields.entry()) };
    }
}

impl<const BIG: bool> Ring<BIG> {
    /// Adds the completion of an op performed outside of the ring.
    pub fn complete(&mut self, slot: Slot, result: i32) {
        let user_data = self.in_flight.begin(slot);
        self.ready.push(self.in_flight.end(user_data), result);
    }

    /// Submits all queued ops and waits until `want` completions can be reaped or a signal arrives.
    ///
    /// # Errors
    /// The error of `io_uring_enter(2)`; the ring can no longer be used.
    #[inline(always)]
    pub fn submit(&mut self, want: u32) -> io::Result<()> {
        let want = want.min(self.rings.in_flight());
        if self.mode.kernel_thread {
            self.rings.submission.publish();
            return self.submit_to_thread(want);
        }
        if self.rings.submission.unpublished() == 0 {
            return self.wait(want, None);
        }
        let mut left = self.rings.submission.publish();
        let flags = self.events_flag(want);
        let mut retries = RETRIES;
        while left > 0 {
            match self.enter(left, want, flags) {
                // The kernel took none: it is out of requests, and says so on the next try.
                Ok(0) => self.make_room(&no_room(), &mut retries)?,
                Ok(taken) => left -= taken.min(left),
                Err(error) => self.make_room(&error, &mut retries)?,
            }
        }
        Ok(())
    }

    /// Returns `IORING_ENTER_GETEVENTS` if a submission should also run task work, else 0.
    ///
    /// With deferred task work, the submitting call runs it. Ops that complete inline (from the
    /// page cache) leave none, and then looking for it costs a twentieth of a no-op. So every now
    /// and then we submit without the flag and check whether work is left; `reap` runs it then.
    #[inline(always)]
    fn events_flag(&mut self, want: u32) -> u32 {
        if want > 0 || self.mode.polled {
            return ENTER_GETEVENTS;
        }
        if !self.mode.deferred || self.asks_for_events == 0 {
            return 0;
        }
        self.asks_for_events -= 1;
        ENTER_GETEVENTS
    }

    /// Collects completions without waiting and returns the number of entries filled in `out`.
    ///
    /// # Panics
    /// If the kernel completes an op that is not in flight.
    #[inline(always)]
    pub fn reap(&mut self, out: &mut [Completion]) -> usize {
        let mut count = 0;
        if self.ready.count() > 0 {
            count = self.ready.take(out);
        }
        count += self.pop(&mut out[count..]);
        if self.has_hidden_work(count) {
            self.asks_for_events = ASK_FOR_EVENTS;
            // With something to return now, the rest can wait for the next submission.
            if count == 0 {
                count = self.look_for_work(out);
            }
        }
        count
    }

    /// Returns, once, whether the last `reap` entered the kernel to find its completions.
    #[inline(always)]
    pub fn has_looked(&mut self) -> bool {
        // Tested before it is reset: most reaps make no call, and write nothing here.
        self.looked && std::mem::take(&mut self.looked)
    }

    /// Returns whether entering the kernel may produce completions.
    #[inline(always)]
    fn has_hidden_work(&self, found: usize) -> bool {
        if self.mode.polled {
            return found == 0;
        }
        self.rings.submission.work_is_waiting()
    }

    #[cold]
    #[inline(never)]
    fn look_for_work(&mut self, out: &mut [Completion]) -> usize {
        if self.with_kernel() == 0 {
            return 0;
        }
        // An error recurs in the next submit or wait, which can report it.
        let _ignored = self.enter(0, 0, ENTER_GETEVENTS);
        self.looked = true;
        self.pop(out)
    }

    /// Sleeps until `min` completions can be reaped, `span` has passed or a signal arrives;
    /// `None` waits indefinitely.
    ///
    /// # Errors
    /// The error of `io_uring_enter(2)`; the ring can no longer be used.
    pub fn wait(&mut self, min: u32, span: Option<Nanos>) -> io::Result<()> {
        let ready = u32::try_from(self.ready.count()).unwrap_or(u32::MAX);
        let min = min.saturating_sub(ready).min(self.with_kernel());
        if min == 0 || self.rings.completion.len() >= min {
            return Ok(());
        }
        match self.enter_for(min, span) {
            Ok(_) => Ok(()),
            Err(error) => match error.raw_os_error() {
                Some(libc::ETIME | libc::EINTR) => Ok(()),
                _ => Err(error),
            },
        }
    }

    /// Returns the ring's descriptor, which is readable while there is a completion to reap, or
    /// task work to run.
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.rings.descriptor()
    }

    /// Returns the buffer of a slot that is not in flight.
    ///
    /// # Panics
    /// If the slot is in flight.
    #[inline]
    pub fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        assert!(!self.in_flight.contains(slot), "slot {slot:?} is in flight");
        self.memory.buffers.get(slot)
    }

    /// Returns the second buffer of a slot that is not in flight; empty if there are none.
    ///
    /// # Panics
    /// If the slot is in flight.
    #[inline]
    pub fn extra_buffer(&mut self, slot: Slot) -> &mut [u8] {
        assert!(!self.in_flight.contains(slot), "slot {slot:?} is in flight");
        match &mut self.memory.extra {
            Some(extra) => extra.get(slot),
            None => &mut [],
        }
    }

    /// Returns a part of the buffer of a slot that is not in flight, and its second buffer, which
    /// is empty if there are none.
    ///
    /// # Panics
    /// If the slot is in flight, or its buffer too short.
    #[inline]
    pub fn data_and_metadata(
        &mut self,
        slot: Slot,
        offset: u32,
        length: u32,
    ) -> (&mut [u8], &mut [u8]) {
        assert!(!self.in_flight.contains(slot), "slot {slot:?} is in flight");
        let memory = &mut *self.memory;
        let extra = match &mut memory.extra {
            Some(extra) => extra.get(slot),
            None => &mut [],
        };
        (memory.buffers.part(slot, offset, length), extra)
    }

    /// Releases the buffer of a slot that is not in flight to other threads.
    ///
    /// # Panics
    /// If the slot is in flight.
    pub fn release(&mut self, slot: Slot) {
        assert!(!self.in_flight.contains(slot), "slot {slot:?} is in flight");
        self.memory.buffers.release(slot);
    }

    /// Updates a file of the table after it was opened, or closed (`None`); needed only if files
    /// are registered.
    ///
    /// # Errors
    /// The error of `io_uring_register(2)`.
    pub fn set_file(&mut self, index: u32, file: Descriptor<'_>) -> io::Result<()> {
        if !self.mode.fixed_files {
            return Ok(());
        }
        self.register_file(index, raw(file))
    }

    /// Returns the number of ops between `push` and `reap`.
    #[must_use]
    pub const fn in_flight(&self) -> u32 {
        self.rings.in_flight()
    }

    /// Returns the number of ops that are queued and not submitted.
    #[must_use]
    pub const fn queued(&self) -> u32 {
        self.rings.submission.unpublished()
    }

    /// Returns the number of system calls since the ring was created.
    #[must_use]
    #[inline]
    pub const fn calls(&self) -> u64 {
        self.calls
    }

    /// Returns the optional kernel features in use, by the kernel's names.
    #[must_use]
    pub fn features(&self) -> &[&'static str] {
        &self.features
    }

    /// Returns the optional features that were requested but that the kernel lacks.
    #[must_use]
    pub fn refused(&self) -> &[&'static str] {
        &self.refused
    }

    /// Returns the ops that will complete in the kernel, including those that its SQPOLL thread has
    /// yet to take.
    #[inline]
    fn with_kernel(&self) -> u32 {
        let submission = &self.rings.submission;
        self.rings.in_flight()
            - match self.mode.kernel_thread {
                true => submission.unpublished(),
                false => submission.untaken(),
            }
    }

    #[inline(always)]
    fn pop(&mut self, out: &mut [Completion]) -> usize {
        self.rings.completion.take(out, &mut self.in_flight)
    }

    /// Waits for all ops in the kernel; false if they did not complete in time.
    fn drain(&mut self) -> bool {
        let mut out = [Completion::default(); 64];
        for _ in 0..DRAIN_WAITS {
            while self.reap(&mut out) > 0 {}
            if self.with_kernel() == 0 {
                return true;
            }
            // Submitted entries may be pending while the SQPOLL thread sleeps.
            if self.mode.kernel_thread && self.submit_to_thread(0).is_err() {
                return false;
            }
            if self.wait(1, Some(DRAIN_STEP)).is_err() {
                return false;
            }
        }
        false
    }
}

impl<const BIG: bool> Drop for Ring<BIG> {
    fn drop(&mut self) {
        let drained = self.drain();
        self.unregister_fd();
        // SAFETY: the field is not used again: this is the end of the ring.
        let memory = unsafe { ManuallyDrop::take(&mut self.memory) };
        if !drained {
            // The kernel may still write to the buffers, so they are leaked.
            memory.buffers.leak();
            memory.extra.into_iter().for_each(Buffers::leak);
            Box::leak(memory.vectors);
            Box::leak(memory.attributes);
        }
    }
}

/// Steps in which a drop waits for the kernel, 30 s in all, the usual timeout of a disk's request.
const DRAIN_STEP: Nanos = Nanos::from_millis(100);
const DRAIN_WAITS: u32 = 300;

/// Submissions that run task work after some was found, before the next check: one call in 64 is
/// then wasted (guess: fewer react faster to a changing load, more waste less).
const ASK_FOR_EVENTS: u32 = 63;

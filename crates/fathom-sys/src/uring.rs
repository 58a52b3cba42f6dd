//! io_uring: a ring with the buffers and the in-flight table of one worker.
//!
//! `rings.rs` has the queues that are shared with the kernel, `setup.rs` their making step by
//! step, `ops.rs` what an op is for the kernel, `enter.rs` the system call; handing over, waiting,
//! and the ownership of buffers are here.

mod abi;
mod call;
mod enter;
mod entry;
mod ops;
mod rings;
mod setup;
#[cfg(test)]
mod tests;

use std::io;
use std::mem::ManuallyDrop;

use fathom_core::{Completion, Direction, Nanos, Op, OpKind, Slot};

use crate::file_io::{Descriptor, raw};
use crate::in_flight::{InFlight, Ready};
use crate::memory::Buffers;

use abi::ENTER_GETEVENTS;
use enter::{RETRIES, no_room};
use entry::Fields;
use ops::{Mode, buffer_number};
use rings::Rings;

pub use setup::{RING_ENTRIES_MAX, RingConfig, RingError};

/// One ring, used by the thread that made it (the kernel holds it to that).
///
/// An op owns its slot's buffer from `push` until `reap` has given out its completion.
#[derive(Debug)]
pub struct Ring {
    rings: Rings,
    /// What `io_uring_enter` is called with: the ring's own descriptor, or its registered number.
    enter_fd: i32,
    /// Says which of the two it is; 0 for the former.
    enter_flags: u32,
    mode: Mode,
    features: Vec<&'static str>,
    refused: Vec<&'static str>,
    /// Freed by `drop` once nothing is in flight, else leaked.
    memory: ManuallyDrop<Memory>,
    in_flight: InFlight,
    /// Completions that did not come through the ring.
    ready: Ready,
    /// Ops until the next one that is handed to a kernel worker.
    until_async: u32,
    /// For so many more submissions completion work is run at once; see `submit`.
    asks_for_events: u32,
    /// Calls of `io_uring_enter`.
    calls: u64,
}

/// What the kernel may be reading or writing.
#[derive(Debug)]
struct Memory {
    buffers: Buffers,
    /// One for each slot, where vectors are asked for; else none.
    vectors: Box<[libc::iovec]>,
}

impl Ring {
    /// Lays an op down. Not for trims, which the ring cannot take. `file` is asked for the open
    /// file where that is not registered.
    ///
    /// # Panics
    /// If the op's slot is in flight or its data do not lie in the slot's buffer.
    #[inline(always)]
    pub fn push<'file>(&mut self, op: &Op, file: impl FnOnce() -> Descriptor<'file>) {
        // Two ways down to the entry, so that on the usual one nothing but the entry is ever in
        // memory: an op or fields that a function is given are stored narrow and read wide.
        match op.kind {
            OpKind::Data(direction @ (Direction::Read | Direction::Write)) if self.mode.plain => {
                let fields = self.data_fields(op, direction == Direction::Write, file);
                self.lay_down(op.slot, fields);
            }
            _ => {
                let op = *op;
                self.push_uncommon(&op, file());
            }
        }
    }

    /// Lays down reads or writes that are like `op` in all but slot and offset: one for each of
    /// `slots`, at the offset that `offset` gives for it.
    ///
    /// # Panics
    /// As `push`.
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
        // SAFETY: as in `lay_down`.
        unsafe { self.rings.submission.push_all(entries) };
    }

    #[inline(never)]
    fn push_uncommon(&mut self, op: &Op, file: Descriptor<'_>) {
        let fields = self.uncommon_fields(op, file);
        self.lay_down(op.slot, fields);
    }

    /// The entry of an op, all but its number of which is in `fields`.
    #[inline(always)]
    fn lay_down(&mut self, slot: Slot, mut fields: Fields) {
        fields.user_data = self.in_flight.begin(slot);
        // SAFETY: the slot was free, so fewer ops than slots were in flight, and the queue has a
        // place for each slot. The entry names a part of the slot's buffer, checked by
        // `Buffers::address`, and perhaps the slot's vector. Both live in `memory` until the op
        // has completed or for ever (see `drop`), and `buffer` gives no reference to them while
        // the slot is in flight.
        unsafe { self.rings.submission.push(fields.entry()) };
    }

    /// An op was done outside of the ring: its completion comes with the others.
    pub fn complete(&mut self, slot: Slot, result: i32) {
        let user_data = self.in_flight.begin(slot);
        self.ready.push(self.in_flight.end(user_data), result);
    }

    /// Hands over what is laid down and waits until `want` completions can be reaped, or a signal
    /// comes.
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
                // None of them: the kernel has no room, and says so when it is asked again.
                Ok(0) => self.make_room(&no_room(), &mut retries)?,
                Ok(taken) => left -= taken.min(left),
                Err(error) => self.make_room(&error, &mut retries)?,
            }
        }
        Ok(())
    }

    /// Whether a submission that waits for `want` completions also has the kernel look for them.
    ///
    /// Where completion work waits for us, it is run by the call that submits. But ops that
    /// complete at once (from the page cache) leave no such work, and then looking for it is a
    /// twentieth of what a no-op costs. So every now and then we submit without, and see whether
    /// work is left; `reap` runs it then.
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

    /// Collects completions without waiting; returns how many entries of `out` are filled.
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
            // With something to give out now, the rest can wait for the next submission.
            if count == 0 {
                count = self.look_for_work(out);
            }
        }
        count
    }

    /// Whether completions may be had by entering the kernel.
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
        // An error here shows itself in the next submit or wait, which can report it.
        let _ignored = self.enter(0, 0, ENTER_GETEVENTS);
        self.pop(out)
    }

    /// Sleeps until `min` completions can be reaped, `span` has passed or a signal has come;
    /// `None` is without end.
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

    /// The buffer of a slot that is not in flight.
    ///
    /// # Panics
    /// If it is in flight.
    #[inline]
    pub fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        assert!(!self.in_flight.contains(slot), "slot {slot:?} is in flight");
        self.memory.buffers.get(slot)
    }

    /// Lets another thread have its turn with the buffer of a slot that is not in flight.
    ///
    /// # Panics
    /// If it is in flight.
    pub fn let_go(&mut self, slot: Slot) {
        assert!(!self.in_flight.contains(slot), "slot {slot:?} is in flight");
        self.memory.buffers.let_go(slot);
    }

    /// Tells the ring that a file of the table was opened (or closed: `None`); needed only where
    /// files are registered.
    ///
    /// # Errors
    /// The error of `io_uring_register(2)`.
    pub fn set_file(&mut self, index: u32, file: Descriptor<'_>) -> io::Result<()> {
        if !self.mode.fixed_files {
            return Ok(());
        }
        self.register_file(index, raw(file))
    }

    /// Ops between `push` and `reap`.
    #[must_use]
    pub const fn in_flight(&self) -> u32 {
        self.rings.in_flight()
    }

    /// How often the kernel was entered since the ring was made.
    #[must_use]
    #[inline]
    pub const fn calls(&self) -> u64 {
        self.calls
    }

    /// What of the kernel's optional features is in use, as the kernel spells it.
    #[must_use]
    pub fn features(&self) -> &[&'static str] {
        &self.features
    }

    /// Those of the optional features that were asked for and the kernel does not have.
    #[must_use]
    pub fn refused(&self) -> &[&'static str] {
        &self.refused
    }

    /// Those of the ops in flight that the kernel has, so that they will complete. What its thread
    /// has yet to take counts: it will.
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

    /// Waits for all that the kernel has; false if it would not give it back.
    fn drain(&mut self) -> bool {
        let mut out = [Completion::default(); 64];
        for _ in 0..DRAIN_WAITS {
            while self.reap(&mut out) > 0 {}
            if self.with_kernel() == 0 {
                return true;
            }
            // What was handed over may lie there while the thread sleeps.
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

impl Drop for Ring {
    fn drop(&mut self) {
        let drained = self.drain();
        self.unregister_fd();
        // SAFETY: the field is not used again: this is the end of the ring.
        let memory = unsafe { ManuallyDrop::take(&mut self.memory) };
        if !drained {
            // The kernel may yet write to them, so they are never used for anything else.
            memory.buffers.leak();
            Box::leak(memory.vectors);
        }
    }
}

/// A drop waits for the kernel in steps, 30 s in all: as long as a disk's own time-out for a
/// request.
const DRAIN_STEP: Nanos = Nanos::from_millis(100);
const DRAIN_WAITS: u32 = 300;

/// Completion work that was left once is looked for in so many submissions before we see whether
/// there still is any: one call in 64 is then made for nothing. A guess between a load that
/// changes and a call that is for nothing.
const ASK_FOR_EVENTS: u32 = 63;

//! io_uring: a ring with the buffers and the in-flight table of one worker.
//!
//! A thin layer over the `io-uring` crate, which lays out the rings and the entries; set-up by
//! steps, the system call itself, waiting, and the ownership of buffers are here.

mod entry;
mod setup;

use std::io;
use std::mem::ManuallyDrop;

use fathom_core::{Completion, Direction, Nanos, Op, OpKind, Slot, SyncKind};
use io_uring::squeue::Flags;
use io_uring::{EnterFlags, IoUring, opcode, types};

use crate::clock;
use crate::flight::{InFlight, Ready};
use crate::memory::Buffers;
use crate::rw::{Descriptor, RwFlags, raw};

use entry::Fields;

pub use setup::{MOST_ENTRIES, RingConfig, RingError};

/// One ring, used by the thread that made it (the kernel holds it to that).
///
/// An op owns its slot's buffer from `push` until `reap` has given out its completion.
pub struct Ring {
    ring: IoUring,
    /// What `io_uring_enter` is called with: the ring's own descriptor, or its registered number.
    enter_fd: i32,
    registered_fd: bool,
    mode: Mode,
    flags: RwFlags,
    features: Vec<&'static str>,
    /// Freed by `drop` once nothing is in flight, else leaked.
    memory: ManuallyDrop<Memory>,
    in_flight: InFlight,
    /// Pushed and not yet with the kernel; always 0 where the kernel's thread takes them itself.
    unsubmitted: u32,
    /// Completions that did not come through the ring.
    ready: Ready,
    /// Ops until the next one that is handed to a kernel worker.
    until_async: u32,
    /// Calls of `io_uring_enter`.
    calls: u64,
}

/// What the kernel may be reading or writing.
struct Memory {
    buffers: Buffers,
    /// One for each slot, where vectors are asked for; else none.
    vectors: Box<[libc::iovec]>,
}

/// How ops are made and completions come about; does not change over a ring's life.
#[derive(Clone, Copy, Debug, Default)]
struct Mode {
    fixed_buffers: bool,
    fixed_files: bool,
    vectored: bool,
    /// The kernel's thread takes the ops.
    kernel_thread: bool,
    /// Completions are polled for.
    polled: bool,
    /// Completion work waits until we enter the kernel for it.
    deferred: bool,
    /// Every so many ops one goes to a kernel worker; 0 never.
    force_async: u32,
    /// Ops do nothing.
    nops: bool,
}

impl Ring {
    /// Lays an op down. Not for trims, which the ring cannot take.
    ///
    /// # Panics
    /// If the op's slot is in flight or its data do not lie in the slot's buffer.
    #[inline(always)]
    pub fn push(&mut self, op: &Op, file: Descriptor<'_>) {
        let mut fields = self.fields(op, file);
        if self.mode.fixed_files {
            fields.flags |= Flags::FIXED_FILE.bits();
        }
        if self.mode.force_async > 0 {
            self.until_async -= 1;
            if self.until_async == 0 {
                self.until_async = self.mode.force_async;
                fields.flags |= Flags::ASYNC.bits();
            }
        }
        fields.user_data = self.in_flight.begin(op.slot);
        let entry = fields.entry();
        // SAFETY: the entry names a part of the slot's buffer, checked by `Buffers::address`, and
        // perhaps the slot's vector. Both live in `memory` until the op has completed or for ever
        // (see `drop`), and `buffer` gives no reference to them while the slot is in flight.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        assert!(pushed.is_ok(), "as many entries as slots");
        if !self.mode.kernel_thread {
            self.unsubmitted += 1;
        }
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
    /// What `io_uring_enter(2)` said; the ring can no longer be used.
    pub fn submit(&mut self, want: u32) -> io::Result<()> {
        let want = want.min(self.in_flight.count());
        if self.mode.kernel_thread {
            return self.submit_to_thread(want);
        }
        if self.unsubmitted == 0 {
            return self.wait(want, None);
        }
        let events = want > 0 || self.mode.deferred || self.mode.polled;
        let flags = if events {
            EnterFlags::GETEVENTS
        } else {
            EnterFlags::empty()
        };
        while self.unsubmitted > 0 {
            match self.enter(self.unsubmitted, want, flags, None) {
                Ok(taken) => self.unsubmitted -= taken.min(self.unsubmitted),
                Err(error) => self.make_room(error)?,
            }
        }
        Ok(())
    }

    /// Collects completions without waiting; returns how many entries of `out` are filled.
    ///
    /// # Panics
    /// If the kernel completes an op that is not in flight.
    #[inline]
    pub fn reap(&mut self, out: &mut [Completion]) -> usize {
        let mut count = self.ready.take(out);
        count += self.pop(&mut out[count..]);
        if count == 0 && self.in_flight.count() > self.unsubmitted && self.work_is_waiting() {
            // An error here shows itself in the next submit or wait, which can report it.
            let _ignored = self.enter(0, 0, EnterFlags::GETEVENTS, None);
            count = self.pop(out);
        }
        count
    }

    /// Sleeps until `min` completions can be reaped, `span` has passed or a signal has come;
    /// `None` is without end.
    ///
    /// # Errors
    /// What `io_uring_enter(2)` said; the ring can no longer be used.
    pub fn wait(&mut self, min: u32, span: Option<Nanos>) -> io::Result<()> {
        let ready = u32::try_from(self.ready.count()).unwrap_or(u32::MAX);
        let min = min
            .saturating_sub(ready)
            .min(self.in_flight.count() - self.unsubmitted);
        if min == 0 || self.ring.completion().len() >= min as usize {
            return Ok(());
        }
        match self.enter(0, min, EnterFlags::GETEVENTS, span) {
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

    /// Tells the ring that a file of the table was opened (or closed: `None`); needed only where
    /// files are registered.
    ///
    /// # Errors
    /// What `io_uring_register(2)` said.
    pub fn set_file(&mut self, index: u32, file: Descriptor<'_>) -> io::Result<()> {
        if !self.mode.fixed_files {
            return Ok(());
        }
        let submitter = self.ring.submitter();
        submitter
            .register_files_update(index, &[raw(file)])
            .map(drop)
    }

    /// Ops between `push` and `reap`.
    #[must_use]
    pub const fn in_flight(&self) -> u32 {
        self.in_flight.count()
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

    #[inline(always)]
    fn fields(&mut self, op: &Op, file: Descriptor<'_>) -> Fields {
        if self.mode.nops {
            return Fields {
                opcode: opcode::Nop::CODE,
                file: -1,
                ..Fields::default()
            };
        }
        let file = if self.mode.fixed_files {
            op.file.get().cast_signed()
        } else {
            raw(file)
        };
        let write = match op.kind {
            OpKind::Data(Direction::Read) => false,
            OpKind::Data(Direction::Write) => true,
            OpKind::Data(Direction::Trim) => panic!("a trim in the ring"),
            OpKind::Sync(kind) => return sync_fields(file, kind),
        };
        let memory = &mut *self.memory;
        let address = memory.buffers.address(op.slot, op.buffer_offset, op.length);
        let mut fields = Fields {
            opcode: if write {
                opcode::Write::CODE
            } else {
                opcode::Read::CODE
            },
            priority: op.priority,
            file,
            offset: op.offset,
            address: address.addr() as u64,
            length: op.length,
            op_flags: self.flags.bits().cast_unsigned(),
            ..Fields::default()
        };
        if self.mode.fixed_buffers {
            fields.buffer = u16::try_from(op.slot.get()).unwrap_or(u16::MAX);
            fields.opcode = if write {
                opcode::WriteFixed::CODE
            } else {
                opcode::ReadFixed::CODE
            };
        } else if self.mode.vectored {
            let vector = &mut memory.vectors[op.slot.index()];
            vector.iov_base = address.cast();
            vector.iov_len = op.length as usize;
            fields.address = (&raw const *vector).expose_provenance() as u64;
            fields.length = 1;
            fields.opcode = if write {
                opcode::Writev::CODE
            } else {
                opcode::Readv::CODE
            };
        }
        fields
    }

    /// Wakes the kernel's thread if it has gone to sleep, and waits for `want` completions.
    fn submit_to_thread(&mut self, want: u32) -> io::Result<()> {
        // The push has published the tail; `need_wakeup` has the barrier between that and
        // reading the thread's flag.
        let mut flags = EnterFlags::empty();
        if self.ring.submission().need_wakeup() {
            flags |= EnterFlags::SQ_WAKEUP;
        }
        if want > 0 {
            flags |= EnterFlags::GETEVENTS;
        }
        if flags.is_empty() {
            return Ok(());
        }
        match self.enter(0, want, flags, None) {
            Err(error) if error.raw_os_error() != Some(libc::EINTR) => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// What to do when the kernel did not take an entry: nothing after a signal; wait for a
    /// completion where it is out of requests.
    #[cold]
    fn make_room(&mut self, error: io::Error) -> io::Result<()> {
        match error.raw_os_error() {
            Some(libc::EINTR) => Ok(()),
            Some(libc::EAGAIN | libc::EBUSY) if self.in_flight.count() > self.unsubmitted => {
                self.wait(1, Some(RETRY))
            }
            _ => Err(error),
        }
    }

    /// Whether completions may be had by entering the kernel.
    fn work_is_waiting(&mut self) -> bool {
        if self.mode.polled {
            return true;
        }
        let submission = self.ring.submission();
        submission.taskrun() || submission.cq_overflow()
    }

    #[inline]
    fn pop(&mut self, out: &mut [Completion]) -> usize {
        let entries = self.ring.completion();
        let mut count = 0;
        for (place, entry) in out.iter_mut().zip(entries) {
            *place = Completion {
                slot: self.in_flight.end(entry.user_data()),
                result: entry.result(),
            };
            count += 1;
        }
        count
    }

    /// `io_uring_enter(2)`; returns how many entries the kernel took.
    fn enter(
        &mut self,
        submit: u32,
        min: u32,
        flags: EnterFlags,
        span: Option<Nanos>,
    ) -> io::Result<u32> {
        let time = clock::timespec(span.map_or(0, Nanos::get));
        let argument = EventsArgument {
            mask: 0,
            mask_size: 0,
            min_wait_us: 0,
            time: (&raw const time).addr() as u64,
        };
        let mut flags = flags;
        let (mut address, mut size) = (std::ptr::null(), 0);
        if span.is_some() {
            flags |= EnterFlags::EXT_ARG;
            (address, size) = (&raw const argument, size_of::<EventsArgument>());
        }
        if self.registered_fd {
            flags |= EnterFlags::REGISTERED_RING;
        }
        self.calls += 1;
        // SAFETY: the argument is null, or a live structure of the size given that names a live
        // timespec. What the entries name is kept alive by `push`.
        let taken = unsafe {
            libc::syscall(
                libc::SYS_io_uring_enter,
                self.enter_fd,
                submit,
                min,
                flags.bits(),
                address,
                size,
            )
        };
        u32::try_from(taken).map_err(|_negative| io::Error::last_os_error())
    }

    /// Waits for all that the kernel has; false if it would not give it back.
    fn drain(&mut self) -> bool {
        let mut out = [Completion::default(); 64];
        for _ in 0..DRAIN_WAITS {
            while self.reap(&mut out) > 0 {}
            if self.in_flight.count() == self.unsubmitted {
                return true;
            }
            // What was laid down and never handed over may lie there while the thread sleeps.
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

fn sync_fields(file: i32, kind: SyncKind) -> Fields {
    let flags = match kind {
        SyncKind::Full => types::FsyncFlags::empty(),
        SyncKind::Data => types::FsyncFlags::DATASYNC,
    };
    Fields {
        opcode: opcode::Fsync::CODE,
        file,
        op_flags: flags.bits(),
        ..Fields::default()
    }
}

/// `struct io_uring_getevents_arg` of <linux/io_uring.h>.
#[repr(C)]
struct EventsArgument {
    mask: u64,
    mask_size: u32,
    min_wait_us: u32,
    time: u64,
}

const _: () = assert!(size_of::<EventsArgument>() == 24);

/// How long to wait for a completion before trying again when the kernel was out of requests:
/// long against an op, short against a person.
const RETRY: Nanos = Nanos::from_millis(10);

/// A drop waits for the kernel in steps, 30 s in all: as long as a disk's own time-out for a
/// request.
const DRAIN_STEP: Nanos = Nanos::from_millis(100);
const DRAIN_WAITS: u32 = 300;

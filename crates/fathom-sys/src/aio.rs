//! Linux's native asynchronous I/O (`io_setup`, `io_submit`, `io_getevents`, `io_destroy`) by raw
//! system calls: a context with the buffers and the in-flight table of one worker.

mod ring;

use std::io;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU32, Ordering};

use fathom_core::{Completion, Direction, EngineStep, Nanos, Op, OpKind, Slot};

use crate::clock;
use crate::file_io::{Descriptor, RwFlags, raw};
use crate::in_flight::{InFlight, Ready};
use crate::memory::{Buffers, MemoryPlacement};

use ring::EventRing;

/// Returns whether this kernel has native AIO, without creating a context, whose destruction takes
/// tens of milliseconds. Room for ops (`fs.aio-max-nr`) is not checked.
#[must_use]
pub fn is_permitted() -> bool {
    let mut id: libc::c_ulong = 0;
    let no_slots: libc::c_uint = 0;
    // SAFETY: the kernel would write one word to a live one; it makes no context without slots.
    let failed = unsafe { libc::syscall(libc::SYS_io_setup, no_slots, &raw mut id) };
    failed != 0 && io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL)
}

/// Returns the number of open contexts. The kernel delays the exit of a process that has one until
/// its ops in flight have completed.
pub(crate) fn contexts() -> u32 {
    // Relaxed: a count that guards no other memory.
    CONTEXTS.load(Ordering::Relaxed)
}

static CONTEXTS: AtomicU32 = AtomicU32::new(0);

/// An AIO context with the buffers and the in-flight table of one worker.
///
/// `push` queues an op, `submit` hands all queued ops to the kernel in one system call, `reap`
/// collects completions. An op owns its slot's buffer from `push` until `reap` has returned its
/// completion. Completions are taken from the mapped ring without a system call where its layout is
/// known. All memory is allocated by the constructor. Dropping a busy context waits up to 30 s,
/// then leaks the memory that the kernel may still write to.
pub struct Context {
    id: libc::c_ulong,
    /// The kernel's event ring, if its layout is the known one.
    ring: Option<EventRing>,
    /// Flags of reads and of writes.
    flags: [RwFlags; 2],
    /// Freed by `drop` once nothing is in flight, else leaked.
    buffers: ManuallyDrop<Buffers>,
    /// One per slot; the kernel copies it during submission.
    blocks: Box<[ControlBlock]>,
    /// One per slot if ops use vectors; else empty.
    vectors: Box<[libc::iovec]>,
    /// Slots queued and not yet submitted, in order.
    queue: Vec<Slot>,
    /// Argument of `io_submit`: one address per slot.
    addresses: Vec<*mut ControlBlock>,
    in_flight: InFlight,
    /// Ops queued or in the kernel.
    count: u32,
    /// Completions taken from the kernel, or made without it.
    ready: Ready,
    /// Output of `io_getevents`.
    events: Box<[Event]>,
    /// Number of calls of `io_submit` and `io_getevents`.
    calls: u64,
    /// The last `reap` made a system call.
    looked: bool,
}

impl Context {
    /// Creates a context for `slots` ops, each with a buffer of `buffer_bytes`.
    ///
    /// # Errors
    /// The failed step, creating the context or mapping the buffers, and its error: EAGAIN if the
    /// system-wide limit `fs.aio-max-nr` is reached.
    ///
    /// # Panics
    /// If there are no slots or no bytes.
    pub fn new(
        slots: u32,
        buffer_bytes: u32,
        memory: &MemoryPlacement,
        flags: [RwFlags; 2],
        vectored: bool,
    ) -> Result<Self, (EngineStep, io::Error)> {
        let buffers = Buffers::within(memory, slots, buffer_bytes)
            .map_err(|error| (EngineStep::MapBuffers, error))?;
        let mut id: libc::c_ulong = 0;
        // SAFETY: the kernel writes one word to a live one, which is zero as it must be.
        let failed = unsafe { libc::syscall(libc::SYS_io_setup, slots, &raw mut id) };
        if failed != 0 {
            return Err((EngineStep::SetUpContext, io::Error::last_os_error()));
        }
        CONTEXTS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: `id` was given by `io_setup` just now, and the ring is dropped before it is
        // given back.
        let ring = unsafe { EventRing::of(id) };
        Ok(Self {
            id,
            ring,
            flags,
            buffers: ManuallyDrop::new(buffers),
            blocks: vec![ControlBlock::default(); slots as usize].into_boxed_slice(),
            vectors: match vectored {
                true => vec![NO_VECTOR; slots as usize].into_boxed_slice(),
                false => Box::default(),
            },
            queue: Vec::with_capacity(slots as usize),
            addresses: Vec::with_capacity(slots as usize),
            in_flight: InFlight::new(slots),
            count: 0,
            ready: Ready::new(slots),
            events: vec![Event::default(); slots as usize].into_boxed_slice(),
            calls: 0,
            looked: false,
        })
    }

    /// Returns whether ops use vectors of one.
    #[must_use]
    pub const fn is_vectored(&self) -> bool {
        !self.vectors.is_empty()
    }

    /// Returns whether completions are taken from the ring without a system call.
    #[must_use]
    pub const fn reaps_in_user_space(&self) -> bool {
        self.ring.is_some()
    }

    /// Queues a read or a write.
    ///
    /// # Panics
    /// If the op is neither, its slot is in flight, or its data are outside the slot's buffer.
    #[inline]
    pub fn push(&mut self, op: &Op, file: Descriptor<'_>) {
        let (opcode, rw_flags) = match op.kind {
            OpKind::Data(Direction::Read) => (COMMAND_PREAD, self.flags[0]),
            OpKind::Data(Direction::Write) => (COMMAND_PWRITE, self.flags[1]),
            OpKind::Data(Direction::Trim) | OpKind::Sync(_) => panic!("{op:?} moves no data"),
        };
        let address = self.buffers.address(op.slot, op.buffer_offset, op.length);
        let flags = if op.priority == 0 { 0 } else { FLAG_PRIORITY };
        self.blocks[op.slot.index()] = ControlBlock {
            data: self.in_flight.begin(op.slot),
            #[cfg(target_endian = "little")]
            key: 0,
            rw_flags: rw_flags.bits().cast_unsigned(),
            #[cfg(target_endian = "big")]
            key: 0,
            opcode,
            priority: op.priority.cast_signed(),
            file: raw(file).cast_unsigned(),
            buffer: address.addr() as u64,
            bytes: u64::from(op.length),
            offset: op.offset.cast_signed(),
            reserved: 0,
            flags,
            event_file: 0,
        };
        if !self.vectors.is_empty() {
            self.make_vector(op);
        }
        self.count += 1;
        self.queue.push(op.slot);
    }

    /// Converts a queued block to the vectored opcode.
    fn make_vector(&mut self, op: &Op) {
        let vector = &mut self.vectors[op.slot.index()];
        *vector = libc::iovec {
            iov_base: self
                .buffers
                .address(op.slot, op.buffer_offset, op.length)
                .cast(),
            iov_len: op.length as usize,
        };
        let block = &mut self.blocks[op.slot.index()];
        block.opcode += COMMAND_VECTORED;
        block.buffer = (&raw const *vector).expose_provenance() as u64;
        block.bytes = 1;
    }

    /// Adds the completion of an op performed by other means.
    pub fn complete(&mut self, slot: Slot, result: i32) {
        let data = self.in_flight.begin(slot);
        self.ready.push(self.in_flight.end(data), result);
    }

    /// Submits all queued ops. Ops that the kernel refuses complete with its error.
    ///
    /// # Errors
    /// The error of `io_submit(2)` or `io_getevents(2)` of the context itself; it can no longer be
    /// used.
    pub fn submit(&mut self) -> io::Result<()> {
        self.addresses.clear();
        let blocks = self.blocks.as_mut_ptr();
        let places = self.queue.iter().map(|slot| {
            // SAFETY: `push` has indexed the blocks with this slot.
            unsafe { blocks.add(slot.index()) }
        });
        self.addresses.extend(places);
        let mut next = 0;
        let done = self.submit_all(&mut next);
        // Ops that the kernel did not take stay queued, so that `wait` does not count them.
        self.queue.drain(..next);
        done
    }

    /// Submits from index `next` of the queue on, and advances it.
    #[inline]
    fn submit_all(&mut self, next: &mut usize) -> io::Result<()> {
        let mut retries = RETRIES;
        while *next < self.queue.len() {
            match self.submit_from(*next) {
                Ok(taken) => *next += taken,
                Err(libc::EINTR) => {}
                Err(libc::EAGAIN) if self.with_kernel(*next) > 0 => {
                    // Out of requests: a completion makes room.
                    self.fetch(1, Some(RETRY))?;
                }
                Err(libc::EAGAIN) if retries > 0 => {
                    // No op of ours can make room: give up after a while.
                    retries -= 1;
                    clock::sleep(RETRY);
                }
                Err(errno @ (libc::EFAULT | libc::ENOSYS)) => {
                    return Err(io::Error::from_raw_os_error(errno));
                }
                Err(errno) => {
                    let slot = self.queue[*next];
                    let back = self.in_flight.end(self.blocks[slot.index()].data);
                    self.count -= 1;
                    self.ready.push(back, -errno);
                    *next += 1;
                }
            }
        }
        Ok(())
    }

    /// Collects completions without waiting and returns the number of entries filled in `out`.
    ///
    /// # Errors
    /// The error of `io_getevents(2)`; the context can no longer be used.
    ///
    /// # Panics
    /// If the kernel completes an op that is not in flight.
    #[inline]
    pub fn reap(&mut self, out: &mut [Completion]) -> io::Result<usize> {
        let mut count = self.ready.take(out);
        if let Some(ring) = &mut self.ring {
            while count < out.len() {
                let Some(event) = ring.pop() else { break };
                out[count] = event.completion(&mut self.in_flight);
                self.count -= 1;
                count += 1;
            }
        } else if count == 0 && self.with_kernel(0) > 0 {
            self.fetch(0, Some(Nanos::ZERO))?;
            self.looked = true;
            count = self.ready.take(out);
        }
        Ok(count)
    }

    /// Returns, once, whether the last `reap` made a system call to find its completions.
    #[inline]
    pub fn has_looked(&mut self) -> bool {
        self.looked && std::mem::take(&mut self.looked)
    }

    /// Sleeps until `min` completions can be reaped, `span` has passed or a signal arrives;
    /// `None` waits indefinitely.
    ///
    /// # Errors
    /// The error of `io_getevents(2)`; the context can no longer be used.
    pub fn wait(&mut self, min: u32, span: Option<Nanos>) -> io::Result<()> {
        let ready = u32::try_from(self.ready.count()).unwrap_or(u32::MAX);
        let min = min.saturating_sub(ready).min(self.with_kernel(0));
        let there = self.ring.as_ref().map_or(0, EventRing::len);
        if min <= there {
            return Ok(());
        }
        self.fetch(min, span)
    }

    /// Returns the buffer of a slot that is not in flight.
    ///
    /// # Panics
    /// If the slot is in flight.
    #[inline]
    pub fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        assert!(!self.in_flight.contains(slot), "slot {slot:?} is in flight");
        self.buffers.get(slot)
    }

    /// Releases the buffer of a slot that is not in flight to other threads.
    ///
    /// # Panics
    /// If the slot is in flight.
    pub fn release(&mut self, slot: Slot) {
        assert!(!self.in_flight.contains(slot), "slot {slot:?} is in flight");
        self.buffers.release(slot);
    }

    /// Returns the number of system calls since the context was created.
    #[must_use]
    #[inline]
    pub const fn calls(&self) -> u64 {
        self.calls
    }

    /// Returns the number of ops that are queued and not submitted.
    #[must_use]
    pub fn queued(&self) -> u32 {
        // Cannot truncate: the queue has no more places than the context.
        u32::try_from(self.queue.len()).unwrap_or(u32::MAX)
    }

    /// Returns the ops held by the kernel after it took `taken` of the queue.
    fn with_kernel(&self, taken: usize) -> u32 {
        let waiting = self.queue.len() - taken;
        self.count - u32::try_from(waiting).unwrap_or(u32::MAX)
    }

    /// Calls `io_submit(2)` from index `next` of the queue on; returns the number of ops taken, or
    /// the errno of the first.
    fn submit_from(&mut self, next: usize) -> Result<usize, i32> {
        self.calls += 1;
        let rest = &mut self.addresses[next..];
        // SAFETY: the context is ours; the addresses are of blocks that live as long as it, and
        // each block names a part of its slot's buffer, which lives until the op has completed or
        // for ever (see `drop`), and is not lent while the slot is in flight.
        let taken =
            unsafe { libc::syscall(libc::SYS_io_submit, self.id, rest.len(), rest.as_mut_ptr()) };
        match usize::try_from(taken) {
            // Zero is undocumented for a non-empty list; it must not become an endless loop.
            Ok(0) => Err(libc::EAGAIN),
            Ok(taken) => Ok(taken),
            Err(_negative) => Err(io::Error::last_os_error()
                .raw_os_error()
                .unwrap_or(libc::EIO)),
        }
    }

    /// Calls `io_getevents(2)`: waits for `min` events and moves all available ones to `ready`.
    fn fetch(&mut self, min: u32, span: Option<Nanos>) -> io::Result<()> {
        self.calls += 1;
        let time = clock::timespec(span.map_or(0, Nanos::get));
        let time = if span.is_some() {
            &raw const time
        } else {
            std::ptr::null()
        };
        // SAFETY: the kernel writes at most as many events as the array holds; the time is null
        // or alive.
        let count = unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.id,
                libc::c_long::from(min),
                self.events.len(),
                self.events.as_mut_ptr(),
                time,
            )
        };
        let Ok(count) = usize::try_from(count) else {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(libc::EINTR) => Ok(()),
                _ => Err(error),
            };
        };
        for event in &self.events[..count] {
            let Completion { slot, result } = event.completion(&mut self.in_flight);
            self.ready.push(slot, result);
        }
        self.count -= u32::try_from(count).unwrap_or(u32::MAX);
        Ok(())
    }

    /// Waits for all ops in the kernel; false if they did not complete in time.
    fn drain(&mut self) -> bool {
        let mut out = [Completion::default(); 64];
        for _ in 0..DRAIN_WAITS {
            while self.reap(&mut out).is_ok_and(|count| count > 0) {}
            if self.with_kernel(0) == 0 {
                return true;
            }
            if self.wait(1, Some(DRAIN_STEP)).is_err() {
                return false;
            }
        }
        false
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let drained = self.drain();
        self.ring = None;
        // SAFETY: the context is ours and is not used again. The kernel waits for its ops where it
        // can, so this is not called before they had their time.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.id) };
        CONTEXTS.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: the field is not used again: this is the end of the context.
        let buffers = unsafe { ManuallyDrop::take(&mut self.buffers) };
        if !drained {
            // The kernel may still write to the buffers, so they are leaked.
            buffers.leak();
        }
    }
}

/// `struct iocb` of <linux/aio_abi.h>.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct ControlBlock {
    data: u64,
    #[cfg(target_endian = "little")]
    key: u32,
    rw_flags: u32,
    #[cfg(target_endian = "big")]
    key: u32,
    opcode: u16,
    priority: i16,
    file: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event_file: u32,
}

const _: () = assert!(size_of::<ControlBlock>() == 64);

/// `struct io_event` of <linux/aio_abi.h>.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Event {
    data: u64,
    block: u64,
    result: i64,
    result_2: i64,
}

const _: () = assert!(size_of::<Event>() == 32);

impl Event {
    #[inline]
    fn completion(&self, in_flight: &mut InFlight) -> Completion {
        Completion {
            slot: in_flight.end(self.data),
            // Bytes of one op, at most 2 GiB less a page, or a negated errno.
            result: i32::try_from(self.result).unwrap_or(-libc::EIO),
        }
    }
}

/// `IOCB_CMD_PREAD`, `IOCB_CMD_PWRITE` and `IOCB_FLAG_IOPRIO` of <linux/aio_abi.h>.
const COMMAND_PREAD: u16 = 0;
const COMMAND_PWRITE: u16 = 1;
const FLAG_PRIORITY: u32 = 2;
/// From `IOCB_CMD_PREAD` to `IOCB_CMD_PREADV`, and the same for writes.
const COMMAND_VECTORED: u16 = 7;

const NO_VECTOR: libc::iovec = libc::iovec {
    iov_base: std::ptr::null_mut(),
    iov_len: 0,
};

/// Wait for a completion before the next try when the kernel is out of requests: long for an op,
/// short for a user.
const RETRY: Nanos = Nanos::from_millis(10);

/// Tries of one submission while none of our ops is in the kernel: one second in all (guess: memory
/// that other programs free comes sooner, or not soon).
const RETRIES: u32 = 100;

/// Steps in which a drop waits for the kernel, 30 s in all, the usual timeout of a disk's request.
const DRAIN_STEP: Nanos = Nanos::from_millis(100);
const DRAIN_WAITS: u32 = 300;

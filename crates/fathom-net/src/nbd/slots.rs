//! The job's slots: their ops, their buffers, and which of them have completed.

use std::collections::VecDeque;

use fathom_core::{Completion, Direction, Errno, Op, OpKind, Slot};
use fathom_nbd::{Command, Request, ServerError};
use fathom_sys::memory::Buffers;

/// Slots of the engine, indexed by number; the number is the tag of a slot's request.
#[derive(Debug)]
pub(crate) struct Slots {
    ops: Box<[SlotOp]>,
    buffers: Buffers,
    done: VecDeque<Completion>,
    /// Failures of which more is known than their errno, the first of each: a job that several ops
    /// fail at once reports the first.
    failures: Vec<(Errno, String)>,
}

/// Terms of an op that its export and the job set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// Bytes of a read or write request at most.
    pub(crate) payload_max: u32,
    /// Request of writes.
    pub(crate) write: Command,
    /// Writes complete when they are on stable storage.
    pub(crate) is_fua: bool,
}

/// Op of a slot. An op beyond the server's limit becomes several requests, one after the other.
#[derive(Clone, Copy, Debug)]
struct SlotOp {
    /// `None` if the slot is free.
    op: Option<Op>,
    /// Connection that has the op.
    link: u64,
    terms: Terms,
    /// Bytes to move: those of the op within the export.
    length: u32,
    /// Bytes that have a request, completed or in flight.
    begun: u32,
}

impl Slots {
    /// Creates free slots.
    pub(crate) fn new(depth: u32, buffers: Buffers) -> Self {
        let free = SlotOp {
            op: None,
            link: 0,
            terms: Terms {
                payload_max: 0,
                write: Command::Write,
                is_fua: false,
            },
            length: 0,
            begun: 0,
        };
        Self {
            ops: vec![free; depth as usize].into_boxed_slice(),
            buffers,
            done: VecDeque::with_capacity(depth as usize),
            failures: Vec::new(),
        }
    }

    /// Returns the buffer of a slot that is not in flight.
    pub(crate) fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        self.buffers.get(slot)
    }

    /// Hands the buffer of a slot to other threads.
    pub(crate) fn release(&mut self, slot: Slot) {
        self.buffers.release(slot);
    }

    /// Takes an op of which `length` bytes are to be moved over a connection, and returns its first
    /// request with the offset of its data in the slot's buffer.
    ///
    /// # Panics
    /// The slot is in flight.
    #[inline]
    pub(crate) fn take(&mut self, op: &Op, length: u32, terms: Terms, link: u64) -> (Request, u32) {
        let place = &mut self.ops[op.slot.index()];
        assert!(place.op.is_none(), "an op in a slot that is in flight");
        *place = SlotOp {
            op: Some(*op),
            link,
            terms,
            length,
            begun: 0,
        };
        place.request(op)
    }

    /// Notes that a request has completed; returns the next one of its op, if there is one.
    #[inline]
    pub(crate) fn completed(
        &mut self,
        tag: u32,
        failure: Option<ServerError>,
    ) -> Option<(Request, u32)> {
        let place = &mut self.ops[tag as usize];
        let op = place.op?;
        let result = match failure {
            Some(error) => error.errno().result(),
            None if place.begun < place.length => return Some(place.request(&op)),
            None => place.length.min(Completion::BYTES_MAX).cast_signed(),
        };
        self.finish(op.slot, result);
        None
    }

    /// Completes an op that has no request in flight.
    #[inline]
    pub(crate) fn finish(&mut self, slot: Slot, result: i32) {
        self.ops[slot.index()].op = None;
        self.done.push_back(Completion { slot, result });
    }

    /// Completes all ops of a connection that is lost.
    #[cold]
    pub(crate) fn fail(&mut self, link: u64, errno: Errno) {
        for number in (0..).take(self.ops.len()) {
            let place = &self.ops[number as usize];
            if place.op.is_some() && place.link == link {
                self.finish(Slot::new(number), errno.result());
            }
        }
    }

    /// Notes what is known about the failure of an op.
    #[cold]
    pub(crate) fn explain(&mut self, errno: Errno, text: String) {
        if self.explanation(errno).is_none() {
            self.failures.push((errno, text));
        }
    }

    /// Notes what is known about the loss of a connection, with which all later ops fail.
    #[cold]
    pub(crate) fn explain_loss(&mut self, errno: Errno, text: String) {
        self.failures.retain(|(other, _)| *other != errno);
        self.failures.push((errno, text));
    }

    /// Returns what is known about the failures with this errno.
    pub(crate) fn explanation(&self, errno: Errno) -> Option<String> {
        let mut failures = self.failures.iter();
        let (_, text) = failures.find(|(own, _)| *own == errno)?;
        Some(text.clone())
    }

    /// Returns the place of data to receive.
    #[inline]
    pub(crate) fn place(&mut self, tag: u32, offset: u32, length: u32) -> &mut [u8] {
        self.buffers.part(Slot::new(tag), offset, length)
    }

    /// Returns data to send.
    #[inline]
    pub(crate) fn data(&self, tag: u32, offset: u32, length: u32) -> &[u8] {
        self.buffers.peek(Slot::new(tag), offset, length)
    }

    /// Returns the number of ops to be reaped.
    #[inline]
    pub(crate) fn ready(&self) -> usize {
        self.done.len()
    }

    /// Takes ops that have completed.
    #[inline]
    pub(crate) fn reap(&mut self, out: &mut [Completion]) -> usize {
        let count = out.len().min(self.done.len());
        for (place, completion) in out.iter_mut().zip(self.done.drain(..count)) {
            *place = completion;
        }
        count
    }
}

impl SlotOp {
    /// Returns the next request, and the offset of its data in the slot's buffer.
    #[inline]
    fn request(&mut self, op: &Op) -> (Request, u32) {
        let command = match op.kind {
            OpKind::Data(Direction::Read) => Command::Read,
            OpKind::Data(Direction::Write) => self.terms.write,
            OpKind::Data(Direction::Trim) => Command::Trim,
            OpKind::Sync(_) => Command::Flush,
        };
        let left = self.length - self.begun;
        let (offset, length) = match command {
            Command::Flush => (0, 0),
            Command::Read | Command::Write => (op.offset, left.min(self.terms.payload_max)),
            Command::Trim | Command::WriteZeroes => (op.offset, left),
        };
        let request = Request {
            command,
            offset: offset + u64::from(self.begun),
            length,
            is_fua: self.terms.is_fua && matches!(command, Command::Write | Command::WriteZeroes),
        };
        let buffer_offset = op.buffer_offset + self.begun;
        self.begun += length;
        (request, buffer_offset)
    }
}

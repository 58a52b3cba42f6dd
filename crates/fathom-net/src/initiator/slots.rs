//! The job's slots: their ops, their buffers, and which of them have completed.

use std::collections::VecDeque;

use fathom_core::{Completion as Reaped, Direction, Errno, Nanos, Op, OpKind, Slot, Tick};
use fathom_nvme::{Command, CommandData, Completion, FORCE_UNIT_ACCESS, Opcode};
use fathom_sys::memory::Buffers;

use crate::initiator::link::{Link, Owner};

/// Slots of the engine, indexed by number; the number is the tag of a slot's commands.
#[derive(Debug)]
pub(crate) struct Slots {
    ops: Box<[SlotOp]>,
    buffers: Buffers,
    /// Range of each slot's trim, as Dataset Management has it.
    ranges: Box<[[u8; RANGE_BYTES]]>,
    /// Bits of dword 12 of writes: `FORCE_UNIT_ACCESS`, if they are to be durable.
    write_flags: u32,
    done: VecDeque<Reaped>,
}

/// Terms of an op that its file sets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// Session of the file's controller.
    pub(crate) session: u32,
    /// Namespace.
    pub(crate) nsid: u32,
    /// Block size as a power of two.
    pub(crate) block_shift: u8,
    /// Bytes of a command at most.
    pub(crate) part_bytes: u32,
}

/// Op whose connection has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Orphan {
    pub(crate) slot: Slot,
    /// Commands of it were given to the connection: the controller may have executed them.
    pub(crate) was_sent: bool,
}

/// Op of a slot.
#[derive(Clone, Copy, Debug)]
struct SlotOp {
    /// `None` if the slot is free.
    op: Option<Op>,
    extent: Extent,
    /// Bytes to move: those of the op within the namespace.
    length: u32,
    /// Bytes that have commands.
    begun: u32,
    /// Commands in flight.
    commands: u32,
    /// Errno of the first command that failed.
    failure: Option<Errno>,
    /// Time of the first look for overdue ops that found its commands in flight.
    seen: Option<Tick>,
}

impl Slots {
    /// Creates free slots; with `is_sync`, a write completes when it is durable.
    pub(crate) fn new(depth: u32, buffers: Buffers, is_sync: bool) -> Self {
        let free = SlotOp {
            op: None,
            extent: Extent {
                session: 0,
                nsid: 0,
                block_shift: 9,
                part_bytes: 0,
            },
            length: 0,
            begun: 0,
            commands: 0,
            failure: None,
            seen: None,
        };
        Self {
            ops: vec![free; depth as usize].into_boxed_slice(),
            buffers,
            ranges: vec![[0; RANGE_BYTES]; depth as usize].into_boxed_slice(),
            write_flags: u32::from(is_sync) * FORCE_UNIT_ACCESS,
            done: VecDeque::with_capacity(depth as usize),
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

    /// Takes an op of which `length` bytes are to be moved.
    ///
    /// # Panics
    /// The slot is in flight.
    #[inline]
    pub(crate) fn take(&mut self, op: &Op, extent: Extent, length: u32) {
        let place = &mut self.ops[op.slot.index()];
        assert!(place.op.is_none(), "an op in a slot that is in flight");
        *place = SlotOp {
            op: Some(*op),
            extent,
            length,
            begun: 0,
            commands: 0,
            failure: None,
            seen: None,
        };
        if op.kind == OpKind::Data(Direction::Trim) {
            let blocks = length >> extent.block_shift;
            let range = &mut self.ranges[op.slot.index()];
            range[4..8].copy_from_slice(&blocks.to_le_bytes());
            range[8..].copy_from_slice(&(op.offset >> extent.block_shift).to_le_bytes());
        }
    }

    /// Queues commands of a slot's op, if it is one of this session; returns whether nothing of it
    /// is left without.
    #[inline]
    pub(crate) fn begin(&mut self, slot: Slot, session: u32, link: &mut Link) -> bool {
        let place = &mut self.ops[slot.index()];
        let extent = place.extent;
        // An op that failed before all of it had commands has left its slot in a backlog.
        let Some(op) = place.op.filter(|_| extent.session == session) else {
            return true;
        };
        let tag = slot.get();
        let command = |opcode| Command::new(opcode, 0).with_nsid(extent.nsid);
        let opcode = match op.kind {
            OpKind::Data(Direction::Read) => Opcode::READ,
            OpKind::Data(Direction::Write) => Opcode::WRITE,
            OpKind::Data(Direction::Trim) | OpKind::Sync(_) if place.commands > 0 => return true,
            OpKind::Data(Direction::Trim) => {
                let trim = command(Opcode::DATASET_MANAGEMENT).with_dword(11, DEALLOCATE);
                let data = CommandData::Write(&self.ranges[slot.index()]);
                let is_taken = link.submit(trim, tag, 0, data);
                place.commands += u32::from(is_taken);
                return is_taken;
            }
            OpKind::Sync(_) => {
                let is_taken = link.submit(command(Opcode::FLUSH), tag, 0, CommandData::None);
                place.commands += u32::from(is_taken);
                return is_taken;
            }
        };
        let flags = match opcode {
            Opcode::WRITE => self.write_flags,
            _ => 0,
        };
        while place.begun < place.length {
            let length = (place.length - place.begun).min(extent.part_bytes);
            let block = (op.offset + u64::from(place.begun)) >> extent.block_shift;
            let command = command(opcode)
                .with_qword(10, block)
                .with_dword(12, ((length >> extent.block_shift) - 1) | flags);
            let offset = op.buffer_offset + place.begun;
            let data = match opcode {
                Opcode::WRITE => CommandData::Write(self.buffers.peek(slot, offset, length)),
                _ => CommandData::Read(length),
            };
            if !link.submit(command, tag, offset, data) {
                return false;
            }
            place.commands += 1;
            place.begun += length;
        }
        true
    }

    /// Completes an op that has no commands in flight.
    #[inline]
    pub(crate) fn finish(&mut self, slot: Slot, result: i32) {
        self.ops[slot.index()].op = None;
        self.done.push_back(Reaped { slot, result });
    }

    /// Returns the number of ops to be reaped.
    #[inline]
    pub(crate) fn ready(&self) -> usize {
        self.done.len()
    }

    /// Takes ops that have completed.
    #[inline]
    pub(crate) fn reap(&mut self, out: &mut [Reaped]) -> usize {
        let count = out.len().min(self.done.len());
        for (place, completion) in out.iter_mut().zip(self.done.drain(..count)) {
            *place = completion;
        }
        count
    }

    /// Returns whether commands of a session were in flight at an earlier call, `limit` ago or
    /// more. An op costs nothing on its way for this: calls mark those that they find.
    #[cold]
    pub(crate) fn are_overdue(&mut self, session: u32, now: Tick, limit: Nanos) -> bool {
        let mut overdue = false;
        for place in &mut self.ops {
            if place.op.is_some() && place.extent.session == session && place.commands > 0 {
                overdue |= now - *place.seen.get_or_insert(now) >= limit;
            }
        }
        overdue
    }

    /// Returns the slots whose ops are in flight on a session, in the order in which they were
    /// issued, and forgets their commands, whose connection has ended.
    ///
    /// `part_bytes` is the limit of a command on the next one, by block size.
    pub(crate) fn orphans(&mut self, session: u32, part_bytes: impl Fn(u8) -> u32) -> Vec<Orphan> {
        let mut found = Vec::new();
        for (number, place) in (0..).zip(&mut self.ops) {
            if let Some(op) = place.op.filter(|_| place.extent.session == session) {
                let was_sent = place.begun > 0 || place.commands > 0;
                (place.begun, place.commands, place.failure) = (0, 0, None);
                place.seen = None;
                place.extent.part_bytes = part_bytes(place.extent.block_shift);
                let slot = Slot::new(number);
                found.push((op.sequence, Orphan { slot, was_sent }));
            }
        }
        found.sort_unstable_by_key(|(sequence, _)| *sequence);
        found.into_iter().map(|(_, orphan)| orphan).collect()
    }
}

impl Owner for Slots {
    #[inline]
    fn place(&mut self, tag: u32, offset: u32, length: u32) -> &mut [u8] {
        self.buffers.part(Slot::new(tag), offset, length)
    }

    #[inline]
    fn data(&self, tag: u32, offset: u32, length: u32) -> &[u8] {
        let is_trim = self.ops[tag as usize]
            .op
            .is_some_and(|op| op.kind == OpKind::Data(Direction::Trim));
        match is_trim {
            true => &self.ranges[tag as usize][offset as usize..][..length as usize],
            false => self.buffers.peek(Slot::new(tag), offset, length),
        }
    }

    #[inline]
    fn completed(&mut self, tag: u32, completion: &Completion) {
        let place = &mut self.ops[tag as usize];
        place.commands -= 1;
        if !completion.status.is_success() {
            place.failure.get_or_insert(completion.status.errno());
            // No more commands for an op that has failed.
            place.begun = place.length;
        }
        let is_data = matches!(
            place.op.map(|op| op.kind),
            Some(OpKind::Data(Direction::Read | Direction::Write))
        );
        if place.commands > 0 || is_data && place.begun < place.length {
            return;
        }
        let result = match place.failure {
            Some(errno) => errno.result(),
            None => place.length.min(Reaped::BYTES_MAX).cast_signed(),
        };
        self.finish(Slot::new(tag), result);
    }
}

/// A range of Dataset Management.
const RANGE_BYTES: usize = 16;
/// Attribute of Dataset Management.
const DEALLOCATE: u32 = 4;

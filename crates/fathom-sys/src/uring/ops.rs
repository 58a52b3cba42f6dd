//! Encoding of ops for the kernel.

use fathom_core::{Direction, Op, OpKind, Slot, SyncKind};

use crate::file_io::{Descriptor, RwFlags, raw};

use super::abi::{
    FSYNC_DATASYNC, OP_FSYNC, OP_NOP, OP_READ, OP_READ_FIXED, OP_READV, OP_SYNC_FILE_RANGE,
    OP_WRITE, OP_WRITE_FIXED, OP_WRITEV, SQE_ASYNC, SQE_FIXED_FILE,
};
use super::entry::{Fields, head};
use super::streams::Streams;
use super::{Ring, RingConfig};

/// Encoding and completion mode of a ring, constant over its lifetime.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mode {
    /// All reads and writes are encoded uniformly: no vector, no per-op flag.
    pub(super) plain: bool,
    /// First words of a read and a write.
    pub(super) heads: [u16; 2],
    /// `rw_flags` of reads and writes.
    pub(super) op_flags: u32,
    /// `rw_flags` that only writes have; 0 if `plain`.
    pub(super) write_flags: u32,
    pub(super) fixed_files: bool,
    pub(super) fixed_buffers: bool,
    /// Ops name files by index: files are registered, or the op ignores its file (no-ops).
    pub(super) indexed_files: bool,
    pub(super) vectored: bool,
    /// A kernel thread takes the ops (SQPOLL).
    pub(super) kernel_thread: bool,
    /// Completions are polled (IOPOLL).
    pub(super) polled: bool,
    /// Task work is deferred until we enter the kernel for it (`DEFER_TASKRUN`).
    pub(super) deferred: bool,
    /// Interval of ops with `IOSQE_ASYNC`; 0: never.
    pub(super) force_async: u32,
}

/// Returns the entry flags for registered or unregistered files.
pub(super) const fn file_flags(registered: bool) -> u8 {
    if registered { SQE_FIXED_FILE } else { 0 }
}

impl Mode {
    pub(super) const fn new(config: &RingConfig, deferred: bool) -> Self {
        // Registered buffers have opcodes without a vector.
        let vectored = config.vectored && !config.fixed_buffers && !config.nops;
        // A no-op has the same fields; the kernel reads only its flags.
        let opcodes = match (config.nops, config.fixed_buffers) {
            (true, _) => [OP_NOP; 2],
            (false, true) => [OP_READ_FIXED, OP_WRITE_FIXED],
            (false, false) => [OP_READ, OP_WRITE],
        };
        let flags = file_flags(config.fixed_files);
        Self {
            plain: !vectored
                && config.force_async == 0
                && !config.atomic_writes
                && config.write_streams.is_empty()
                && config.integrity.is_none(),
            heads: [head(opcodes[0], flags), head(opcodes[1], flags)],
            op_flags: if config.nops {
                0
            } else {
                config.flags.bits().cast_unsigned()
            },
            write_flags: match config.atomic_writes && !config.nops {
                true => RwFlags::new(false, false, false)
                    .atomic()
                    .bits()
                    .cast_unsigned(),
                false => 0,
            },
            fixed_files: config.fixed_files,
            fixed_buffers: config.fixed_buffers,
            indexed_files: config.fixed_files || config.nops,
            vectored,
            kernel_thread: config.kernel_thread,
            polled: config.polled,
            deferred,
            force_async: config.force_async,
        }
    }
}

impl Ring {
    /// Encodes a read or a write.
    #[inline(always)]
    pub(super) fn data_fields<'file>(
        &self,
        op: &Op,
        write: bool,
        file: impl FnOnce() -> Descriptor<'file>,
    ) -> Fields {
        let memory = &*self.memory;
        let address = memory.buffers.address(op.slot, op.buffer_offset, op.length);
        Fields {
            head: self.mode.heads[usize::from(write)],
            priority: op.priority,
            file: self.file_number(op, file),
            offset: op.offset,
            address: address.addr() as u64,
            length: op.length,
            op_flags: self.mode.op_flags,
            buffer: buffer_number(op.slot),
            ..Fields::default()
        }
    }

    /// Returns the file's index or descriptor for an entry.
    #[inline(always)]
    fn file_number<'file>(&self, op: &Op, file: impl FnOnce() -> Descriptor<'file>) -> i32 {
        if self.mode.indexed_files {
            op.file.get().cast_signed()
        } else {
            raw(file())
        }
    }

    /// Encodes the less common ops.
    pub(super) fn uncommon_fields(&mut self, op: &Op, file: Descriptor<'_>) -> Fields {
        let mut fields = match op.kind {
            OpKind::Data(Direction::Trim) => panic!("a trim in the ring"),
            OpKind::Data(direction) => {
                let write = direction == Direction::Write;
                let mut fields = self.data_fields(op, write, || file);
                if write {
                    fields.op_flags |= self.mode.write_flags;
                    fields.stream = self.streams.as_mut().map_or(0, Streams::next);
                }
                if self.mode.vectored {
                    self.with_vector(op, write, fields)
                } else {
                    fields
                }
            }
            OpKind::Sync(kind) => self.sync_fields(op, kind, file),
        };
        fields.head |= head(0, self.async_flag());
        fields
    }

    /// Encodes a read or a write with a vector of one.
    fn with_vector(&mut self, op: &Op, write: bool, fields: Fields) -> Fields {
        let memory = &mut *self.memory;
        let address = memory.buffers.address(op.slot, op.buffer_offset, op.length);
        let vector = &mut memory.vectors[op.slot.index()];
        vector.iov_base = address.cast();
        vector.iov_len = op.length as usize;
        Fields {
            head: head(
                if write { OP_WRITEV } else { OP_READV },
                file_flags(self.mode.fixed_files),
            ),
            address: (&raw const *vector).expose_provenance() as u64,
            length: 1,
            ..fields
        }
    }

    fn sync_fields(&self, op: &Op, kind: SyncKind, file: Descriptor<'_>) -> Fields {
        let (opcode, op_flags) = match kind {
            SyncKind::Full => (OP_FSYNC, 0),
            SyncKind::Data => (OP_FSYNC, FSYNC_DATASYNC),
            SyncKind::Range(flags) => (OP_SYNC_FILE_RANGE, flags.into()),
            SyncKind::FileSystem => panic!("{op:?} in the ring"),
        };
        Fields {
            head: head(opcode, file_flags(self.mode.fixed_files)),
            file: self.file_number(op, || file),
            offset: op.offset,
            length: op.length,
            op_flags,
            ..Fields::default()
        }
    }
}

impl<const BIG: bool> Ring<BIG> {
    /// Returns the entry flag of the next op: a kernel worker takes every Nth.
    #[inline]
    pub(super) fn async_flag(&mut self) -> u8 {
        if self.mode.force_async == 0 {
            return 0;
        }
        self.until_async -= 1;
        if self.until_async > 0 {
            return 0;
        }
        self.until_async = self.mode.force_async;
        SQE_ASYNC
    }
}

/// Returns the slot's index among the registered buffers; ignored by the kernel, and possibly
/// truncated, if none are registered.
#[inline(always)]
pub(super) const fn buffer_number(slot: Slot) -> u16 {
    (slot.get() & 0xffff) as u16
}

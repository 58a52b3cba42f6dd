//! What the kernel is told of an op.

use fathom_core::{Direction, Op, OpKind, Slot, SyncKind};

use crate::file_io::{Descriptor, raw};

use super::abi::{
    FSYNC_DATASYNC, OP_FSYNC, OP_NOP, OP_READ, OP_READ_FIXED, OP_READV, OP_SYNC_FILE_RANGE,
    OP_WRITE, OP_WRITE_FIXED, OP_WRITEV, SQE_ASYNC, SQE_FIXED_FILE,
};
use super::entry::{Fields, head};
use super::{Ring, RingConfig};

/// How ops are made and completions come about; does not change over a ring's life.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mode {
    /// Every read and write is made alike: a buffer without a vector, no flag of its own.
    pub(super) plain: bool,
    /// What a read and a write begin with.
    pub(super) heads: [u16; 2],
    /// `rw_flags` of both.
    pub(super) op_flags: u32,
    pub(super) fixed_files: bool,
    /// An op names its file by its place in the table: that is registered, or nobody looks.
    pub(super) indexed_files: bool,
    pub(super) vectored: bool,
    /// The kernel's thread takes the ops.
    pub(super) kernel_thread: bool,
    /// Completions are polled for.
    pub(super) polled: bool,
    /// Completion work waits until we enter the kernel for it.
    pub(super) deferred: bool,
    /// Every so many ops one goes to a kernel worker; 0 never.
    pub(super) force_async: u32,
}

/// The flags of an op whose file is registered, or is not.
const fn file_flags(registered: bool) -> u8 {
    if registered { SQE_FIXED_FILE } else { 0 }
}

impl Mode {
    pub(super) const fn new(config: &RingConfig, deferred: bool) -> Self {
        // A registered buffer needs no vector.
        let vectored = config.vectored && !config.fixed_buffers && !config.nops;
        // A no-op has the same fields: the kernel looks at none of them but its flags.
        let opcodes = match (config.nops, config.fixed_buffers) {
            (true, _) => [OP_NOP; 2],
            (false, true) => [OP_READ_FIXED, OP_WRITE_FIXED],
            (false, false) => [OP_READ, OP_WRITE],
        };
        let flags = file_flags(config.fixed_files);
        Self {
            plain: !vectored && config.force_async == 0,
            heads: [head(opcodes[0], flags), head(opcodes[1], flags)],
            op_flags: if config.nops {
                0
            } else {
                config.flags.bits().cast_unsigned()
            },
            fixed_files: config.fixed_files,
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
    /// A read or a write.
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

    /// What the kernel knows an op's file by.
    #[inline(always)]
    fn file_number<'file>(&self, op: &Op, file: impl FnOnce() -> Descriptor<'file>) -> i32 {
        if self.mode.indexed_files {
            op.file.get().cast_signed()
        } else {
            raw(file())
        }
    }

    /// What is not a read or a write as most are.
    pub(super) fn uncommon_fields(&mut self, op: &Op, file: Descriptor<'_>) -> Fields {
        let mut fields = match op.kind {
            OpKind::Data(Direction::Trim) => panic!("a trim in the ring"),
            OpKind::Data(direction) => {
                let write = direction == Direction::Write;
                let fields = self.data_fields(op, write, || file);
                if self.mode.vectored {
                    self.with_vector(op, write, fields)
                } else {
                    fields
                }
            }
            OpKind::Sync(kind) => self.sync_fields(op, kind, file),
        };
        if self.mode.force_async > 0 {
            self.until_async -= 1;
            if self.until_async == 0 {
                self.until_async = self.mode.force_async;
                fields.head |= head(0, SQE_ASYNC);
            }
        }
        fields
    }

    /// The same by a vector of one.
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

/// The slot's place among the registered buffers. Where none are, the kernel does not look at it,
/// and it need not fit.
#[inline(always)]
pub(super) const fn buffer_number(slot: Slot) -> u16 {
    (slot.get() & 0xffff) as u16
}

//! `splice`: data move through a pipe, by splice(2) and vmsplice(2).

use std::io;

use fathom_core::{Direction, EngineError, EngineInfo, EngineStep, Errno, Op, OpKind, Slot};
use fathom_sys::memory::Buffers;
use fathom_sys::splice::Pipe;

use crate::error::no_memory;
use crate::files::Files;
use crate::serial::{Performer, Serial};
use crate::{AnyEngine, EngineConfig};

/// Facts about `splice`.
pub(crate) static INFO: EngineInfo = EngineInfo {
    shares_buffers: true,
    ..EngineInfo::new("splice", "splice(2) and vmsplice(2) through a pipe")
};

/// Performer of `splice`.
struct Splice {
    files: Files,
    buffers: Buffers,
    pipe: Pipe,
}

pub(crate) fn start(config: &EngineConfig) -> Result<AnyEngine, EngineError> {
    let buffers = Buffers::within(&config.memory, config.depth, config.buffer_bytes);
    let buffers = buffers.map_err(|error| no_memory(config, &error))?;
    let pipe = Pipe::new(config.buffer_bytes).map_err(|error| no_pipe(&error))?;
    let performer = Splice {
        files: Files::new(config),
        buffers,
        pipe,
    };
    Ok(Serial::start(config, performer))
}

impl Performer for Splice {
    fn files(&mut self) -> Option<&mut Files> {
        Some(&mut self.files)
    }

    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        self.buffers.get(slot)
    }

    fn perform(&mut self, op: &Op) -> i32 {
        let file = self.files.descriptor(op.file);
        let write = match op.kind {
            OpKind::Data(Direction::Read) => false,
            OpKind::Data(Direction::Write) => true,
            OpKind::Data(Direction::Trim) | OpKind::Sync(_) => {
                return self.files.perform_dataless(op);
            }
        };
        let part = self.buffers.part(op.slot, op.buffer_offset, op.length);
        match write {
            true => self.pipe.write(file, op.offset, part),
            false => self.pipe.read(file, op.offset, part),
        }
    }

    fn release(&mut self, slot: Slot) {
        self.buffers.release(slot);
    }
}

fn no_pipe(error: &io::Error) -> EngineError {
    EngineError {
        step: EngineStep::Call("pipe2"),
        target: format!("engine `{}`", INFO.name),
        errno: Errno::of(error),
        hint: "too many open files: raise the limit with `ulimit -n`".into(),
    }
}

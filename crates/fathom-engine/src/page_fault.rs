//! `page_fault`: page faults of anonymous memory.
//!
//! Each file of the job stands for memory of its size, and an op touches the pages of its range: a
//! read reads a byte of each, a write writes one. Pages that an earlier op touched are given back
//! to the kernel first, outside the op's time, so that every op faults.

use std::io;

use fathom_core::{Direction, EngineError, EngineInfo, EngineStep, Errno, Op, OpKind, Storage};
use fathom_sys::anonymous::Anonymous;

use crate::serial::{Performer, Serial, whole};
use crate::{AnyEngine, EngineConfig};

/// Facts about `page_fault`.
pub(crate) static INFO: EngineInfo = EngineInfo {
    storage: Storage::None,
    directions: &[Direction::Read, Direction::Write],
    files_in_memory: true,
    ..EngineInfo::new(
        "page_fault",
        "page faults of anonymous memory of the job's size",
    )
};

/// Performer of `page_fault`.
struct PageFault {
    /// Memory of each file.
    memory: Vec<Anonymous>,
}

pub(crate) fn start(config: &EngineConfig) -> Result<AnyEngine, EngineError> {
    let files = config.files.iter();
    let memory = files.map(|file| Anonymous::new(file.bytes).map_err(|error| no_memory(&error)));
    let memory = memory.collect::<Result<_, _>>()?;
    Ok(Serial::start(config, PageFault { memory }))
}

impl Performer for PageFault {
    fn prepare(&mut self, op: &Op) {
        if let OpKind::Data(_) = op.kind {
            let memory = &mut self.memory[op.file.index()];
            // Cannot fail for pages that are mapped and not locked; if it does, the op is quicker.
            let _kept = memory.give_back(op.offset, op.length.into());
        }
    }

    fn perform(&mut self, op: &Op) -> i32 {
        let write = match op.kind {
            OpKind::Data(Direction::Read) => false,
            OpKind::Data(Direction::Write) => true,
            OpKind::Data(Direction::Trim) => return Errno::EINVAL.result(),
            OpKind::Sync(_) => return 0,
        };
        let memory = &mut self.memory[op.file.index()];
        match memory.touch(op.offset, op.length.into(), write) {
            0 if op.length > 0 => Errno::EFAULT.result(),
            _pages => whole(op),
        }
    }
}

fn no_memory(error: &io::Error) -> EngineError {
    EngineError {
        step: EngineStep::Call("mmap"),
        target: format!("engine `{}`", INFO.name),
        errno: Errno::of(error),
        hint: "lower size or numjobs".into(),
    }
}

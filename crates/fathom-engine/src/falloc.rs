//! `falloc`: fallocate(2), to allocate and free the blocks of files.

use fathom_core::{Direction, EngineError, EngineInfo, Op, OpKind, Work};
use fathom_sys::extents::{self, RangeChange};
use fathom_sys::file_io;

use crate::files::Files;
use crate::serial::{Performer, Serial, whole_or};
use crate::{AnyEngine, EngineConfig};

/// Facts about `falloc`.
pub(crate) static INFO: EngineInfo = EngineInfo {
    work: Work::Allocation,
    always_writes: true,
    bypasses_cache: false,
    ..EngineInfo::new(
        "falloc",
        "fallocate(2): a write extends, a read allocates beyond the end, a trim punches a hole",
    )
};

/// Performer of `falloc`.
struct Falloc {
    files: Files,
}

pub(crate) fn start(config: &EngineConfig) -> Result<AnyEngine, EngineError> {
    let files = Files::new(config);
    Ok(Serial::start(config, Falloc { files }))
}

impl Performer for Falloc {
    fn files(&mut self) -> Option<&mut Files> {
        Some(&mut self.files)
    }

    fn perform(&mut self, op: &Op) -> i32 {
        let file = self.files.descriptor(op.file);
        let change = match op.kind {
            OpKind::Data(Direction::Write) => RangeChange::Extend,
            OpKind::Data(Direction::Read) => RangeChange::KeepSize,
            OpKind::Data(Direction::Trim) => RangeChange::PunchHole,
            OpKind::Sync(_) => {
                return file_io::perform_dataless(file, self.files.kind(op.file), op);
            }
        };
        let failed = extents::change_range(file, change, op.offset, op.length);
        whole_or(failed, op)
    }
}

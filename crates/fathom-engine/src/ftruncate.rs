//! `ftruncate`: each write sets the size of the file to the write's offset.

use fathom_core::{Direction, EngineError, EngineInfo, Errno, Op, OpKind, Work};
use fathom_sys::{extents, file_io};

use crate::files::Files;
use crate::serial::{Performer, Serial, whole_or};
use crate::{AnyEngine, EngineConfig};

/// Facts about `ftruncate`.
pub(crate) static INFO: EngineInfo = EngineInfo {
    work: Work::Allocation,
    directions: &[Direction::Write],
    always_writes: true,
    bypasses_cache: false,
    ..EngineInfo::new(
        "ftruncate",
        "ftruncate(2): a write sets the file's size to its offset",
    )
};

/// Performer of `ftruncate`.
struct Ftruncate {
    files: Files,
}

pub(crate) fn start(config: &EngineConfig) -> Result<AnyEngine, EngineError> {
    let files = Files::new(config);
    Ok(Serial::start(config, Ftruncate { files }))
}

impl Performer for Ftruncate {
    fn files(&mut self) -> Option<&mut Files> {
        Some(&mut self.files)
    }

    fn perform(&mut self, op: &Op) -> i32 {
        let file = self.files.descriptor(op.file);
        match op.kind {
            OpKind::Data(Direction::Write) => whole_or(extents::truncate(file, op.offset), op),
            OpKind::Data(Direction::Read | Direction::Trim) => Errno::EINVAL.result(),
            OpKind::Sync(_) => file_io::perform_dataless(file, self.files.kind(op.file), op),
        }
    }
}

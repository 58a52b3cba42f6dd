//! `filedelete`: an op removes a file.

use std::ffi::CStr;
use std::path::Path;

use fathom_core::{EngineError, EngineInfo, NameWork, Work};
use fathom_sys::files::FileKind;
use fathom_sys::names;

use super::{NameCall, OP_PER_FILE, Refusal, check_kind};
use crate::{AnyEngine, EngineConfig};

/// Facts about `filedelete`.
pub(crate) static INFO: EngineInfo = EngineInfo {
    work: Work::Names(NameWork {
        directories: false,
        laid_out: true,
        once: true,
    }),
    always_writes: true,
    bypasses_cache: false,
    different: OP_PER_FILE,
    ..EngineInfo::new("filedelete", "unlink(2): an op removes a file")
};

/// Call of `filedelete`.
struct FileDelete;

pub(crate) fn start(config: &EngineConfig) -> Result<AnyEngine, EngineError> {
    super::start(config, FileDelete)
}

impl NameCall for FileDelete {
    fn call(&mut self, path: &CStr) -> i32 {
        names::unlink(path)
    }

    /// Accepts regular files alone, because `unlink` would also remove device nodes and links.
    fn check(&self, _path: &Path, found: Option<FileKind>) -> Result<(), Refusal> {
        check_kind(found, FileKind::Regular)
    }
}

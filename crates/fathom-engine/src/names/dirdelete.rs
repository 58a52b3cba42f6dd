//! `dirdelete`: an op removes an empty directory.

use std::ffi::CStr;
use std::path::Path;

use fathom_core::{EngineError, EngineInfo, NameWork, Work};
use fathom_sys::files::FileKind;
use fathom_sys::names;

use super::{NameCall, OP_PER_FILE, Refusal, check_kind};
use crate::{AnyEngine, EngineConfig};

/// Facts about `dirdelete`.
pub(crate) static INFO: EngineInfo = EngineInfo {
    work: Work::Names(NameWork {
        directories: true,
        laid_out: true,
        once: true,
    }),
    always_writes: true,
    bypasses_cache: false,
    different: OP_PER_FILE,
    ..EngineInfo::new("dirdelete", "rmdir(2): an op removes an empty directory")
};

/// Call of `dirdelete`.
struct DirDelete;

pub(crate) fn start(config: &EngineConfig) -> Result<AnyEngine, EngineError> {
    super::start(config, DirDelete)
}

impl NameCall for DirDelete {
    fn call(&mut self, path: &CStr) -> i32 {
        names::remove_directory(path)
    }

    fn check(&self, _path: &Path, found: Option<FileKind>) -> Result<(), Refusal> {
        check_kind(found, FileKind::Directory)
    }
}

//! `dircreate`: an op creates a directory.

use std::ffi::CStr;
use std::fs;
use std::io;
use std::path::Path;

use fathom_core::{EngineError, EngineInfo, NameWork, Work};
use fathom_sys::files::FileKind;
use fathom_sys::names;

use super::{NameCall, OP_PER_FILE, Refusal, check_kind, check_place};
use crate::{AnyEngine, EngineConfig};

/// Facts about `dircreate`.
pub(crate) static INFO: EngineInfo = EngineInfo {
    work: Work::Names(NameWork {
        directories: true,
        laid_out: false,
        once: true,
    }),
    always_writes: true,
    bypasses_cache: false,
    different: OP_PER_FILE,
    ..EngineInfo::new("dircreate", "mkdir(2): an op creates a directory")
};

/// Call of `dircreate`.
struct DirCreate;

pub(crate) fn start(config: &EngineConfig) -> Result<AnyEngine, EngineError> {
    super::start(config, DirCreate)
}

impl NameCall for DirCreate {
    fn call(&mut self, path: &CStr) -> i32 {
        names::make_directory(path)
    }

    fn check(&self, path: &Path, found: Option<FileKind>) -> Result<(), Refusal> {
        check_place(path)?;
        check_kind(found, FileKind::Directory)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }
}

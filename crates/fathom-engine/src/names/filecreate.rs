//! `filecreate`: an op creates a file.

use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use fathom_core::{EngineError, EngineInfo, NameWork, Work};
use fathom_sys::files::FileKind;
use fathom_sys::names;

use super::{NameCall, OP_PER_FILE, Refusal, check_kind, check_place};
use crate::{AnyEngine, EngineConfig};

/// Facts about `filecreate`.
pub(crate) static INFO: EngineInfo = EngineInfo {
    work: Work::Names(NameWork {
        directories: false,
        laid_out: false,
        once: false,
    }),
    always_writes: true,
    bypasses_cache: false,
    different: OP_PER_FILE,
    ..EngineInfo::new("filecreate", "open(2) with O_CREAT: an op creates a file")
};

/// Call of `filecreate`.
#[derive(Default)]
struct FileCreate {
    /// File of the last op, which is closed outside the ops' time.
    open: Option<OwnedFd>,
}

pub(crate) fn start(config: &EngineConfig) -> Result<AnyEngine, EngineError> {
    super::start(config, FileCreate::default())
}

impl NameCall for FileCreate {
    fn call(&mut self, path: &CStr) -> i32 {
        match names::create(path) {
            Ok(opened) => {
                self.open = Some(opened);
                0
            }
            Err(failed) => failed,
        }
    }

    fn check(&self, path: &Path, found: Option<FileKind>) -> Result<(), Refusal> {
        check_place(path)?;
        check_kind(found, FileKind::Regular)
    }

    fn forget(&mut self) {
        self.open = None;
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }
}

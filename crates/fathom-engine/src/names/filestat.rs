//! `filestat`: an op looks up the metadata of a file.

use std::ffi::CStr;
use std::path::Path;

use fathom_core::{
    EngineError, EngineInfo, EngineOption, EngineValues, NameWork, OptionWord, Work,
};
use fathom_sys::files::FileKind;
use fathom_sys::names::{self, StatCall};

use super::{NameCall, OP_PER_FILE, Refusal};
use crate::{AnyEngine, EngineConfig};

/// Facts about `filestat`.
pub(crate) static INFO: EngineInfo = EngineInfo {
    work: Work::Names(NameWork {
        directories: false,
        laid_out: true,
        once: false,
    }),
    bypasses_cache: false,
    different: OP_PER_FILE,
    options: &[STAT_TYPE],
    ..EngineInfo::new("filestat", "stat(2): an op looks up a file's metadata")
};

/// `filestat`, `dirstat`: system call of an op.
pub const STAT_TYPE: EngineOption = EngineOption::choice(
    "stat_type",
    &[
        OptionWord {
            word: "stat",
            help: "stat(2), which follows links",
        },
        OptionWord {
            word: "lstat",
            help: "lstat(2), which looks at a link itself",
        },
        OptionWord {
            word: "statx",
            help: "statx(2) for the basic fields, which follows links",
        },
    ],
    "System call of an op",
    "stat_type=statx",
)
.default("stat");

/// Call of `filestat` and `dirstat`.
pub(super) struct Stat {
    call: StatCall,
}

impl From<&EngineValues> for Stat {
    fn from(values: &EngineValues) -> Self {
        let call = match values.text(&STAT_TYPE) {
            Some("lstat") => StatCall::Lstat,
            Some("statx") => StatCall::Statx,
            _ => StatCall::Stat,
        };
        Self { call }
    }
}

pub(crate) fn start(config: &EngineConfig) -> Result<AnyEngine, EngineError> {
    super::start(config, Stat::from(&config.options))
}

impl NameCall for Stat {
    fn call(&mut self, path: &CStr) -> i32 {
        names::stat(path, self.call)
    }

    /// Accepts anything: nothing changes, and a name that is missing fails its op.
    fn check(&self, _path: &Path, _found: Option<FileKind>) -> Result<(), Refusal> {
        Ok(())
    }
}

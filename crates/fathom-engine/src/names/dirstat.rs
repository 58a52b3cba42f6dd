//! `dirstat`: an op looks up the metadata of a directory.

use fathom_core::{EngineError, EngineInfo, NameWork, Work};

use super::OP_PER_FILE;
use super::filestat::{STAT_TYPE, Stat};
use crate::{AnyEngine, EngineConfig};

/// Facts about `dirstat`.
pub(crate) static INFO: EngineInfo = EngineInfo {
    work: Work::Names(NameWork {
        directories: true,
        laid_out: true,
        once: false,
    }),
    bypasses_cache: false,
    different: OP_PER_FILE,
    options: &[STAT_TYPE],
    ..EngineInfo::new("dirstat", "stat(2): an op looks up a directory's metadata")
};

pub(crate) fn start(config: &EngineConfig) -> Result<AnyEngine, EngineError> {
    super::start(config, Stat::from(&config.options))
}

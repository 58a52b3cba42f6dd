//! `posixaio`: asynchronous pread(2) and pwrite(2) on threads, as in the C library's `aio_read`.
//!
//! ```text
//!  submit ──► offload workers, each with a `psync` engine ──► reap
//! ```
//!
//! The C library's implementation is not used: it performs all ops of a file on one thread, so that
//! a device under it never has more than one.

use fathom_core::{EngineError, EngineInfo, Synchronous};

use crate::sync::{SyncCall, SyncEngine};
use crate::{AnyEngine, EngineConfig, Kick, Offload, Registration};

/// Facts about `posixaio`.
pub(crate) static INFO: EngineInfo = EngineInfo {
    synchronous: Synchronous::Never,
    shares_buffers: true,
    ..EngineInfo::new(
        "posixaio",
        "pread(2) and pwrite(2) on up to `iodepth` threads",
    )
};

/// Starts the engine: workers, or, on a worker thread (`io_submit_mode=offload`), the engine that
/// these would run. A pool in every worker of a pool would add hand-overs and no concurrency.
pub(crate) fn start(config: &EngineConfig) -> Result<AnyEngine, EngineError> {
    if config.memory.buffers.is_some() {
        return worker(config);
    }
    let workers = EngineConfig {
        engine: Registration::new(&INFO, worker),
        ..config.clone()
    };
    let offload = Offload::start(workers, Kick::Batch)?;
    Ok(AnyEngine::Offload(Box::new(offload)))
}

fn worker(config: &EngineConfig) -> Result<AnyEngine, EngineError> {
    SyncEngine::start(SyncCall::Psync, config).map(AnyEngine::Sync)
}

//! The engines: null, the sync family, mmap, libaio, io_uring.
//!
//! Each is a thin translation of the engine contract of `fathom-core` into calls of `fathom-sys`;
//! what is unsafe, and what the kernel's structures look like, is there.
#![forbid(unsafe_code)]

mod any;
mod config;
mod error;
mod files;
mod libaio;
mod locking;
mod mmap;
mod null;
mod offload;
mod sync;
mod uring;

// Public items, listed once.
pub use any::{AnyEngine, start, start_told};
pub use config::{EngineConfig, EngineFile, EngineOptions, FileAdvice};
pub use libaio::Libaio;
pub use locking::FileLock;
pub use null::Null;
pub use offload::{AtWork, Kick, Offload, OffloadFigures, OffloadTold};
pub use sync::Sync;
pub use uring::Uring;

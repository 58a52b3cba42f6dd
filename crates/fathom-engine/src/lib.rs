//! The engines and the registry that starts them: those that read and write data (null, the sync
//! family, splice, mmap, posixaio, libaio, io_uring, io_uring_cmd, sg), those that work on the
//! blocks, the size or the name of a file, net and netsplice, page_fault, cpuio and exec.
//!
//! Each engine is a thin translation of the contract in `fathom-core` into calls of `fathom-sys`,
//! which has the unsafe code and the kernel's structures. Workers and file locks wrap any engine;
//! [`start`] composes them. An engine of another crate joins through [`Registry::with`].
#![forbid(unsafe_code)]

mod any;
mod config;
mod cpuio;
mod e4defrag;
mod engine_device;
mod error;
mod exclusive;
mod exec;
mod falloc;
mod files;
mod ftruncate;
mod iscsi;
mod libaio;
mod libraries;
mod locking;
mod mmap;
mod names;
mod net;
mod netsplice;
mod nfs;
mod null;
mod offload;
pub mod options;
mod page_fault;
mod passthrough;
mod posixaio;
mod protection;
mod registry;
mod scsi;
mod serial;
mod sg;
mod splice;
mod sync;
mod uring;

// Public items, listed once.
pub use any::AnyEngine;
pub use config::{EngineConfig, EngineFile, FileAdvice, JobFacts, RepeatedRequests};
pub use engine_device::EngineDevice;
pub use libaio::Libaio;
pub use locking::FileLock;
pub use null::Null;
pub use offload::{Kick, Offload, OffloadStats, SharedStats, WorkerThreads};
pub use passthrough::Passthrough;
pub use registry::{
    FileCheck, FileRefusal, Registration, Registry, RemoteFileCheck, ZoneLookup, built_in, start,
    start_with_stats,
};
pub use sync::SyncEngine;
pub use uring::{Uring, why_no_ring};

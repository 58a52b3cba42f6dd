//! A started engine of any type.

use fathom_core::Engine;

use crate::{Libaio, Null, Offload, Passthrough, SyncEngine, Uring};

/// A started engine.
///
/// A driver matches on it once and runs a loop compiled for that variant. Only engines whose cost
/// per op shows in measurements have a variant, and thus a loop, of their own; all others are boxed
/// and share one loop. A loop per engine was rejected: twenty engines would mean twenty copies of
/// the workload.
pub enum AnyEngine {
    /// `null`.
    Null(Null),
    /// `psync`, `sync`, `vsync`, `pvsync`, `pvsync2`.
    Sync(SyncEngine),
    /// `libaio`.
    Libaio(Libaio),
    /// `io_uring`.
    Uring(Uring),
    /// `io_uring_cmd`; jobs run it boxed, and only `fathom peak` in a loop of its own.
    Passthrough(Passthrough),
    /// Any engine, run by worker threads.
    Offload(Box<Offload>),
    /// Any other engine, called through a vtable.
    Boxed(Box<dyn Engine>),
}

impl AnyEngine {
    /// Returns the optional kernel features in use, for the record.
    #[must_use]
    pub fn features(&self) -> Vec<String> {
        match self {
            Self::Sync(engine) => engine.features(),
            Self::Libaio(engine) => engine.features(),
            Self::Uring(engine) => engine.features(),
            Self::Passthrough(engine) => engine.features(),
            Self::Null(_) | Self::Offload(_) | Self::Boxed(_) => Vec::new(),
        }
    }

    /// Returns the number of system calls made for ops; 0 if the engine does not count them.
    #[must_use]
    pub const fn system_calls(&self) -> u64 {
        match self {
            Self::Sync(engine) => engine.system_calls(),
            Self::Libaio(engine) => engine.system_calls(),
            Self::Uring(engine) => engine.system_calls(),
            Self::Passthrough(engine) => engine.system_calls(),
            Self::Null(_) | Self::Offload(_) | Self::Boxed(_) => 0,
        }
    }

    /// Boxes the engine.
    #[must_use]
    pub fn boxed(self) -> Box<dyn Engine> {
        match self {
            Self::Null(engine) => Box::new(engine),
            Self::Sync(engine) => Box::new(engine),
            Self::Libaio(engine) => Box::new(engine),
            Self::Uring(engine) => Box::new(engine),
            Self::Passthrough(engine) => Box::new(engine),
            Self::Offload(engine) => engine,
            Self::Boxed(engine) => engine,
        }
    }

    /// Borrows the engine as a trait object, for callers off the hot path.
    #[must_use]
    pub fn as_dyn(&mut self) -> &mut dyn Engine {
        match self {
            Self::Null(engine) => engine,
            Self::Sync(engine) => engine,
            Self::Libaio(engine) => engine,
            Self::Uring(engine) => engine,
            Self::Passthrough(engine) => engine,
            Self::Offload(engine) => &mut **engine,
            Self::Boxed(engine) => &mut **engine,
        }
    }
}

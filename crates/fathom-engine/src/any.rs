//! Any of the engines, chosen by name.

use fathom_core::{Engine, EngineError};

use crate::locking::Locking;
use crate::mmap::Mmap;
use crate::offload::{Offload, OffloadTold};
use crate::{EngineConfig, Libaio, Null, Sync, Uring};

/// One of the engines. A driver matches on it once and runs a loop made for what it finds.
pub enum AnyEngine {
    /// `null`.
    Null(Null),
    /// `psync`, `sync`, `vsync`, `pvsync`, `pvsync2`.
    Sync(Sync),
    /// `libaio`.
    Libaio(Libaio),
    /// `io_uring`.
    Uring(Uring),
    /// Any of them, with workers to do its ops.
    Offload(Box<Offload>),
    /// One that is rare or slow enough to be called through a pointer.
    Boxed(Box<dyn Engine>),
}

/// Makes the engine called `config.name`: its rings and its memory, on the calling thread, which
/// must be the one that uses it. Opens no file.
///
/// # Errors
/// An engine that is not known, or that the kernel refuses.
///
/// # Panics
/// If `depth` or `buffer_bytes` is 0.
pub fn start(config: EngineConfig) -> Result<AnyEngine, EngineError> {
    start_told(config).map(|(engine, _figures)| engine)
}

/// The same, with what becomes known of its workers, where it has some.
///
/// # Errors
/// As [`start`].
///
/// # Panics
/// As [`start`].
pub fn start_told(config: EngineConfig) -> Result<(AnyEngine, Option<OffloadTold>), EngineError> {
    assert!(config.depth > 0 && config.buffer_bytes > 0);
    let (locks, depth) = (config.options.locks.clone(), config.depth);
    let engine = start_free(config)?;
    let told = match &engine {
        AnyEngine::Offload(engine) => Some(engine.told()),
        _ => None,
    };
    if locks.is_empty() {
        return Ok((engine, told));
    }
    let locking = Locking::new(engine, &locks, depth);
    Ok((AnyEngine::Boxed(Box::new(locking)), told))
}

/// One whose ops wait for no locks.
fn start_free(config: EngineConfig) -> Result<AnyEngine, EngineError> {
    if let Some(kick) = config.options.offload {
        return Offload::start(config, kick).map(|engine| AnyEngine::Offload(Box::new(engine)));
    }
    if let Some(engine) = Sync::start(&config) {
        return engine.map(AnyEngine::Sync);
    }
    match config.name.as_str() {
        "null" => Ok(AnyEngine::Null(Null::start(&config))),
        "mmap" => Ok(AnyEngine::Boxed(Box::new(Mmap::start(&config)?))),
        "libaio" => Libaio::start(&config).map(AnyEngine::Libaio),
        "io_uring" => Uring::start(&config).map(AnyEngine::Uring),
        _ => Err(EngineError {
            what: "start engine",
            target: format!("`{}`", config.name),
            errno: 0,
            hint: format!("choose one of {}", AnyEngine::NAMES.join(", ")),
        }),
    }
}

impl AnyEngine {
    /// All engines, by their names in job files.
    pub const NAMES: [&'static str; 9] = [
        "psync", "sync", "vsync", "pvsync", "pvsync2", "mmap", "libaio", "io_uring", "null",
    ];

    /// All engines, by their names in job files, for help texts.
    #[must_use]
    pub const fn names() -> &'static [&'static str] {
        &Self::NAMES
    }

    /// What of the kernel's optional features is in use, for the record.
    #[must_use]
    pub fn features(&self) -> Vec<String> {
        match self {
            Self::Sync(engine) => engine.features(),
            Self::Libaio(engine) => engine.features(),
            Self::Uring(engine) => engine.features(),
            Self::Null(_) | Self::Offload(_) | Self::Boxed(_) => Vec::new(),
        }
    }

    /// System calls made for ops so far, where they are counted.
    #[must_use]
    pub const fn system_calls(&self) -> u64 {
        match self {
            Self::Sync(engine) => engine.system_calls(),
            Self::Libaio(engine) => engine.system_calls(),
            Self::Uring(engine) => engine.system_calls(),
            Self::Null(_) | Self::Offload(_) | Self::Boxed(_) => 0,
        }
    }

    /// The engine behind a pointer of its own.
    #[must_use]
    pub fn boxed(self) -> Box<dyn Engine> {
        match self {
            Self::Null(engine) => Box::new(engine),
            Self::Sync(engine) => Box::new(engine),
            Self::Libaio(engine) => Box::new(engine),
            Self::Uring(engine) => Box::new(engine),
            Self::Offload(engine) => engine,
            Self::Boxed(engine) => engine,
        }
    }

    /// The engine behind a pointer, for callers that are not in a hurry.
    #[must_use]
    pub fn as_dyn(&mut self) -> &mut dyn Engine {
        match self {
            Self::Null(engine) => engine,
            Self::Sync(engine) => engine,
            Self::Libaio(engine) => engine,
            Self::Uring(engine) => engine,
            Self::Offload(engine) => &mut **engine,
            Self::Boxed(engine) => &mut **engine,
        }
    }
}

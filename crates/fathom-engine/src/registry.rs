//! The engines that a run can use, and the one factory that starts them.
//!
//! ```text
//!  Registry ── find(name) ──► Registration { info, start, … }
//!                                  │
//!  start(config) ──► engine ──► offload workers? ──► file locks? ──► AnyEngine
//! ```
//!
//! To add an engine to this crate, write its file, with a `static` [`EngineInfo`] and a
//! constructor, and add a row to `BUILT_IN`. An engine of another crate exports a [`Registration`]
//! and joins by one [`Registry::with`] where the program starts.

use std::fs::File;

use fathom_core::{EngineError, EngineInfo, EngineStep, Errno, RemoteFile, ZoneReport};
use fathom_sys::aio;

use crate::cpuio::{self, Cpuio};
use crate::exec::{self, Exec};
use crate::libaio::{self, Libaio};
use crate::locking::Locking;
use crate::mmap::{self, Mmap};
use crate::names::{dircreate, dirdelete, dirstat, filecreate, filedelete, filestat};
use crate::net::{self, Net};
use crate::null::{self, Null};
use crate::offload::{Offload, SharedStats};
use crate::sync::{self, SyncCall, SyncEngine};
use crate::uring;
use crate::{
    AnyEngine, EngineConfig, e4defrag, falloc, ftruncate, iscsi, netsplice, nfs, page_fault,
    passthrough, posixaio, sg, splice,
};

/// A registered engine: facts that hold before it starts, and its constructor.
#[derive(Clone, Copy, Debug)]
pub struct Registration {
    /// Static facts about the engine.
    pub info: &'static EngineInfo,
    /// Constructor: creates rings and buffers on the calling thread, which must be the thread that
    /// uses the engine. Opens no file.
    pub start: fn(&EngineConfig) -> Result<AnyEngine, EngineError>,
    /// Selects the check that every file must pass when it is opened, if any.
    pub file_check: fn(&EngineConfig) -> Option<FileCheck>,
    /// Returns the size of the configuration's only file, if the engine's storage is remote and the
    /// sizes of its files can be known before a run.
    pub remote_file: Option<RemoteFileCheck>,
    /// Returns the zones of the configuration's only file, of an engine that manages zones itself
    /// ([`EngineInfo::manages_zones`]).
    pub zones: Option<ZoneLookup>,
    /// Quick test that the kernel will not refuse it. If it returns true, a run skips starting an
    /// engine on trial.
    pub is_permitted: fn() -> bool,
}

/// Check of a file just opened: the reason why the engine cannot work with it.
pub type FileCheck = fn(&File) -> Option<FileRefusal>;

/// Function that looks up a remote file.
pub type RemoteFileCheck = fn(&EngineConfig) -> Result<RemoteFile, EngineError>;

/// Function that reads the zones of a device; `None` if it has none.
pub type ZoneLookup = fn(&EngineConfig) -> Result<Option<ZoneReport>, EngineError>;

/// Reason why an engine cannot work with an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileRefusal {
    /// The option or call that the file does not support.
    pub step: EngineStep,
    /// Errno with which its ops would fail.
    pub errno: Errno,
    /// Remedy, in the imperative.
    pub hint: &'static str,
}

impl Registration {
    /// Creates a registration of an engine that accepts any file.
    #[must_use]
    pub const fn new(
        info: &'static EngineInfo,
        start: fn(&EngineConfig) -> Result<AnyEngine, EngineError>,
    ) -> Self {
        Self {
            info,
            start,
            file_check: |_| None,
            remote_file: None,
            zones: None,
            is_permitted: || false,
        }
    }
}

/// The engines that a run can use.
///
/// A value that is passed in, not a global: two runs in a process may have different engines.
#[derive(Clone, Debug)]
pub struct Registry {
    engines: Vec<Registration>,
    /// Facts of each engine, for code that must not start one (parser, setup, help).
    infos: Vec<&'static EngineInfo>,
}

impl Registry {
    /// Creates a registry of the engines in this crate.
    #[must_use]
    pub fn built_in() -> Self {
        Self {
            engines: BUILT_IN.to_vec(),
            infos: BUILT_IN.iter().map(|engine| engine.info).collect(),
        }
    }

    /// Adds an engine.
    ///
    /// # Panics
    /// If an engine of its name is there already.
    #[must_use]
    pub fn with(mut self, engine: Registration) -> Self {
        let name = engine.info.name;
        assert!(self.find(name).is_none(), "two engines called `{name}`");
        self.infos.push(engine.info);
        self.engines.push(engine);
        self
    }

    /// Returns the facts about each engine, in the order of help texts.
    #[must_use]
    pub fn infos(&self) -> &[&'static EngineInfo] {
        &self.infos
    }

    /// Returns the engine of this name. Aliases are the parser's: a plan holds names.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Registration> {
        let found = self.engines.iter().find(|engine| engine.info.name == name);
        found.copied()
    }
}

/// Returns an engine of this crate by name, for tools that need no registry.
///
/// # Panics
/// If there is none.
#[must_use]
pub fn built_in(name: &str) -> Registration {
    let found = BUILT_IN.iter().find(|engine| engine.info.name == name);
    *found.unwrap_or_else(|| panic!("no built-in engine `{name}`"))
}

/// Starts an engine with the wrappers that the configuration asks for: offload workers, file locks.
/// Opens no file.
///
/// # Errors
/// The errno of the failed system call, with a remedy.
///
/// # Panics
/// If `depth` or `buffer_bytes` is 0.
pub fn start(config: EngineConfig) -> Result<AnyEngine, EngineError> {
    start_with_stats(config).map(|(engine, _stats)| engine)
}

/// Starts an engine as [`start`] does, and returns the statistics of its workers, if it has any.
///
/// # Errors
/// As [`start`].
///
/// # Panics
/// As [`start`].
pub fn start_with_stats(
    config: EngineConfig,
) -> Result<(AnyEngine, Option<SharedStats>), EngineError> {
    assert!(config.depth > 0 && config.buffer_bytes > 0);
    let (locks, depth) = (config.locks.clone(), config.depth);
    let (engine, stats) = match config.offload {
        Some(kick) => {
            let engine = Offload::start(config, kick)?;
            let stats = engine.stats();
            (AnyEngine::Offload(Box::new(engine)), Some(stats))
        }
        None => {
            let engine = (config.engine.start)(&config)?;
            // An engine may consist of workers itself.
            let stats = match &engine {
                AnyEngine::Offload(offload) => Some(offload.stats()),
                _ => None,
            };
            (engine, stats)
        }
    };
    if locks.is_empty() {
        return Ok((engine, stats));
    }
    let locking = Locking::new(engine.boxed(), &locks, depth);
    Ok((AnyEngine::Boxed(Box::new(locking)), stats))
}

/// Engines of this crate, in the order of help texts.
const BUILT_IN: &[Registration] = &[
    Registration::new(&sync::PSYNC, |config| sync_engine(SyncCall::Psync, config)),
    Registration::new(&sync::SYNC, |config| sync_engine(SyncCall::Sync, config)),
    Registration::new(&sync::VSYNC, |config| sync_engine(SyncCall::Vsync, config)),
    Registration::new(&sync::PVSYNC, |config| {
        sync_engine(SyncCall::Pvsync, config)
    }),
    Registration::new(&sync::PVSYNC2, |config| {
        sync_engine(SyncCall::Pvsync2, config)
    }),
    Registration {
        is_permitted: aio::is_permitted,
        ..Registration::new(&libaio::INFO, |config| {
            Libaio::start(config).map(AnyEngine::Libaio)
        })
    },
    Registration {
        file_check: uring::file_check,
        ..Registration::new(&uring::INFO, uring::start)
    },
    passthrough::REGISTRATION,
    sg::REGISTRATION,
    iscsi::REGISTRATION,
    nfs::REGISTRATION,
    Registration::new(&posixaio::INFO, posixaio::start),
    Registration::new(&mmap::INFO, Mmap::start),
    Registration::new(&splice::INFO, splice::start),
    Registration::new(&falloc::INFO, falloc::start),
    Registration::new(&ftruncate::INFO, ftruncate::start),
    Registration::new(&e4defrag::INFO, e4defrag::start),
    Registration::new(&filecreate::INFO, filecreate::start),
    Registration::new(&filestat::INFO, filestat::start),
    Registration::new(&filedelete::INFO, filedelete::start),
    Registration::new(&dircreate::INFO, dircreate::start),
    Registration::new(&dirstat::INFO, dirstat::start),
    Registration::new(&dirdelete::INFO, dirdelete::start),
    Registration::new(&page_fault::INFO, page_fault::start),
    Registration::new(&null::INFO, |config| {
        Ok(AnyEngine::Null(Null::start(config)))
    }),
    Registration::new(&cpuio::INFO, |config| {
        Ok(AnyEngine::Boxed(Box::new(Cpuio::start(config)?)))
    }),
    Registration::new(&net::INFO, |config| {
        let engine = Net::start(config, &net::INFO, false)?;
        Ok(AnyEngine::Boxed(Box::new(engine)))
    }),
    Registration::new(&netsplice::INFO, |config| {
        Ok(AnyEngine::Boxed(Box::new(netsplice::start(config)?)))
    }),
    Registration::new(&exec::INFO, |config| {
        Ok(AnyEngine::Boxed(Box::new(Exec::start(config)?)))
    }),
];

fn sync_engine(call: SyncCall, config: &EngineConfig) -> Result<AnyEngine, EngineError> {
    SyncEngine::start(call, config).map(AnyEngine::Sync)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_options_are_unique() {
        let registry = Registry::built_in();
        for info in registry.infos() {
            assert!(registry.find(info.name).is_some());
            let called = registry
                .infos()
                .iter()
                .filter(|other| other.is_called(info.name));
            assert_eq!(called.count(), 1, "{}", info.name);
            for option in info.options {
                let same = info
                    .options
                    .iter()
                    .filter(|other| other.name == option.name);
                assert_eq!(same.count(), 1, "{}: {}", info.name, option.name);
            }
        }
    }

    #[test]
    fn engines_that_manage_zones_report_them() {
        for engine in BUILT_IN {
            let info = engine.info;
            assert_eq!(engine.zones.is_some(), info.manages_zones, "{}", info.name);
        }
    }

    #[test]
    #[should_panic(expected = "two engines called `null`")]
    fn a_name_is_taken_once() {
        let _registry = Registry::built_in().with(built_in("null"));
    }
}

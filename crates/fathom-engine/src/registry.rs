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

use fathom_core::{EngineError, EngineInfo};
use fathom_sys::aio;

use crate::libaio::{self, Libaio};
use crate::locking::Locking;
use crate::mmap::{self, Mmap};
use crate::null::{self, Null};
use crate::offload::{Offload, SharedStats};
use crate::sync::{self, Call, Sync};
use crate::uring::{self, Uring};
use crate::{AnyEngine, EngineConfig};

/// An engine as a run knows it: facts that hold before it starts, and the way to start it.
#[derive(Clone, Copy, Debug)]
pub struct Registration {
    /// Its facts.
    pub info: &'static EngineInfo,
    /// Constructor: creates its rings and its memory on the calling thread, which must be the one
    /// that uses it. Opens no file.
    pub start: fn(&EngineConfig) -> Result<AnyEngine, EngineError>,
    /// Chooses the check that every file must pass when it is opened, if there is one.
    pub file_check: fn(&EngineConfig) -> Option<FileCheck>,
    /// Quick test that starting it will not be refused by the kernel; where it says yes, a run
    /// saves the time of starting one on trial.
    pub is_permitted: fn() -> bool,
}

/// Check of a file just opened: the reason why the engine cannot work with it.
pub type FileCheck = fn(&File) -> Option<FileRefusal>;

/// Reason why an engine cannot work with an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileRefusal {
    /// The option or call that the file does not support.
    pub what: &'static str,
    /// The errno that its ops would fail with.
    pub errno: i32,
    /// Remedy, in the imperative.
    pub hint: &'static str,
}

impl Registration {
    /// An engine that takes any file.
    #[must_use]
    pub const fn new(
        info: &'static EngineInfo,
        start: fn(&EngineConfig) -> Result<AnyEngine, EngineError>,
    ) -> Self {
        Self {
            info,
            start,
            file_check: |_| None,
            is_permitted: || false,
        }
    }
}

/// The engines that a run can use.
///
/// A value that is passed in, not global state: two runs in a process may know different engines.
#[derive(Clone, Debug)]
pub struct Registry {
    engines: Vec<Registration>,
    /// The facts of each, for those who must not start one.
    infos: Vec<&'static EngineInfo>,
}

impl Registry {
    /// The engines of this crate.
    #[must_use]
    pub fn built_in() -> Self {
        Self {
            engines: BUILT_IN.to_vec(),
            infos: BUILT_IN.iter().map(|engine| engine.info).collect(),
        }
    }

    /// The registry with one more engine.
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

    /// Facts about each engine, in the order in which help lists them.
    #[must_use]
    pub fn infos(&self) -> &[&'static EngineInfo] {
        &self.infos
    }

    /// The engine of this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Registration> {
        let found = self.engines.iter().find(|engine| engine.info.name == name);
        found.copied()
    }
}

/// The engine of this crate that has this name, for tools that need no registry.
///
/// # Panics
/// If there is none.
#[must_use]
pub fn built_in(name: &str) -> Registration {
    let found = BUILT_IN.iter().find(|engine| engine.info.name == name);
    *found.unwrap_or_else(|| panic!("no built-in engine `{name}`"))
}

/// Starts an engine with everything the configuration wants around it: workers that submit in its
/// place, and locks that its ops wait for. Opens no file.
///
/// # Errors
/// The errno of the system call by which the kernel refused it, with what would help.
///
/// # Panics
/// If `depth` or `buffer_bytes` is 0.
pub fn start(config: EngineConfig) -> Result<AnyEngine, EngineError> {
    start_with_stats(config).map(|(engine, _stats)| engine)
}

/// Starts an engine as [`start`] does, with the statistics of its workers where it has some.
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
        None => ((config.engine.start)(&config)?, None),
    };
    if locks.is_empty() {
        return Ok((engine, stats));
    }
    let locking = Locking::new(engine.boxed(), &locks, depth);
    Ok((AnyEngine::Boxed(Box::new(locking)), stats))
}

/// The engines of this crate, in the order in which help lists them.
const BUILT_IN: [Registration; 9] = [
    Registration::new(&sync::PSYNC, |config| sync_engine(Call::Psync, config)),
    Registration::new(&sync::SYNC, |config| sync_engine(Call::Sync, config)),
    Registration::new(&sync::VSYNC, |config| sync_engine(Call::Vsync, config)),
    Registration::new(&sync::PVSYNC, |config| sync_engine(Call::Pvsync, config)),
    Registration::new(&sync::PVSYNC2, |config| sync_engine(Call::Pvsync2, config)),
    Registration {
        is_permitted: aio::is_permitted,
        ..Registration::new(&libaio::INFO, |config| {
            Libaio::start(config).map(AnyEngine::Libaio)
        })
    },
    Registration {
        file_check: uring::file_check,
        ..Registration::new(&uring::INFO, |config| {
            Uring::start(config).map(AnyEngine::Uring)
        })
    },
    Registration::new(&mmap::INFO, |config| {
        Ok(AnyEngine::Boxed(Box::new(Mmap::start(config)?)))
    }),
    Registration::new(&null::INFO, |config| {
        Ok(AnyEngine::Null(Null::start(config)))
    }),
];

fn sync_engine(call: Call, config: &EngineConfig) -> Result<AnyEngine, EngineError> {
    Sync::start(call, config).map(AnyEngine::Sync)
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
    #[should_panic(expected = "two engines called `null`")]
    fn a_name_is_taken_once() {
        let _registry = Registry::built_in().with(built_in("null"));
    }
}

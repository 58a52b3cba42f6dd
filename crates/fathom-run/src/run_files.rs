//! Files of a run: those of this host, and those of engines whose storage is remote.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;

use fathom_core::{EngineError, EngineInfo, EngineValues, RemoteFile, ZoneReport};
use fathom_engine::{EngineConfig, EngineFile, Registration, Registry};
use fathom_host::FileIdentity;
use fathom_host::target_kind::{FileSystemProbe, HostFileSystem, TargetKind};
use fathom_sys::clock::Clock;

/// File metadata of a run. Each remote file is looked up once, however many clones use it.
pub(crate) struct RunFiles<'a> {
    engines: &'a Registry,
    clock: Clock,
    /// Remote files found so far, by engine and path.
    remote: RefCell<HashMap<(&'static str, String), RemoteFile>>,
}

impl<'a> RunFiles<'a> {
    pub(crate) fn new(engines: &'a Registry, clock: Clock) -> Self {
        Self {
            engines,
            clock,
            remote: RefCell::default(),
        }
    }

    /// Returns the configuration of an engine that looks at a file.
    fn config(&self, engine: Registration, options: &EngineValues, path: &str) -> EngineConfig {
        let file = EngineFile {
            path: path.to_owned(),
            read: true,
            ..EngineFile::default()
        };
        EngineConfig {
            files: vec![file],
            options: options.clone(),
            ..EngineConfig::new(engine, self.clock)
        }
    }
}

impl FileSystemProbe for RunFiles<'_> {
    fn kind(&self, path: &str) -> io::Result<TargetKind> {
        HostFileSystem.kind(path)
    }

    fn zones(&self, path: &str) -> io::Result<Option<ZoneReport>> {
        HostFileSystem.zones(path)
    }

    fn cycles_hz(&self) -> u64 {
        HostFileSystem.cycles_hz()
    }

    fn block_device(&self, major: u32, minor: u32) -> Option<String> {
        HostFileSystem.block_device(major, minor)
    }

    fn identity(&self, path: &str) -> FileIdentity {
        HostFileSystem.identity(path)
    }

    fn files_in(&self, directory: &str) -> io::Result<Vec<String>> {
        HostFileSystem.files_in(directory)
    }

    fn engine_zones(
        &self,
        engine: &'static EngineInfo,
        options: &EngineValues,
        path: &str,
    ) -> Result<Option<ZoneReport>, EngineError> {
        let engine = self.engines.find(engine.name);
        let look_up = engine.and_then(|engine| Some((engine, engine.zones?)));
        match look_up {
            Some((engine, look_up)) => look_up(&self.config(engine, options, path)),
            None => Ok(None),
        }
    }

    fn remote(
        &self,
        engine: &'static EngineInfo,
        options: &EngineValues,
        path: &str,
    ) -> Result<Option<RemoteFile>, EngineError> {
        // An engine that is not registered is refused later, by name.
        let Some(engine) = self.engines.find(engine.name) else {
            return Ok(None);
        };
        let Some(look_up) = engine.remote_file else {
            return Ok(None);
        };
        let key = (engine.info.name, path.to_owned());
        if let Some(known) = self.remote.borrow().get(&key) {
            return Ok(Some(*known));
        }
        let found = look_up(&self.config(engine, options, path))?;
        self.remote.borrow_mut().insert(key, found);
        Ok(Some(found))
    }
}

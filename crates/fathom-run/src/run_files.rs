//! Files of a run: those of this host, and those of engines whose storage is remote.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use fathom_core::{
    EngineError, EngineInfo, EngineStep, EngineValues, Errno, RemoteFile, ZoneReport,
};
use fathom_engine::{EngineConfig, EngineFile, Registration, Registry, RemoteFileCheck};
use fathom_host::FileIdentity;
use fathom_host::target_kind::{FileSystemProbe, HostFileSystem, TargetKind};
use fathom_job::Job;
use fathom_setup::RunProblem;
use fathom_sys::clock::Clock;

/// Returns the files and devices on this host that the replays of a job write or trim. Costs the
/// reading of its logs.
///
/// # Errors
/// A log cannot be read or merged, or names a device that is not there.
pub fn replayed_targets(job: &Job) -> Result<Vec<String>, RunProblem> {
    fathom_setup::translate::replayed_targets(job, &HostFileSystem)
}

/// File metadata of a run. Each remote file is looked up once, however many clones use it.
pub(crate) struct RunFiles<'a> {
    engines: &'a Registry,
    clock: Clock,
    /// Remote files found so far, by engine and path.
    remote: RefCell<HashMap<(&'static str, String), RemoteFile>>,
    /// Number of stop requests so far.
    stops: &'a dyn Fn() -> u32,
    is_interrupted: Cell<bool>,
}

impl<'a> RunFiles<'a> {
    pub(crate) fn new(engines: &'a Registry, clock: Clock, stops: &'a dyn Fn() -> u32) -> Self {
        Self {
            engines,
            clock,
            remote: RefCell::default(),
            stops,
            is_interrupted: Cell::new(false),
        }
    }

    /// Returns whether a stop request ended the look-up of a remote file.
    pub(crate) const fn is_interrupted(&self) -> bool {
        self.is_interrupted.get()
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

    /// Looks up a remote file on a thread of its own, which a stop request leaves behind: a host
    /// that does not answer holds it until the engine's timeout.
    fn look_up(
        &self,
        look_up: RemoteFileCheck,
        config: EngineConfig,
    ) -> Result<RemoteFile, EngineError> {
        let target = config.files[0].path.clone();
        let failed = |errno| EngineError {
            step: EngineStep::Call("look-up"),
            target,
            errno,
            hint: String::new(),
        };
        let (sender, receiver) = mpsc::channel();
        let thread = thread::Builder::new().name("look-up".to_owned());
        let spawned = thread.spawn(move || {
            // Nobody receives it after a stop request.
            let _unheard = sender.send(look_up(&config));
        });
        if let Err(error) = spawned {
            return Err(failed(Errno::of(&error)));
        }
        loop {
            match receiver.recv_timeout(LOOK_EVERY) {
                Ok(found) => return found,
                Err(RecvTimeoutError::Timeout) if (self.stops)() > 0 => {
                    self.is_interrupted.set(true);
                    return Err(failed(Some(Errno::EINTR)));
                }
                Err(RecvTimeoutError::Timeout) => {}
                // The thread has panicked.
                Err(RecvTimeoutError::Disconnected) => return Err(failed(None)),
            }
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
        let found = self.look_up(look_up, self.config(engine, options, path))?;
        self.remote.borrow_mut().insert(key, found);
        Ok(Some(found))
    }
}

/// Interval between looks for stop requests; a guess below what a user notices.
const LOOK_EVERY: Duration = Duration::from_millis(50);

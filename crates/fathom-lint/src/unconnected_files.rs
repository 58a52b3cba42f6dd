//! Files as lint sees them: it connects to no other machine.

use std::io;
use std::path::Path;

use fathom_core::{
    Direction, EngineError, EngineInfo, EngineStep, EngineValues, Errno, RemoteFile, ZoneReport,
};
use fathom_host::block_tree::BlockTree;
use fathom_host::target_kind::{FileSystemProbe, HostFileSystem, TargetKind};

/// File metadata of this host; remote files are assumed to exist.
pub(crate) struct UnconnectedFiles;

impl FileSystemProbe for UnconnectedFiles {
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

    fn files_in(&self, directory: &str) -> io::Result<Vec<String>> {
        HostFileSystem.files_in(directory)
    }

    /// Returns the zones of the block device of the same data: lint sends no commands of its own.
    fn engine_zones(
        &self,
        _engine: &'static EngineInfo,
        _options: &EngineValues,
        path: &str,
    ) -> Result<Option<ZoneReport>, EngineError> {
        let found = match BlockTree::default().device_at(Path::new(path)) {
            Some(device) => HostFileSystem.zones(&format!("/dev/{}", device.name)),
            None => Err(Errno::ENOENT.into()),
        };
        found.map_err(|error| EngineError {
            step: EngineStep::Call("read zones"),
            target: format!("{path}: its block device"),
            errno: Errno::of(&error),
            hint: "lint sends no commands, and reads zones from the block device: run the job to \
                   have it checked"
                .to_owned(),
        })
    }

    fn remote(
        &self,
        _engine: &'static EngineInfo,
        _options: &EngineValues,
        _path: &str,
    ) -> Result<Option<RemoteFile>, EngineError> {
        Ok(Some(ASSUMED))
    }
}

/// Larger than what a job addresses without knowing, in the most common blocks.
const ASSUMED: RemoteFile = RemoteFile {
    bytes: 1 << 40,
    block_bytes: 512,
    directions: &Direction::ALL,
};

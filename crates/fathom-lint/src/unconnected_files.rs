//! Files as lint sees them: it connects to no other machine.

use std::io;

use fathom_core::{Direction, EngineError, EngineInfo, EngineValues, RemoteFile, ZoneReport};
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

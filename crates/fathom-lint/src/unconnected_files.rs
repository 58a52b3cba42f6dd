//! Files as lint sees them: it connects to no other machine.

use std::io;
use std::path::Path;

use fathom_core::{
    Direction, EngineError, EngineInfo, EngineStep, EngineValues, Errno, RemoteFile, WriteArea,
    ZoneReport,
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

    /// Returns the zones of the block device of the same data, as lint sends no commands of its
    /// own; random write areas, which only commands report, are assumed to suit any job.
    fn engine_zones(
        &self,
        _engine: &'static EngineInfo,
        _options: &EngineValues,
        path: &str,
    ) -> Result<Option<ZoneReport>, EngineError> {
        let found = match block_device_of(path) {
            Some(device) => HostFileSystem.zones(&device),
            None => Err(Errno::ENOENT.into()),
        };
        let found = found.map(|report| {
            report.map(|report| ZoneReport {
                area: Some(ANY_AREA),
                ..report
            })
        });
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
        path: &str,
    ) -> Result<Option<RemoteFile>, EngineError> {
        let kind = block_device_of(path).map(|device| HostFileSystem.kind(&device));
        Ok(Some(match kind {
            // Its blocks may be shorter than the engine's, which can have metadata behind them.
            Some(Ok(TargetKind::Block { bytes, .. })) if bytes > 0 => {
                RemoteFile { bytes, ..ASSUMED }
            }
            _ => ASSUMED,
        }))
    }
}

/// Returns the path of the block device of the same data as a character device.
fn block_device_of(path: &str) -> Option<String> {
    let device = BlockTree::default().device_at(Path::new(path))?;
    Some(format!("/dev/{}", device.name))
}

/// Larger than what a job addresses without knowing, in the most common blocks.
const ASSUMED: RemoteFile = RemoteFile {
    bytes: 1 << 40,
    block_bytes: 512,
    directions: &Direction::ALL,
};

/// Random write areas that take any write.
const ANY_AREA: WriteArea = WriteArea {
    bytes: 1 << 40,
    granule: 1,
    zones: None,
};

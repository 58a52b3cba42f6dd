//! Kind and size of a job's target before the run begins.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fathom_core::{EngineError, EngineInfo, EngineValues, RemoteFile, ZoneReport};
use fathom_sys::files::{self, Access, DeviceNumber, FileKind};
use fathom_sys::system;
use fathom_sys::zones;

use crate::file_identity::FileIdentity;

/// Kind of a target, with its size where it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// No file of this name.
    Missing,
    /// A regular file, with its size in bytes.
    Regular(u64),
    /// A block device.
    Block {
        /// Size of the device.
        bytes: u64,
        /// Logical block size in bytes, of which direct ops must be multiples.
        logical_block: u32,
    },
    /// A character device, a pipe, a socket.
    Stream,
    /// A directory.
    Directory,
}

impl TargetKind {
    /// Returns the size in bytes, if this kind has one.
    pub fn bytes(self) -> Option<u64> {
        match self {
            Self::Regular(bytes) | Self::Block { bytes, .. } => Some(bytes),
            Self::Missing | Self::Stream | Self::Directory => None,
        }
    }

    /// Returns whether the target is a regular file, or would be created as one.
    pub fn is_file_or_missing(self) -> bool {
        matches!(self, Self::Missing | Self::Regular(_))
    }
}

/// Source of file metadata: the host's file system, a modelled machine, or a table in tests.
///
/// A plan is translated through this trait alone, so it can be judged without touching its files.
pub trait FileSystemProbe {
    /// Returns the kind of `path`, links followed.
    fn kind(&self, path: &str) -> io::Result<TargetKind>;

    /// Returns the zones of the block device at `path`; `None` if it has none.
    ///
    /// # Errors
    /// The device cannot be opened, or does not report its zones.
    fn zones(&self, path: &str) -> io::Result<Option<ZoneReport>> {
        let _no_zones = path;
        Ok(None)
    }

    /// Returns the zones of a device of an engine that manages zones itself
    /// ([`EngineInfo::manages_zones`]), given the engine's options; `None` if it has none.
    ///
    /// # Errors
    /// The engine's, if the device does not report its zones.
    fn engine_zones(
        &self,
        _engine: &'static EngineInfo,
        _options: &EngineValues,
        _path: &str,
    ) -> Result<Option<ZoneReport>, EngineError> {
        Ok(None)
    }

    /// Returns the size of a file of an engine whose storage is remote, given the engine's options;
    /// `None` if it is not known.
    ///
    /// # Errors
    /// The engine's, if there is no such file.
    fn remote(
        &self,
        _engine: &'static EngineInfo,
        _options: &EngineValues,
        _path: &str,
    ) -> Result<Option<RemoteFile>, EngineError> {
        Ok(None)
    }

    /// Returns the frequency that converts `thinkcycles` to time.
    fn cycles_hz(&self) -> u64 {
        1_000_000_000
    }

    /// Opens a log to be replayed. Logs are inputs like job files: a modelled machine reads them
    /// from this host, too.
    fn open_log(&self, path: &str) -> io::Result<Box<dyn io::Read>> {
        // Not asked of the open file: opening a FIFO would wait for its writer.
        if !fs::metadata(path)?.is_file() {
            let why = "not a regular file, but a log is read twice; save it to one";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        Ok(Box::new(fs::File::open(path)?))
    }

    /// Returns the path of the block device with these numbers, if there is one.
    fn block_device(&self, _major: u32, _minor: u32) -> Option<String> {
        None
    }

    /// Returns the identity of the file at `path`, the same under all of its names.
    fn identity(&self, path: &str) -> FileIdentity {
        FileIdentity::Named(path.into())
    }

    /// Lists the regular files in a directory and its subdirectories, sorted by name.
    fn files_in(&self, _directory: &str) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }
}

/// The file system of this host.
pub struct HostFileSystem;

impl FileSystemProbe for HostFileSystem {
    fn kind(&self, path: &str) -> io::Result<TargetKind> {
        let metadata = match fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(TargetKind::Missing);
            }
            Err(error) => return Err(error),
        };
        Ok(match FileKind::of(&metadata) {
            FileKind::Regular => TargetKind::Regular(metadata.len()),
            FileKind::Directory => TargetKind::Directory,
            FileKind::Character | FileKind::Other => TargetKind::Stream,
            FileKind::Block => {
                let device = files::open(Path::new(path), Access::default())?;
                TargetKind::Block {
                    bytes: files::size(&device)?,
                    logical_block: files::logical_block_size(&device)?,
                }
            }
        })
    }

    fn zones(&self, path: &str) -> io::Result<Option<ZoneReport>> {
        let device = files::open(Path::new(path), Access::default())?;
        if zones::zone_count(&device)? == 0 {
            return Ok(None);
        }
        let number = DeviceNumber::of_node(&device.metadata()?);
        let report = ZoneReport {
            zones: zones::zones(&device, 0, usize::MAX)?,
            open_max: open_zones_max(number),
            area: None,
            device: number.identity(FileKind::Block),
        };
        match report.is_complete() {
            true => Ok(Some(report)),
            false => Err(io::Error::other("the device reports zones with gaps")),
        }
    }

    fn cycles_hz(&self) -> u64 {
        // Not reported by every architecture and hypervisor; a cycle then counts as 1 ns.
        system::cpu_hz().unwrap_or(1_000_000_000)
    }

    fn block_device(&self, major: u32, minor: u32) -> Option<String> {
        let link = fs::read_link(format!("/sys/dev/block/{major}:{minor}")).ok()?;
        // sysfs writes `!` for the `/` of names such as cciss/c0d0.
        let name = link.file_name()?.to_str()?.replace('!', "/");
        let path = format!("/dev/{name}");
        matches!(self.kind(&path), Ok(TargetKind::Block { .. })).then_some(path)
    }

    fn identity(&self, path: &str) -> FileIdentity {
        FileIdentity::of(Path::new(path))
    }

    fn files_in(&self, directory: &str) -> io::Result<Vec<String>> {
        let mut found = Vec::new();
        let mut folders = vec![PathBuf::from(directory)];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder)? {
                let entry = entry?;
                let kind = entry.file_type()?;
                if kind.is_dir() {
                    folders.push(entry.path());
                } else if kind.is_file() {
                    // A name made from the bytes that are no text would be that of another file.
                    let name = entry.path().into_os_string().into_string();
                    found.push(name.map_err(|name| {
                        io::Error::other(format!("{}: the name is not UTF-8", name.display()))
                    })?);
                }
            }
        }
        found.sort_unstable();
        Ok(found)
    }
}

/// Returns the smaller of the limits of open and of active zones; `None` if there is neither.
fn open_zones_max(number: DeviceNumber) -> Option<u32> {
    let limit = |name: &str| {
        let text = fs::read_to_string(format!("/sys/dev/block/{number}/queue/{name}")).ok()?;
        text.trim().parse().ok().filter(|&max| max > 0)
    };
    let limits = [limit("max_open_zones"), limit("max_active_zones")];
    limits.into_iter().flatten().min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_directory_are_found_in_the_order_of_their_names() {
        let folder = std::env::temp_dir().join(format!("fathom-opendir-{}", std::process::id()));
        fs::create_dir_all(folder.join("b/deeper")).expect("a folder");
        for name in ["c", "a", "b/deeper/x", "b/y"] {
            fs::write(folder.join(name), name).expect("a file");
        }
        let text = folder.to_string_lossy().into_owned();
        let found = HostFileSystem.files_in(&text).expect("files");
        let names: Vec<&str> = found.iter().map(|name| &name[text.len() + 1..]).collect();
        assert_eq!(names, ["a", "b/deeper/x", "b/y", "c"]);
        fs::remove_dir_all(&folder).expect("removed");
        assert!(HostFileSystem.files_in(&text).is_err());
    }

    #[test]
    fn a_name_that_is_no_text_is_not_replaced_by_another() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;

        let folder = std::env::temp_dir().join(format!("fathom-no-text-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join(OsStr::from_bytes(b"n\xff")), "").expect("a file");
        let found = HostFileSystem.files_in(&folder.to_string_lossy());
        let why = found.expect_err("its name is no text").to_string();
        assert!(why.ends_with("n\u{fffd}: the name is not UTF-8"), "{why}");
        fs::remove_dir_all(&folder).expect("removed");
    }
}

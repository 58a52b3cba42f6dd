//! What lies under a path before the run begins.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fathom_sys::files::{self, Access, Kind};
use fathom_sys::system;

/// What lies under a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// Nothing.
    Missing,
    /// A regular file of so many bytes.
    Regular(u64),
    /// A block device.
    Block {
        /// Its size.
        bytes: u64,
        /// Its logical block, which direct ops must be multiples of.
        logical_block: u32,
    },
    /// A character device, a pipe, a socket.
    Stream,
    /// A directory.
    Directory,
}

impl TargetKind {
    /// Its size, where it has one.
    pub fn bytes(self) -> Option<u64> {
        match self {
            Self::Regular(bytes) | Self::Block { bytes, .. } => Some(bytes),
            Self::Missing | Self::Stream | Self::Directory => None,
        }
    }

    /// Whether it is a file, or would become one.
    pub fn is_file_or_missing(self) -> bool {
        matches!(self, Self::Missing | Self::Regular(_))
    }
}

/// Who looks: the file system, or a table in tests.
pub trait FileSystemProbe {
    /// What lies under `path`, links followed.
    fn kind(&self, path: &str) -> io::Result<TargetKind>;

    /// How many cycles the processor has in a second.
    fn cycles_hz(&self) -> u64 {
        1_000_000_000
    }

    /// The regular files in a directory and in those below it, in the order of their names.
    fn files_in(&self, _directory: &str) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }
}

/// The file system.
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
        Ok(match Kind::of(&metadata) {
            Kind::Regular => TargetKind::Regular(metadata.len()),
            Kind::Directory => TargetKind::Directory,
            Kind::Character | Kind::Other => TargetKind::Stream,
            Kind::Block => {
                let device = files::open(Path::new(path), Access::default())?;
                TargetKind::Block {
                    bytes: files::size(&device)?,
                    logical_block: files::logical_block_size(&device)?,
                }
            }
        })
    }

    fn cycles_hz(&self) -> u64 {
        // Where the kernel does not say, a cycle is taken for a nanosecond.
        system::cpu_hz().unwrap_or(1_000_000_000)
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
                    found.push(entry.path().to_string_lossy().into_owned());
                }
            }
        }
        found.sort_unstable();
        Ok(found)
    }
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
}

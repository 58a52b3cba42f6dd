//! Resolution of an output file's name.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use fathom_sys::files::FileKind;

use crate::block_tree::BlockTree;
use crate::error::HostError;
use crate::safety::Guard;

/// The object that an output file's name refers to, links followed.
#[derive(Debug)]
pub enum Destination {
    /// A missing file, by the name it would be created under.
    Missing(PathBuf),
    /// A regular file.
    Regular(PathBuf, Metadata),
    /// A regular file named through `/proc/…/fd`. Replacing it would detach the open descriptor.
    Descriptor,
    /// A pipe or a character device.
    Stream,
}

impl Destination {
    /// Resolves `path`.
    ///
    /// # Errors
    /// The reason why no output can go there.
    pub fn of(path: &Path) -> Result<Self, HostError> {
        let destination = Self::found(path)?;
        let guard = Guard::new(BlockTree::default());
        guard.check_output(path).map_err(HostError::Refused)?;
        Ok(destination)
    }

    fn found(path: &Path) -> Result<Self, HostError> {
        let end = follow(path)?;
        let metadata = match fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return match end {
                    LinkEnd::Name(name) if name.file_name().is_some() => Ok(Self::Missing(name)),
                    LinkEnd::Name(_) | LinkEnd::Descriptor => Err(error.into()),
                };
            }
            Err(error) => return Err(error.into()),
        };
        let refused = |what| Err(HostError::Unsuitable(what));
        match (FileKind::of(&metadata), end) {
            // Such as the history of runs, whatever name or link leads to it.
            (FileKind::Regular, _) if is_database(path) => {
                refused("is an SQLite database: its data would be overwritten")
            }
            (FileKind::Regular, LinkEnd::Name(name)) => Ok(Self::Regular(name, metadata)),
            (FileKind::Regular, LinkEnd::Descriptor) => Ok(Self::Descriptor),
            (FileKind::Character, _) => Ok(Self::Stream),
            (FileKind::Other, _) if is_socket(&metadata) => refused("is a socket"),
            (FileKind::Other, _) => Ok(Self::Stream),
            (FileKind::Directory, _) => refused("is a directory"),
            // Never: the disk's data would be lost.
            (FileKind::Block, _) => refused("is a block device: its data would be overwritten"),
        }
    }
}

/// End of a chain of symbolic links.
enum LinkEnd {
    /// A name that is not a link and may not exist.
    Name(PathBuf),
    /// A magic link of procfs, which the kernel resolves to an open file.
    Descriptor,
}

fn follow(path: &Path) -> Result<LinkEnd, HostError> {
    let mut at = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(next) = fs::read_link(&at) else {
            return Ok(LinkEnd::Name(at));
        };
        let directory = match at.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        if fs::canonicalize(directory).is_ok_and(|directory| is_descriptors(&directory)) {
            return Ok(LinkEnd::Descriptor);
        }
        at = directory.join(next);
    }
    Err(HostError::LinkCycle)
}

/// Returns whether a directory is `/proc/PID/fd`, or the one of a thread.
fn is_descriptors(directory: &Path) -> bool {
    directory.starts_with("/proc") && directory.file_name().is_some_and(|name| name == "fd")
}

fn is_socket(metadata: &Metadata) -> bool {
    std::os::unix::fs::FileTypeExt::is_socket(&metadata.file_type())
}

/// Returns whether a file is an SQLite database. One that cannot be read counts as none.
fn is_database(path: &Path) -> bool {
    let mut header = [0; SQLITE_HEADER.len()];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut header));
    read.is_ok() && header == *SQLITE_HEADER
}

/// First bytes of a database, by the documentation of SQLite's file format.
const SQLITE_HEADER: &[u8; 16] = b"SQLite format 3\0";

/// `MAXSYMLINKS` of the kernel.
const LINKS_MAX: u32 = 40;

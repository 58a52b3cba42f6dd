//! The place that the name of an output file leads to.

use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use fathom_sys::files::Kind;

use crate::block_tree::BlockTree;
use crate::safety::Guard;

/// The place that a name leads to, links followed.
#[derive(Debug)]
pub enum Destination {
    /// A name in a directory that has no file of it.
    Missing(PathBuf),
    /// A regular file.
    Regular(PathBuf, Metadata),
    /// A regular file that this process or another has open, by way of `/proc/…/fd`. To replace
    /// it would part the descriptor from the name.
    Descriptor,
    /// A pipe or a character device.
    Stream,
}

impl Destination {
    /// Follows `path`.
    ///
    /// # Errors
    /// Why no output can go there.
    pub fn of(path: &Path) -> io::Result<Self> {
        let destination = Self::found(path)?;
        let guard = Guard::new(BlockTree::default());
        guard.check_output(path).map_err(io::Error::other)?;
        Ok(destination)
    }

    fn found(path: &Path) -> io::Result<Self> {
        let end = follow(path)?;
        let metadata = match fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return match end {
                    End::Name(name) if name.file_name().is_some() => Ok(Self::Missing(name)),
                    End::Name(_) | End::Descriptor => Err(error),
                };
            }
            Err(error) => return Err(error),
        };
        let refused = |what: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        match (Kind::of(&metadata), end) {
            (Kind::Regular, End::Name(name)) => Ok(Self::Regular(name, metadata)),
            (Kind::Regular, End::Descriptor) => Ok(Self::Descriptor),
            (Kind::Character, _) => Ok(Self::Stream),
            (Kind::Other, _) if is_socket(&metadata) => refused("is a socket"),
            (Kind::Other, _) => Ok(Self::Stream),
            (Kind::Directory, _) => refused("is a directory"),
            // Whoever names a disk here would lose what it holds.
            (Kind::Block, _) => refused("is a block device: its data would be overwritten"),
        }
    }
}

/// The end of a chain of symbolic links.
enum End {
    /// A name that is no link; there may be nothing of it.
    Name(PathBuf),
    /// A link that the kernel follows by itself, to an open file.
    Descriptor,
}

fn follow(path: &Path) -> io::Result<End> {
    let mut at = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(next) = fs::read_link(&at) else {
            return Ok(End::Name(at));
        };
        let directory = match at.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        if fs::canonicalize(directory).is_ok_and(|directory| is_descriptors(&directory)) {
            return Ok(End::Descriptor);
        }
        at = directory.join(next);
    }
    Err(io::Error::other("too many levels of symbolic links"))
}

/// Returns whether a directory is `/proc/PID/fd`, or that of a thread.
fn is_descriptors(directory: &Path) -> bool {
    directory.starts_with("/proc") && directory.file_name().is_some_and(|name| name == "fd")
}

fn is_socket(metadata: &Metadata) -> bool {
    std::os::unix::fs::FileTypeExt::is_socket(&metadata.file_type())
}

/// As the kernel's.
const LINKS_MAX: u32 = 40;

//! Identity of a file on this host, whatever it is called.

use std::fs;
use std::path::{Path, PathBuf};

use fathom_sys::files::{self, DeviceNumber, FileId, FileKind};

use crate::storage::resolved;

/// Identity of a file: equal for all of its names, be they relative, links or device nodes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileIdentity {
    /// A file that exists.
    Found(FileId),
    /// A block device.
    Device(DeviceNumber),
    /// A missing file, by the path at which it would be created, or the name of something else.
    Named(PathBuf),
}

impl FileIdentity {
    /// Returns the identity of the file at `path`, links followed. A file that is created later
    /// has another one.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        match fs::metadata(path) {
            Ok(found) if FileKind::of(&found) == FileKind::Block => {
                Self::Device(DeviceNumber::of_node(&found))
            }
            Ok(found) => Self::Found(FileId::of(&found)),
            Err(_) => Self::missing(path),
        }
    }

    fn missing(path: &Path) -> Self {
        let made = files::creation_path(path).unwrap_or_else(|_circle| path.to_path_buf());
        match resolved(&made) {
            Some((real, rest)) => Self::Named(real.components().chain(rest.components()).collect()),
            None => Self::Named(made),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_one_identity_under_all_names() {
        let name = format!("fathom-file-identity-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(folder.join("below")).expect("a folder");
        let of = |name: &str| FileIdentity::of(&folder.join(name));
        std::os::unix::fs::symlink("a", folder.join("link")).expect("a link");
        let names = ["a", "./a", "below/../a", "link"];
        for exists in [false, true] {
            if exists {
                fs::write(folder.join("a"), "").expect("a file");
                fs::hard_link(folder.join("a"), folder.join("hard")).expect("another name");
                assert_eq!(of("hard"), of("a"));
            }
            for name in names {
                assert_eq!(of(name), of("a"), "{name}, exists: {exists}");
            }
            assert_ne!(of("b"), of("a"), "exists: {exists}");
        }
        fs::remove_dir_all(&folder).expect("removed");
    }
}

//! System calls on the name of a file. Each returns 0 or a negated errno, unless it says otherwise.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, OwnedFd};

use crate::file_io::{done, moved};

/// Opens a file, which is created if it is missing, and returns its descriptor. A link is not
/// followed.
///
/// # Errors
/// The negated errno: ELOOP for a link.
pub fn create(path: &CStr) -> Result<OwnedFd, i32> {
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NOCTTY;
    // SAFETY: the path ends in a nul byte; the mode is an integer.
    let fd = moved(|| unsafe { libc::open(path.as_ptr(), flags, FILE_MODE) } as isize);
    if fd < 0 {
        return Err(fd);
    }
    // SAFETY: a new descriptor, which nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// System call that looks up the metadata of a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StatCall {
    /// `stat(2)`: follows links.
    #[default]
    Stat,
    /// `lstat(2)`: looks at a link itself.
    Lstat,
    /// `statx(2)` for the basic fields: follows links.
    Statx,
}

/// Looks up the metadata of a name, and drops them.
#[must_use]
pub fn stat(path: &CStr, call: StatCall) -> i32 {
    let path = path.as_ptr();
    match call {
        StatCall::Stat => {
            let mut found = MaybeUninit::<libc::stat>::uninit();
            let found = found.as_mut_ptr();
            // SAFETY: the path ends in a nul byte, and the structure has room for what is found.
            done(|| unsafe { libc::stat(path, found) })
        }
        StatCall::Lstat => {
            let mut found = MaybeUninit::<libc::stat>::uninit();
            let found = found.as_mut_ptr();
            // SAFETY: as above.
            done(|| unsafe { libc::lstat(path, found) })
        }
        StatCall::Statx => {
            let mut found = MaybeUninit::<libc::statx>::uninit();
            let (folder, mask) = (libc::AT_FDCWD, libc::STATX_BASIC_STATS);
            let found = found.as_mut_ptr();
            // SAFETY: as above.
            done(|| unsafe { libc::statx(folder, path, 0, mask, found) })
        }
    }
}

/// Removes the name of a file (`unlink(2)`).
#[must_use]
pub fn unlink(path: &CStr) -> i32 {
    // SAFETY: the path ends in a nul byte.
    done(|| unsafe { libc::unlink(path.as_ptr()) })
}

/// Creates a directory (`mkdir(2)`).
#[must_use]
pub fn make_directory(path: &CStr) -> i32 {
    // SAFETY: the path ends in a nul byte; the mode is an integer.
    done(|| unsafe { libc::mkdir(path.as_ptr(), DIRECTORY_MODE) })
}

/// Removes an empty directory (`rmdir(2)`).
#[must_use]
pub fn remove_directory(path: &CStr) -> i32 {
    // SAFETY: the path ends in a nul byte.
    done(|| unsafe { libc::rmdir(path.as_ptr()) })
}

/// Mode of created files, as fio's have.
const FILE_MODE: libc::mode_t = 0o600;

/// Mode of created directories: their user's alone.
const DIRECTORY_MODE: libc::mode_t = 0o700;

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};

    use super::*;

    fn scratch(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("fathom-sys-names-{}-{name}", std::process::id()))
    }

    fn c(path: &Path) -> CString {
        CString::new(path.as_os_str().as_bytes()).unwrap()
    }

    #[test]
    fn a_file_is_created_found_and_removed() {
        let path = scratch("file");
        let name = c(&path);
        for call in [StatCall::Stat, StatCall::Lstat, StatCall::Statx] {
            assert_eq!(stat(&name, call), -libc::ENOENT);
        }
        drop(create(&name).unwrap());
        for call in [StatCall::Stat, StatCall::Lstat, StatCall::Statx] {
            assert_eq!(stat(&name, call), 0);
        }
        assert_eq!(unlink(&name), 0);
        assert_eq!(unlink(&name), -libc::ENOENT);
    }

    #[test]
    fn a_directory_is_created_once_and_removed_only_empty() {
        let path = scratch("folder");
        let (name, inside) = (c(&path), c(&path.join("x")));
        assert_eq!(make_directory(&name), 0);
        assert_eq!(make_directory(&name), -libc::EEXIST);
        drop(create(&inside).unwrap());
        assert_eq!(remove_directory(&name), -libc::ENOTEMPTY);
        assert_eq!(unlink(&inside), 0);
        assert_eq!(remove_directory(&name), 0);
    }

    #[test]
    fn nothing_is_created_through_a_link() {
        let (link, target) = (scratch("link"), scratch("target"));
        symlink(&target, &link).unwrap();
        let refused = create(&c(&link)).map(drop);
        let exists = target.exists();
        std::fs::remove_file(&link).unwrap();
        assert_eq!(refused, Err(-libc::ELOOP));
        assert!(!exists);
    }
}

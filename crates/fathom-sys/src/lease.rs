//! Temporary files and folders that a killed process leaves behind, and their detection.
//!
//! Each is locked (`flock(2)`) while its owner lives, in whatever way it ends. PIDs were rejected:
//! they are reused, and repeat between containers. Folders may also be control groups or tracing
//! instances.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A locked file or folder, created by this process or taken over from a dead one. Dropping it
/// unlocks but does not remove it.
#[derive(Debug)]
pub struct Lease {
    path: PathBuf,
    file: File,
}

impl Lease {
    /// Creates an empty file in `parent`, named `prefix` plus a number.
    ///
    /// # Errors
    /// The error of creating, opening or locking it.
    pub fn new_file(parent: &Path, prefix: &str) -> io::Result<Self> {
        Self::make(parent, prefix, &|path| {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create_new(true);
            options.open(path).map(drop)
        })
    }

    /// Creates a folder in `parent`, named `prefix` plus a number.
    ///
    /// # Errors
    /// As for `new_file`.
    pub fn new_folder(parent: &Path, prefix: &str) -> io::Result<Self> {
        Self::make(parent, prefix, &|path| fs::create_dir(path))
    }

    fn make(
        parent: &Path,
        prefix: &str,
        make: &dyn Fn(&Path) -> io::Result<()>,
    ) -> io::Result<Self> {
        let own = std::process::id();
        let mut refused = io::Error::from(io::ErrorKind::AlreadyExists);
        for attempt in 0..NAME_ATTEMPTS {
            // A process in another container may have the same PID.
            let path = parent.join(match attempt {
                0 => format!("{prefix}{own}"),
                attempt => format!("{prefix}{own}-{attempt}"),
            });
            match make(&path) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    refused = error;
                    continue;
                }
                Err(error) => return Err(error),
            }
            match Self::take(&path) {
                Ok(Some(lease)) => return Ok(lease),
                // Another process took it for abandoned before we locked it, and may have removed
                // it already.
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Err(refused)
    }

    /// Locks the file or folder at `path`; `None` if another process holds it.
    ///
    /// # Errors
    /// The error of opening or locking it.
    pub fn take(path: &Path) -> io::Result<Option<Self>> {
        let open = |writes| {
            let mut options = OpenOptions::new();
            options.read(true).write(writes);
            // Non-blocking: a FIFO of this name would wait for a writer.
            options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
            options.open(path)
        };
        // NFS locks only files that are open for writing, which folders cannot be.
        let file = open(true).or_else(|_| open(false))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Ok(None),
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
        let (locked, there) = (file.metadata()?, fs::symlink_metadata(path));
        let is_it =
            there.is_ok_and(|there| (there.dev(), there.ino()) == (locked.dev(), locked.ino()));
        let path = path.to_owned();
        Ok(is_it.then_some(Self { path, file }))
    }

    /// Returns the leases that dead processes of this user left in `parent`.
    #[must_use]
    pub fn abandoned(parent: &Path, prefix: &str) -> Vec<Self> {
        let entries = fs::read_dir(parent).into_iter().flatten().flatten();
        let own = fs::metadata("/proc/self").map_or(u32::MAX, |own| own.uid());
        let named = entries.filter(|entry| {
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix(prefix));
            let numbers = |text: &str| {
                !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'-')
            };
            number.is_some_and(numbers) && entry.metadata().is_ok_and(|there| there.uid() == own)
        });
        // An entry that cannot be opened cannot be removed either.
        named
            .filter_map(|entry| Self::take(&entry.path()).ok().flatten())
            .collect()
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of the locked file or directory.
    #[must_use]
    pub const fn file(&self) -> &File {
        &self.file
    }
}

/// Marks `path` as created by this program, for names that the user chose. No effect if the file
/// system has no extended attributes.
pub fn mark(path: &Path) {
    let Some(path) = c_path(path) else { return };
    let (name, value) = (MARK.as_ptr(), b"1");
    // SAFETY: both are C strings, and the value is alive and as long as is said.
    let _unmarked =
        unsafe { libc::setxattr(path.as_ptr(), name, value.as_ptr().cast(), value.len(), 0) };
}

/// Returns whether `path` carries this program's mark.
#[must_use]
pub fn is_marked(path: &Path) -> bool {
    let Some(path) = c_path(path) else {
        return false;
    };
    // SAFETY: both are C strings; with no room for it nothing but the length is told.
    let length = unsafe { libc::getxattr(path.as_ptr(), MARK.as_ptr(), std::ptr::null_mut(), 0) };
    length >= 0
}

fn c_path(path: &Path) -> Option<CString> {
    CString::new(path.as_os_str().as_bytes()).ok()
}

/// Linux 5.7 and later support it on control groups.
const MARK: &std::ffi::CStr = c"user.fathom";

/// Names to try. More collisions than this are not accidental, so the caller gets the error.
const NAME_ATTEMPTS: u32 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("fathom-lease-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _gone = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_is_left_is_found_once_its_owner_is_gone() {
        let parent = Folder::new("left");
        let file = Lease::new_file(&parent.0, "a-").unwrap();
        let folder = Lease::new_folder(&parent.0, "b-").unwrap();
        // A process with the same PID in another container.
        let other = Lease::new_file(&parent.0, "a-").unwrap();
        fs::write(parent.0.join("a-mine"), "").unwrap();
        assert!(Lease::abandoned(&parent.0, "a-").is_empty());
        assert_ne!(file.path(), other.path());
        drop(file);
        drop(folder);
        let left = Lease::abandoned(&parent.0, "a-");
        assert_eq!(left.len(), 1);
        assert!(!left[0].path().ends_with("a-mine"));
        // The process that cleans up holds it until then.
        assert!(Lease::abandoned(&parent.0, "a-").is_empty());
        assert_eq!(Lease::abandoned(&parent.0, "b-").len(), 1);
    }

    #[test]
    fn what_was_removed_meanwhile_is_not_taken_for_what_is_there() {
        let parent = Folder::new("race");
        let path = parent.0.join("x");
        fs::write(&path, "").unwrap();
        let lease = Lease::take(&path).unwrap().unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "").unwrap();
        drop(lease);
        assert!(Lease::take(&path).unwrap().is_some());
        std::os::unix::fs::symlink("/dev/null", parent.0.join("y")).unwrap();
        assert!(Lease::take(&parent.0.join("y")).is_err());
    }

    #[test]
    fn what_others_clean_up_before_it_is_locked_is_created_anew() {
        let parent = Folder::new("cleaned");
        let attempts = std::cell::Cell::new(0);
        let lease = Lease::make(&parent.0, "a-", &|path| {
            fs::write(path, "")?;
            attempts.set(attempts.get() + 1);
            if attempts.get() == 1 {
                fs::remove_file(path)?;
            }
            Ok(())
        });
        assert!(lease.unwrap().path().exists());
        assert_eq!(attempts.get(), 2);
        let nowhere = parent.0.join("nothing");
        let error = Lease::new_file(&nowhere, "a-").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_mark_is_found() {
        let parent = Folder::new("mark");
        assert!(!is_marked(&parent.0));
        mark(&parent.0);
        if !is_marked(&parent.0) {
            return println!("skipped: no marks on this file system");
        }
        assert!(!is_marked(&parent.0.join("nothing")));
    }
}

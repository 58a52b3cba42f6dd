//! Creation path of a missing file, and other users of an existing one.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};

use fathom_core::Nanos;

use super::check;
use crate::clock;

/// Returns the path at which `open(2)` would create the missing file `path`: the end of a chain of
/// dangling links, else `path` itself.
///
/// # Errors
/// ELOOP for a cycle of links, or the error of `readlink(2)`.
pub fn creation_path(path: &Path) -> io::Result<PathBuf> {
    let mut at = path.to_path_buf();
    for _ in 0..LINKS_MAX {
        match fs::read_link(&at) {
            // An absolute target replaces the folder.
            Ok(target) => at = at.parent().unwrap_or(Path::new("/")).join(target),
            // EINVAL: it exists and is not a link.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound
                        | io::ErrorKind::NotADirectory
                        | io::ErrorKind::InvalidInput
                ) =>
            {
                return Ok(at);
            }
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::from_raw_os_error(libc::ELOOP))
}

/// Returns whether anything but `file` has its file open or mapped, in this process or another;
/// `None` if the file system or the file's ownership does not let this process ask.
///
/// Takes a write lease, which the kernel grants only to the sole opener, and releases it at once.
/// Retries for some milliseconds: a process being started holds a copy of every open file of its
/// parent until it calls `exec`.
#[must_use]
pub fn is_open_elsewhere(file: &File) -> Option<bool> {
    for _ in 0..LEASE_ATTEMPTS {
        if !is_open_elsewhere_now(file)? {
            return Some(false);
        }
        clock::sleep(Nanos::from_millis(1));
    }
    is_open_elsewhere_now(file)
}

fn is_open_elsewhere_now(file: &File) -> Option<bool> {
    let fd = file.as_raw_fd();
    // Breaking a lease raises SIGIO, which by default ends the process; SIGURG is ignored.
    control(fd, F_SETSIG, libc::SIGURG).ok()?;
    match control(fd, libc::F_SETLEASE, libc::F_WRLCK) {
        Ok(()) => {
            // Cannot fail: the lease is ours. Closing the file would release it too.
            let _returned = control(fd, libc::F_SETLEASE, libc::F_UNLCK);
            Some(false)
        }
        Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => Some(true),
        Err(_not_supported) => None,
    }
}

fn control(fd: RawFd, command: libc::c_int, argument: libc::c_int) -> io::Result<()> {
    // SAFETY: these commands take an integer; the caller's file keeps the descriptor open.
    check(unsafe { libc::fcntl(fd, command, argument) })
}

/// `MAXSYMLINKS` of the kernel.
const LINKS_MAX: u32 = 40;

/// Attempts 1 ms apart: far longer than a fork and exec take, negligible for a layout.
const LEASE_ATTEMPTS: u32 = 20;

/// Of <asm-generic/fcntl.h>, the same on every architecture that Rust supports; not in the libc
/// crate.
const F_SETSIG: libc::c_int = 10;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::super::tests::Scratch;
    use super::*;

    #[test]
    fn a_missing_file_is_created_where_its_links_lead() {
        let folder = std::env::temp_dir().join(format!("fathom-sys-links-{}", std::process::id()));
        fs::create_dir_all(folder.join("below")).unwrap();
        symlink("below/second", folder.join("first")).unwrap();
        symlink(folder.join("target"), folder.join("below/second")).unwrap();
        symlink("round", folder.join("round")).unwrap();
        let leads_to = |name: &str| creation_path(&folder.join(name));
        let first = leads_to("first").unwrap();
        let target = leads_to("target").unwrap();
        let round = leads_to("round").unwrap_err();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(first, folder.join("target"));
        assert_eq!(target, folder.join("target"));
        assert_eq!(round.raw_os_error(), Some(libc::ELOOP));
        assert_eq!(creation_path(Path::new("no/x")).unwrap(), Path::new("no/x"));
    }

    #[test]
    fn a_file_that_is_open_twice_is_seen() {
        let (scratch, file) = Scratch::new("lease");
        match is_open_elsewhere(&file) {
            None => println!("skipped: this file system grants no leases"),
            Some(elsewhere) => {
                assert!(!elsewhere);
                let second = File::open(scratch.path()).unwrap();
                assert_eq!(is_open_elsewhere(&file), Some(true));
                drop(second);
            }
        }
    }
}

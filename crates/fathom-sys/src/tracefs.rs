//! System calls for tracing: a detached mount of tracefs, and non-blocking rings.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::ptr;

/// A detached mount of tracefs, invisible to other processes. It ends with this value, or with the
/// process, in whatever way that ends.
#[derive(Debug)]
pub struct DetachedTracefs {
    mount: OwnedFd,
}

impl DetachedTracefs {
    /// Mounts tracefs.
    ///
    /// # Errors
    /// The error of `fsopen(2)`, `fsconfig(2)` or `fsmount(2)`: `ENODEV` where the kernel has no
    /// tracefs, `EPERM` without CAP_SYS_ADMIN, `ENOSYS` before Linux 5.2.
    pub fn new() -> io::Result<Self> {
        // SAFETY: the name is a C string that lives through the call.
        let context =
            unsafe { libc::syscall(libc::SYS_fsopen, c"tracefs".as_ptr(), libc::FSOPEN_CLOEXEC) };
        let context = owned(context)?;
        // SAFETY: the command takes neither key nor value; the descriptor is open.
        let created = unsafe {
            libc::syscall(
                libc::SYS_fsconfig,
                context.as_raw_fd(),
                libc::FSCONFIG_CMD_CREATE,
                ptr::null::<libc::c_char>(),
                ptr::null::<libc::c_void>(),
                0,
            )
        };
        if created != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is open, and the flags are the call's own.
        let mount = unsafe {
            libc::syscall(
                libc::SYS_fsmount,
                context.as_raw_fd(),
                libc::FSMOUNT_CLOEXEC,
                0,
            )
        };
        Ok(Self {
            mount: owned(mount)?,
        })
    }

    /// Returns the path of its root, valid in this process only.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.mount.as_raw_fd()))
    }
}

/// Converts the result of a system call that returns a descriptor.
fn owned(given: libc::c_long) -> io::Result<OwnedFd> {
    match libc::c_int::try_from(given) {
        // SAFETY: the kernel has just created it, and nothing else owns it.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Opens a ring for reading; reads of an empty ring fail with `WouldBlock`.
///
/// # Errors
/// The error of `open(2)`.
pub fn open_ring(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detached_tracefs_is_seen_by_its_path_alone() {
        let tracefs = match DetachedTracefs::new() {
            Ok(tracefs) => tracefs,
            Err(error) => {
                println!("skipped: no tracefs can be mounted: {error}");
                return;
            }
        };
        let path = tracefs.path();
        assert!(path.join("instances").is_dir());
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains(path.to_str().unwrap()), "{mounts}");
        drop(tracefs);
        assert!(!path.join("instances").exists());
    }
}

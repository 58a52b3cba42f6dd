//! Non-blocking access to pipes and character devices.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use fathom_core::Nanos;

/// Opens a pipe or a device for writing without blocking (`O_NONBLOCK`): writes that would block
/// fail with `EAGAIN`. Creates and truncates nothing.
///
/// # Errors
/// The error of `open(2)`; `ENXIO` for a FIFO that no process has open for reading.
pub fn open_nonblocking(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)
}

/// Returns whether a failed [`open_nonblocking`] found a FIFO without a reader, or a device that
/// is not there.
#[must_use]
pub fn lacks_other_end(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENXIO)
}

/// Returns whether the process or the system has no descriptor left for another open file.
#[must_use]
pub fn lacks_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// Waits for a limited time until a write would not block, and returns whether that is so. A signal
/// ends the wait early.
///
/// # Errors
/// The error of `poll(2)`.
pub fn wait_writable(fd: impl AsFd, at_most: Nanos) -> io::Result<bool> {
    wait_for(fd, libc::POLLOUT, at_most)
}

/// Waits for a limited time until a descriptor is readable, as a ring with completions is, and
/// returns whether it is. A signal ends the wait early.
///
/// # Errors
/// The error of `poll(2)`.
pub fn wait_readable(fd: impl AsFd, at_most: Nanos) -> io::Result<bool> {
    wait_for(fd, libc::POLLIN, at_most)
}

fn wait_for(fd: impl AsFd, events: libc::c_short, at_most: Nanos) -> io::Result<bool> {
    let mut polled = libc::pollfd {
        fd: fd.as_fd().as_raw_fd(),
        events,
        revents: 0,
    };
    let ms = libc::c_int::try_from(at_most.as_millis()).unwrap_or(libc::c_int::MAX);
    // SAFETY: the descriptor is open for the length of the call (`AsFd`), and `polled` is one
    // live `pollfd`.
    let ready = unsafe { libc::poll(&raw mut polled, 1, ms) };
    if ready >= 0 {
        return Ok(ready > 0);
    }
    match io::Error::last_os_error() {
        error if error.kind() == io::ErrorKind::Interrupted => Ok(false),
        error => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::OwnedFd;

    use super::*;

    #[test]
    fn a_full_pipe_is_not_writable_until_it_is_read() {
        let (mut reader, writer) = io::pipe().unwrap();
        // A separate open file description, with its own `O_NONBLOCK`.
        let path = format!("/proc/self/fd/{}", writer.as_raw_fd());
        let mut nonblocking = open_nonblocking(Path::new(&path)).unwrap();
        let page = [0; 4096];
        while nonblocking.write(&page).is_ok() {}
        assert!(!wait_writable(&nonblocking, Nanos::ZERO).unwrap());
        io::Read::read_exact(&mut reader, &mut [0; 8192]).unwrap();
        assert!(wait_writable(&nonblocking, Nanos::ZERO).unwrap());
        drop(OwnedFd::from(writer));
    }
}

//! A timer that one thread arms and another waits for (`timerfd_create(2)`).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use fathom_core::Nanos;

use crate::clock;

/// A one-shot timer, disarmed at first.
#[derive(Debug)]
pub struct Timer(OwnedFd);

impl Timer {
    /// Creates a disarmed timer.
    ///
    /// # Errors
    /// The error of `timerfd_create(2)`: `EMFILE` if the process has too many open files.
    pub fn new() -> io::Result<Self> {
        // SAFETY: plain integers.
        let fd = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Arms the timer to expire once, after `span`, or at once if that is zero.
    ///
    /// # Errors
    /// The error of `timerfd_settime(2)`; no cause is known.
    pub fn set(&self, span: Nanos) -> io::Result<()> {
        let value = libc::itimerspec {
            it_interval: clock::timespec(0),
            // All zeros would disarm it.
            it_value: clock::timespec(span.get().max(1)),
        };
        // SAFETY: the descriptor is open, the value lives through the call, and the old one is not
        // asked for.
        let failed = unsafe {
            libc::timerfd_settime(
                self.0.as_raw_fd(),
                0,
                &raw const value,
                std::ptr::null_mut(),
            )
        };
        match failed {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Sleeps until the timer expires or a signal arrives.
    ///
    /// # Errors
    /// The error of `read(2)`.
    pub fn wait(&self) -> io::Result<()> {
        let mut count = 0_u64;
        let size = size_of_val(&count);
        // SAFETY: the kernel writes at most eight bytes to a live word.
        let read = unsafe { libc::read(self.0.as_raw_fd(), (&raw mut count).cast(), size) };
        if read >= 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        match error.kind() {
            io::ErrorKind::Interrupted => Ok(()),
            _ => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_of_nothing_goes_off_once_each_time_it_is_set() {
        let timer = Timer::new().unwrap();
        for _ in 0..3 {
            timer.set(Nanos::ZERO).unwrap();
            timer.wait().unwrap();
        }
    }
}

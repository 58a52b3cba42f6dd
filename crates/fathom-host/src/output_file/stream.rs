//! Output into a pipe or a character device, whose other end may not be there or not take more.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use fathom_core::Nanos;
use fathom_sys::clock::{Clock, sleep_until};
use fathom_sys::files;

/// A pipe or a character device, open for writing.
#[derive(Debug)]
pub struct Stream(File);

impl Stream {
    /// Opens it; waits until a FIFO has a reader, or `stop` says to give up.
    pub fn open(path: &Path, stop: &dyn Fn() -> bool) -> io::Result<Self> {
        let clock = Clock::monotonic();
        // A run that was stopped still has its report, for which a reader may be on its way.
        let mut looks_left = if stop() { LOOKS_MAX } else { 0 };
        loop {
            match files::open_nonblocking(path) {
                Ok(file) => return Ok(Self(file)),
                Err(error) if files::lacks_other_end(&error) && is_fifo(path) => {
                    if stop() {
                        looks_left = looks_left.checked_sub(1).ok_or_else(interrupted)?;
                    }
                    sleep_until(&clock, clock.now() + LOOK_EVERY);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes as much as the other end takes; waits until it takes any, or `stop` says to give up.
    pub fn write(&mut self, bytes: &[u8], stop: &dyn Fn() -> bool) -> io::Result<usize> {
        let mut looks = 0;
        loop {
            match self.write_now(bytes)? {
                0 if !bytes.is_empty() => {}
                written => return Ok(written),
            }
            if !files::wait_writable(&self.0, LOOK_EVERY)? && stop() {
                looks += 1;
                // What is asked to stop is the run, first of all; a reader that is merely slow
                // still gets the report of it.
                if looks > LOOKS_MAX {
                    return Err(interrupted());
                }
            }
        }
    }

    /// Writes all, as [`write`](Self::write) does.
    pub fn write_all(&mut self, mut bytes: &[u8], stop: &dyn Fn() -> bool) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = self.write(bytes, stop)?;
            bytes = &bytes[written..];
        }
        Ok(())
    }

    /// Writes as much as the other end takes now, which may be nothing.
    pub fn write_now(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.0.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => return done,
            }
        }
    }
}

/// Not `ErrorKind::Interrupted`, after which `write_all` would try again.
fn interrupted() -> io::Error {
    io::Error::other("interrupted: no process reads it")
}

fn is_fifo(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo())
}

/// Interval between checks for a request to stop.
const LOOK_EVERY: Nanos = Nanos::from_millis(20);
/// Half a second of looks at an idle other end, after a request to stop.
const LOOKS_MAX: u32 = 25;

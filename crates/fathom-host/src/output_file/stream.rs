//! Output to a pipe or a character device, whose reader may be missing or slow.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use fathom_core::Nanos;
use fathom_sys::clock::{Clock, sleep_until};
use fathom_sys::files;

use crate::error::HostError;

/// A pipe or a character device, open for writing.
#[derive(Debug)]
pub struct OutputStream(File);

impl OutputStream {
    /// Opens `path`; waits until a FIFO has a reader or `stop` returns true.
    pub fn open(path: &Path, stop: &dyn Fn() -> bool) -> Result<Self, HostError> {
        let clock = Clock::monotonic();
        // A stopped run still has a report; give its reader half a second to appear.
        let mut looks_left = if stop() { LOOKS_MAX } else { 0 };
        loop {
            match files::open_nonblocking(path) {
                Ok(file) => return Ok(Self(file)),
                Err(error) if files::lacks_other_end(&error) && is_fifo(path) => {
                    if stop() {
                        looks_left = looks_left.checked_sub(1).ok_or(HostError::NoReader)?;
                    }
                    sleep_until(&clock, clock.now() + LOOK_EVERY);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Writes as much as the reader takes; waits until it takes any or `stop` returns true.
    pub fn write(&mut self, bytes: &[u8], stop: &dyn Fn() -> bool) -> Result<usize, HostError> {
        let mut looks = 0;
        loop {
            match self.write_now(bytes)? {
                0 if !bytes.is_empty() => {}
                written => return Ok(written),
            }
            if !files::wait_writable(&self.0, LOOK_EVERY)? && stop() {
                looks += 1;
                // The request stops the run in the first place; a reader that is merely slow
                // still gets the report.
                if looks > LOOKS_MAX {
                    return Err(HostError::NoReader);
                }
            }
        }
    }

    /// Writes all bytes, waiting as [`write`](Self::write) does.
    pub fn write_all(
        &mut self,
        mut bytes: &[u8],
        stop: &dyn Fn() -> bool,
    ) -> Result<(), HostError> {
        while !bytes.is_empty() {
            let written = self.write(bytes, stop)?;
            bytes = &bytes[written..];
        }
        Ok(())
    }

    /// Writes as much as fits without waiting, possibly nothing.
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

fn is_fifo(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo())
}

/// Interval between checks for a request to stop.
const LOOK_EVERY: Nanos = Nanos::from_millis(20);
/// Checks of an idle reader after a request to stop: half a second.
const LOOKS_MAX: u32 = 25;

//! Lines of a process's output, as they come and with a limit of time.

use std::io::{BufRead as _, BufReader, Read};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Instant;

use anyhow::{Result, bail};

/// Output of a process, read by a thread of its own, which ends with the process.
#[derive(Debug)]
pub(crate) struct Lines(Receiver<String>);

impl Lines {
    pub(crate) fn of(output: impl Read + Send + 'static) -> Self {
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let mut output = BufReader::new(output);
            let mut line = Vec::new();
            while output
                .read_until(b'\n', &mut line)
                .is_ok_and(|read| read > 0)
            {
                // The rest is read even if nobody takes it, so that the process never blocks.
                let _ = sender.send(String::from_utf8_lossy(&line).trim_end().to_owned());
                line.clear();
            }
        });
        Self(receiver)
    }

    /// Returns all lines that are left, up to the end of the output.
    pub(crate) fn rest(&self) -> Vec<String> {
        self.0.iter().collect()
    }

    /// Returns the next line; `None` at the end of the output.
    pub(crate) fn next(&self, deadline: Instant) -> Result<Option<String>> {
        let left = deadline.saturating_duration_since(crate::process::now());
        match self.0.recv_timeout(left) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => bail!("out of time"),
        }
    }
}

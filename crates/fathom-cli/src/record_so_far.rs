//! `--record-every`: the record of a run, written while its jobs run.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use fathom_host::HostError;
use fathom_host::output_file::{OutputFile, Stop};
use fathom_record::Record;

use crate::output::{self, StandardStream};

/// Record of a run in progress, replaced as a whole each time.
///
/// A thread of its own writes it, so that a slow file system delays neither jobs nor their watcher.
/// While it writes, further records are skipped.
#[derive(Debug)]
pub(crate) struct SoFar {
    path: PathBuf,
    writer: Option<JoinHandle<Result<(), HostError>>>,
    /// A failure was told.
    has_failed: bool,
}

impl SoFar {
    pub(crate) fn new(path: String) -> Self {
        Self {
            path: path.into(),
            writer: None,
            has_failed: false,
        }
    }

    /// Writes a record, unless the one before is still being written. The first failure is told,
    /// and the run goes on: each later record tries again.
    pub(crate) fn keep(&mut self, record: &Record) {
        if self
            .writer
            .as_ref()
            .is_some_and(|writer| !writer.is_finished())
        {
            return;
        }
        self.wait();
        let json = match record.to_json() {
            Ok(json) => format!("{json}\n"),
            Err(error) => return self.failed(&error),
        };
        let path = self.path.clone();
        let writer = thread::Builder::new().name("record".to_owned());
        match writer.spawn(move || write(&path, &json)) {
            Ok(writer) => self.writer = Some(writer),
            Err(error) => self.failed(&error),
        }
    }

    /// Waits for the record that is being written, which would else replace a later one.
    pub(crate) fn wait(&mut self) {
        let Some(writer) = self.writer.take() else {
            return;
        };
        if let Ok(Err(error)) = writer.join() {
            self.failed(&error);
        }
    }

    fn failed(&mut self, error: &dyn std::fmt::Display) {
        if !std::mem::replace(&mut self.has_failed, true) {
            let path = self.path.display();
            let text = format!("fathom: note: --record: {path}: {error}; the run continues\n");
            output::print(StandardStream::Error, &text);
        }
    }
}

/// Writes beside the name and renames. Not synced: that I/O would disturb the measurement, and what
/// kills the run mostly leaves the host alone.
fn write(path: &Path, json: &str) -> Result<(), HostError> {
    let mut file = OutputFile::create(path, &Stop::never())?;
    file.write_all(json.as_bytes())?;
    Ok(file.place(false)?)
}

//! Files of the thread that submits for an offloaded job, by index.

use fathom_core::{EngineError, FileIndex, Zone, ZoneAction, without_zones};

use crate::EngineConfig;
use crate::files::Files;

/// The submitter's view of the job's files: which ones it has opened, so that workers may use them.
///
/// A local file is opened here too, so that `open` reports its errors, creates it, and keeps it in
/// use while no worker runs. Any other engine does more, or less, with a name than open a file: the
/// workers' engines do it, and a pool whose first worker cannot does not start.
#[derive(Debug)]
pub(super) enum SubmitterFiles {
    Local(Files),
    /// Files of an engine that opens no local files: true for those that are open.
    Named(Vec<bool>),
}

impl SubmitterFiles {
    pub(super) fn new(config: &EngineConfig) -> Self {
        match config.engine.info.opens_local_files() {
            true => Self::Local(Files::new(config)),
            false => Self::Named(vec![false; config.files.len()]),
        }
    }

    pub(super) fn open(&mut self, file: FileIndex) -> Result<(), EngineError> {
        match self {
            Self::Local(files) => files.open(file)?,
            Self::Named(open) => open[file.index()] = true,
        }
        Ok(())
    }

    pub(super) fn close(&mut self, file: FileIndex) -> Result<(), EngineError> {
        match self {
            Self::Local(files) => files.close(file)?,
            Self::Named(open) => open[file.index()] = false,
        }
        Ok(())
    }

    /// Drops the file's clean pages from this machine's page cache, which holds none of a file
    /// that is elsewhere.
    pub(super) fn invalidate(&self, file: FileIndex) -> Result<(), EngineError> {
        match self {
            Self::Local(files) => files.invalidate(file),
            Self::Named(_) => Ok(()),
        }
    }

    /// Changes the state of a zone of a local device.
    pub(super) fn manage_zone(
        &self,
        file: FileIndex,
        action: ZoneAction,
        zone: &Zone,
    ) -> Result<(), EngineError> {
        match self {
            Self::Local(files) => files.manage_zone(file, action, zone),
            Self::Named(_) => Err(without_zones(action.name())),
        }
    }

    /// Returns the state of a zone of a local device.
    pub(super) fn report_zone(&self, file: FileIndex, offset: u64) -> Result<Zone, EngineError> {
        match self {
            Self::Local(files) => files.report_zone(file, offset),
            Self::Named(_) => Err(without_zones("report zones")),
        }
    }

    /// Returns true if the file is open.
    #[inline]
    pub(super) fn is_open(&self, file: FileIndex) -> bool {
        match self {
            Self::Local(files) => files.descriptor(file).is_some(),
            Self::Named(open) => open[file.index()],
        }
    }

    /// Returns true if all files are open.
    pub(super) fn are_open(&self) -> bool {
        match self {
            Self::Local(files) => files.are_open(),
            Self::Named(open) => open.iter().all(|&open| open),
        }
    }
}

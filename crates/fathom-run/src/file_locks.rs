//! Locks on files that several jobs of a run share (`lockfile`).

use std::collections::HashMap;

use fathom_engine::FileLock;
use fathom_job::{LockFile, Options};
use fathom_setup::translate::JobSetup;

/// The locks of a run, by path: clones and jobs that name the same file share its lock.
#[derive(Debug, Default)]
pub(crate) struct FileLocks(HashMap<String, FileLock>);

impl FileLocks {
    /// Returns the locks of one clone's files, in their order; empty if it takes none. The first
    /// job to name a file decides whether readers share its lock.
    pub(crate) fn of(&mut self, options: &Options, setup: &JobSetup) -> Vec<FileLock> {
        let readers_share = match options.files.lockfile {
            LockFile::None => return Vec::new(),
            LockFile::Exclusive => false,
            LockFile::ReadWrite => true,
        };
        let files = setup.files.iter();
        let locks = files.map(|file| {
            let lock = self.0.entry(file.path.clone());
            lock.or_insert_with(|| FileLock::new(readers_share)).clone()
        });
        locks.collect()
    }
}

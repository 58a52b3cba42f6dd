//! Folder for what the programs of an experiment write.

use std::path::Path;

use fathom_sys::lease::Lease;

use crate::error::LabError;

/// Temporary folder, removed with its contents on drop, or by the next run if this one is killed.
pub(crate) struct WorkFolder(Lease);

impl WorkFolder {
    /// Creates a folder of this name, followed by a number, for temporary files, and removes those
    /// of killed runs.
    pub(crate) fn new(name: &str) -> Result<Self, LabError> {
        Self::new_in(&std::env::temp_dir(), name)
    }

    /// Creates such a folder in a directory.
    pub(crate) fn new_in(parent: &Path, name: &str) -> Result<Self, LabError> {
        for left in Lease::abandoned(parent, name) {
            let _not_ours = std::fs::remove_dir_all(left.path());
        }
        let lease = Lease::new_folder(parent, name);
        lease
            .map(Self)
            .map_err(|source| LabError::FolderNotCreated {
                parent: parent.to_owned(),
                source,
            })
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        let _left_behind = std::fs::remove_dir_all(self.0.path());
    }
}

//! Folder for what the programs of an experiment write.

use std::path::Path;

use fathom_sys::lease::Lease;

use crate::error::LabError;

/// Temporary folder, removed with its contents on drop, or by the next run if this one is killed.
pub(crate) struct WorkFolder(Lease);

impl WorkFolder {
    /// Creates a folder of this name, followed by a number, and removes those of killed runs.
    pub(crate) fn new(name: &str) -> Result<Self, LabError> {
        let parent = std::env::temp_dir();
        for left in Lease::abandoned(&parent, name) {
            let _not_ours = std::fs::remove_dir_all(left.path());
        }
        let lease = Lease::new_folder(&parent, name);
        lease
            .map(Self)
            .map_err(|source| LabError::FolderNotCreated { parent, source })
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

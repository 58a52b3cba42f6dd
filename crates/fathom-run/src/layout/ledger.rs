//! What a layout has made so far, so that it can be unmade.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Folders and files made, files extended: in order.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    entries: Vec<Entry>,
}

#[derive(Debug)]
enum Entry {
    Folder(PathBuf),
    Created(PathBuf),
    Extended { path: PathBuf, from: u64, to: u64 },
}

impl Ledger {
    /// A folder was made.
    pub(super) fn folder(&mut self, path: &Path) {
        self.entries.push(Entry::Folder(path.to_path_buf()));
    }

    /// A file was made.
    pub(super) fn created(&mut self, path: &Path) {
        self.entries.push(Entry::Created(path.to_path_buf()));
    }

    /// A file of `from` bytes is about to have blocks up to `to`.
    pub(super) fn extended(&mut self, path: &Path, from: u64, to: u64) {
        self.entries.push(Entry::Extended {
            path: path.to_path_buf(),
            from,
            to,
        });
    }

    /// Takes in what was made beside it: files of either may lie in folders of the other, so
    /// folders come first, the outer ones before the inner.
    pub(super) fn add(&mut self, other: Self) {
        self.entries.extend(other.entries);
        self.entries.sort_by_key(|entry| match entry {
            Entry::Folder(path) => path.components().count(),
            Entry::Created(_) | Entry::Extended { .. } => usize::MAX,
        });
    }

    /// Files made.
    pub(super) fn files(&self) -> impl Iterator<Item = &Path> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Created(path) => Some(&**path),
            Entry::Folder(_) | Entry::Extended { .. } => None,
        })
    }

    /// Unmakes everything, last first; gives what could not be unmade.
    pub(super) fn undo(self) -> Vec<PathBuf> {
        let mut left = Vec::new();
        for entry in self.entries.into_iter().rev() {
            let (path, undone) = match entry {
                Entry::Folder(path) => {
                    let undone = fs::remove_dir(&path);
                    (path, undone)
                }
                Entry::Created(path) => {
                    let undone = fs::remove_file(&path);
                    (path, undone)
                }
                Entry::Extended { path, from, to } => {
                    let undone = shrink(&path, from, to);
                    (path, undone)
                }
            };
            let gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
            if undone.is_err_and(|error| !gone(&error)) {
                left.push(path);
            }
        }
        left
    }
}

/// Gives the blocks after the first `from` bytes back, also those set aside beyond the end of the
/// file, which some file systems keep unless the size really changes.
pub(super) fn shrink(path: &Path, from: u64, to: u64) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    file.set_len(to)?;
    file.set_len(from)
}

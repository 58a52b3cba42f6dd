//! Undo log of a layout.
//!
//! Names are reused and files shared: another run may have replaced, extended or opened a file that
//! this layout created. So an entry records the identity of its file and the state that this layout
//! left it in; only a file that is still in that state, and that no other process has open, is
//! undone.

use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fathom_sys::files::{self, Access, FileId};

/// Undo log: directories and files created, and files extended, in order.
///
/// An entry is added before its file changes ([`file`](Self::file)) and sealed with the file's
/// state afterwards ([`left`](Self::left)). [`undo`](Self::undo) consumes the log, last entry
/// first; dropping it keeps everything. Limits: file times have the resolution of the file system,
/// so a write by another process within the same tick goes unnoticed unless it changes the length.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    entries: Vec<UndoEntry>,
}

#[derive(Debug)]
enum UndoEntry {
    Folder(PathBuf),
    File(Touched),
}

/// Entry of a created or extended file.
#[derive(Debug)]
struct Touched {
    path: PathBuf,
    identity: FileId,
    /// Former length; `None` if the file was created.
    from: Option<u64>,
    /// End of the range that may have been allocated.
    to: u64,
    /// State after the layout; `None` while in progress.
    left: Option<FileState>,
}

/// State of a file, compared to detect later writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FileState {
    modified: (i64, i64),
    length: u64,
}

impl FileState {
    fn of(metadata: &Metadata) -> Self {
        Self {
            length: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

/// A file that a layout created and could not remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftBehind {
    /// Path of the file.
    pub path: PathBuf,
    /// Another process uses the file.
    pub in_use: bool,
}

/// Result of undoing one entry.
enum Undone {
    /// Undone, or no longer the file that the layout created.
    Yes,
    /// Another process uses the file.
    InUse,
}

impl Ledger {
    /// Records a created directory.
    pub(super) fn folder(&mut self, path: &Path) {
        self.entries.push(UndoEntry::Folder(path.to_path_buf()));
    }

    /// Records a created file, or one of `from` bytes that is about to be extended up to `to`.
    pub(super) fn file(
        &mut self,
        path: &Path,
        handle: &File,
        from: Option<u64>,
        to: u64,
    ) -> io::Result<()> {
        self.entries.push(UndoEntry::File(Touched {
            path: path.to_path_buf(),
            identity: FileId::of(&handle.metadata()?),
            from,
            to,
            left: None,
        }));
        Ok(())
    }

    /// Records the final state of the last file, whether its layout succeeded or not.
    pub(super) fn left(&mut self, handle: &File) {
        if let (Some(UndoEntry::File(touched)), Ok(metadata)) =
            (self.entries.last_mut(), handle.metadata())
        {
            touched.left = Some(FileState::of(&metadata));
        }
    }

    /// Merges the log of a parallel layout. Files of one may be in directories of the other, so
    /// directories come first, outer before inner.
    pub(super) fn add(&mut self, other: Self) {
        self.entries.extend(other.entries);
        self.entries.sort_by_key(|entry| match entry {
            UndoEntry::Folder(path) => path.components().count(),
            UndoEntry::File(_) => usize::MAX,
        });
    }

    /// Returns the created files.
    pub(super) fn files(&self) -> impl Iterator<Item = &Path> {
        self.entries.iter().filter_map(|entry| match entry {
            UndoEntry::File(Touched {
                path, from: None, ..
            }) => Some(&**path),
            UndoEntry::File(_) | UndoEntry::Folder(_) => None,
        })
    }

    /// Undoes all entries, last first, and returns the files that stay.
    pub(super) fn undo(self) -> Vec<LeftBehind> {
        let mut left = Vec::new();
        for entry in joined(self.entries).into_iter().rev() {
            let (path, undone) = match entry {
                UndoEntry::Folder(path) => {
                    let undone = remove_folder(&path);
                    (path, undone)
                }
                UndoEntry::File(touched) => {
                    let undone = touched.undo();
                    (touched.path, undone)
                }
            };
            let in_use = match undone {
                Ok(Undone::Yes) => continue,
                Ok(Undone::InUse) => true,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(_) => false,
            };
            left.push(LeftBehind { path, in_use });
        }
        left
    }
}

/// Merges the entries of each file. Several jobs may have extended it in turn, so only the state
/// after the last one can be compared.
fn joined(entries: Vec<UndoEntry>) -> Vec<UndoEntry> {
    let mut joined: Vec<UndoEntry> = Vec::with_capacity(entries.len());
    let mut places: HashMap<FileId, usize> = HashMap::new();
    for entry in entries {
        if let UndoEntry::File(touched) = &entry {
            let place = *places.entry(touched.identity).or_insert(joined.len());
            if let Some(UndoEntry::File(first)) = joined.get_mut(place) {
                first.to = first.to.max(touched.to);
                first.left = first.left.zip(touched.left).map(|(one, two)| one.max(two));
                continue;
            }
        }
        joined.push(entry);
    }
    joined
}

impl Touched {
    fn undo(&self) -> io::Result<Undone> {
        // Compared before opening: to open a named pipe would block until a reader appears.
        if FileId::of(&fs::metadata(&self.path)?) != self.identity {
            return Ok(Undone::Yes);
        }
        let access = Access {
            write_only: true,
            ..Access::default()
        };
        let file = files::open(&self.path, access)?;
        if self.is_used(&file, FileState::of(&file.metadata()?)) {
            return Ok(Undone::InUse);
        }
        match self.from {
            None => fs::remove_file(&self.path)?,
            Some(from) => shrink(&file, from, self.to)?,
        }
        Ok(Undone::Yes)
    }

    fn is_used(&self, file: &File, now: FileState) -> bool {
        if now.length > self.left.map_or(self.to, |left| left.length) {
            return true;
        }
        match files::is_open_elsewhere(file) {
            Some(true) => true,
            // Another process wrote to the file and closed it.
            Some(false) => self.left.is_some_and(|left| left != now),
            // File systems without leases, mostly network ones, may update times on close: only
            // the length is reliable.
            None => false,
        }
    }
}

/// Removes a directory, unless other processes have created entries in it.
fn remove_folder(path: &Path) -> io::Result<Undone> {
    match fs::remove_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::DirectoryNotEmpty => Err(error),
        Ok(()) | Err(_) => Ok(Undone::Yes),
    }
}

/// Truncates a file to `from` bytes, also freeing blocks preallocated beyond its end. The file is
/// extended to `to` first, since some file systems free those blocks only if the size changes.
pub(super) fn shrink(file: &File, from: u64, to: u64) -> io::Result<()> {
    // Fails if `to` exceeds the maximum file size; then nothing was allocated there.
    let _too_large = file.set_len(to);
    file.set_len(from)
}

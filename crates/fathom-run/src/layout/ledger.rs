//! Undo log of a layout.
//!
//! Names are reused and files shared: another run may have replaced, extended or opened a file that
//! this layout made. So an entry holds the identity of its file and the state that this layout left
//! it in, and only a file that is still in that state, and that nothing else has open, is undone.

use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fathom_sys::files::{self, Access, FileId};

/// Folders and files made, files extended: in order.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    entries: Vec<Entry>,
}

#[derive(Debug)]
enum Entry {
    Folder(PathBuf),
    File(Touched),
}

/// A file that was made or extended.
#[derive(Debug)]
struct Touched {
    path: PathBuf,
    identity: FileId,
    /// Its length before; `None` for one that was made.
    from: Option<u64>,
    /// The end of the blocks that it may have been given.
    to: u64,
    /// `None` while it is still worked on.
    left: Option<State>,
}

/// A file's state, by which a later write shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    modified: (i64, i64),
    length: u64,
}

impl State {
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
    /// Another process uses the file, so it was left to it.
    pub in_use: bool,
}

/// Result of undoing one entry.
enum Undone {
    /// It is undone, or there is nothing of ours to undo.
    Yes,
    /// Another process uses the file.
    InUse,
}

impl Ledger {
    /// A folder was made.
    pub(super) fn folder(&mut self, path: &Path) {
        self.entries.push(Entry::Folder(path.to_path_buf()));
    }

    /// A file was made, or one of `from` bytes is about to be extended; it may have blocks up to
    /// `to`.
    pub(super) fn file(
        &mut self,
        path: &Path,
        handle: &File,
        from: Option<u64>,
        to: u64,
    ) -> io::Result<()> {
        self.entries.push(Entry::File(Touched {
            path: path.to_path_buf(),
            identity: FileId::of(&handle.metadata()?),
            from,
            to,
            left: None,
        }));
        Ok(())
    }

    /// Work on the file that was entered last has ended, well or not.
    pub(super) fn left(&mut self, handle: &File) {
        if let (Some(Entry::File(touched)), Ok(metadata)) =
            (self.entries.last_mut(), handle.metadata())
        {
            touched.left = Some(State::of(&metadata));
        }
    }

    /// Takes in what was made beside it: files of either may lie in folders of the other, so
    /// folders come first, the outer ones before the inner.
    pub(super) fn add(&mut self, other: Self) {
        self.entries.extend(other.entries);
        self.entries.sort_by_key(|entry| match entry {
            Entry::Folder(path) => path.components().count(),
            Entry::File(_) => usize::MAX,
        });
    }

    /// Files made.
    pub(super) fn files(&self) -> impl Iterator<Item = &Path> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::File(Touched {
                path, from: None, ..
            }) => Some(&**path),
            Entry::File(_) | Entry::Folder(_) => None,
        })
    }

    /// Unmakes everything, last first; returns what it left.
    pub(super) fn undo(self) -> Vec<LeftBehind> {
        let mut left = Vec::new();
        for entry in joined(self.entries).into_iter().rev() {
            let (path, undone) = match entry {
                Entry::Folder(path) => {
                    let undone = remove_folder(&path);
                    (path, undone)
                }
                Entry::File(touched) => {
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

/// Joins the entries of one file, which several jobs may have extended one after the other: in
/// between, the file was never in the state that an earlier job left it in.
fn joined(entries: Vec<Entry>) -> Vec<Entry> {
    let mut joined: Vec<Entry> = Vec::with_capacity(entries.len());
    let mut places: HashMap<FileId, usize> = HashMap::new();
    for entry in entries {
        if let Entry::File(touched) = &entry {
            let place = *places.entry(touched.identity).or_insert(joined.len());
            if let Some(Entry::File(first)) = joined.get_mut(place) {
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
        // Before it is opened: a pipe of this name would wait for its reader.
        if FileId::of(&fs::metadata(&self.path)?) != self.identity {
            return Ok(Undone::Yes);
        }
        let access = Access {
            write_only: true,
            ..Access::default()
        };
        let file = files::open(&self.path, access)?;
        if self.is_used(&file, State::of(&file.metadata()?)) {
            return Ok(Undone::InUse);
        }
        match self.from {
            None => fs::remove_file(&self.path)?,
            Some(from) => shrink(&file, from, self.to)?,
        }
        Ok(Undone::Yes)
    }

    fn is_used(&self, file: &File, now: State) -> bool {
        if now.length > self.left.map_or(self.to, |left| left.length) {
            return true;
        }
        match files::is_open_elsewhere(file) {
            Some(true) => true,
            // Written meanwhile, and closed again.
            Some(false) => self.left.is_some_and(|left| left != now),
            // Such file systems, those of a network above all, set times of their own when a file
            // is closed: only the length can be relied on.
            None => false,
        }
    }
}

/// A folder that others have put something into stays.
fn remove_folder(path: &Path) -> io::Result<Undone> {
    match fs::remove_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::DirectoryNotEmpty => Err(error),
        Ok(()) | Err(_) => Ok(Undone::Yes),
    }
}

/// Gives the blocks after the first `from` bytes back, also those set aside beyond the end of the
/// file, which some file systems keep unless the size really changes.
pub(super) fn shrink(file: &File, from: u64, to: u64) -> io::Result<()> {
    // Fails where no file may be so large: then nothing has been set aside up there.
    let _too_large = file.set_len(to);
    file.set_len(from)
}

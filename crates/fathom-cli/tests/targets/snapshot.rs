//! Everything around the targets, before and after.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Names, each with its entry.
pub(crate) type Snapshot = BTreeMap<PathBuf, Entry>;

/// One name.
#[derive(PartialEq, Eq)]
pub(crate) struct Entry {
    kind: char,
    mode: u32,
    node: u64,
    /// Contents of a file or block device, or target of a link.
    content: Vec<u8>,
}

/// Records everything below these directories. Of swap areas only the first page: the kernel may
/// use the rest at any time.
pub(crate) fn take(roots: &[&Path], swaps: &[PathBuf]) -> Snapshot {
    let mut snapshot = Snapshot::new();
    let mut folders: Vec<PathBuf> = roots.iter().map(|root| root.to_path_buf()).collect();
    while let Some(folder) = folders.pop() {
        // A file system that was destroyed cannot be read any more, which is a change.
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let found = entry_of(&path, swaps.contains(&path));
            if found.kind == 'd' {
                folders.push(path.clone());
            }
            snapshot.insert(path, found);
        }
    }
    snapshot
}

fn entry_of(path: &Path, is_swap: bool) -> Entry {
    let metadata = fs::symlink_metadata(path).unwrap();
    let kind = metadata.file_type();
    let limit = if is_swap { 4096 } else { 4 << 20 };
    let read = || {
        let mut content = Vec::new();
        // Nodes of devices that nothing is attached to cannot be read.
        let opened = fs::File::open(path).map(|file| file.take(limit));
        let _length = opened.and_then(|mut file| file.read_to_end(&mut content));
        content
    };
    let (kind, content) = match () {
        () if kind.is_file() => ('f', read()),
        () if kind.is_block_device() => ('b', read()),
        () if kind.is_symlink() => {
            let target = fs::read_link(path).unwrap();
            ('l', target.as_os_str().as_encoded_bytes().to_vec())
        }
        () if kind.is_dir() => ('d', Vec::new()),
        () if kind.is_char_device() => ('c', Vec::new()),
        () if kind.is_fifo() => ('p', Vec::new()),
        () => ('s', Vec::new()),
    };
    Entry {
        kind,
        mode: metadata.mode() & 0o7777,
        node: metadata.rdev(),
        content,
    }
}

/// Returns every change that is not allowed: a name in `may_change` may be made or have another
/// content, but not become something else; only one in `may_go` may be gone.
pub(crate) fn changes(
    before: &Snapshot,
    after: &Snapshot,
    may_change: &[PathBuf],
    may_go: &[PathBuf],
) -> Vec<String> {
    let names: std::collections::BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let changed = names.into_iter().filter_map(|name| {
        let (old, new) = (before.get(name), after.get(name));
        if old == new {
            return None;
        }
        let what = match (old, new) {
            (None, _) => "was made",
            (_, None) if !may_go.contains(name) => {
                return Some(format!("{} is gone", name.display()));
            }
            (_, None) => "is gone",
            (Some(old), Some(new)) if (old.kind, old.node) != (new.kind, new.node) => {
                return Some(format!("{} became another thing", name.display()));
            }
            _ => "has changed",
        };
        let is_fine = may_change.contains(name);
        (!is_fine).then(|| format!("{} {what}", name.display()))
    });
    changed.collect()
}

//! Logs that a rank of `--client` gives to rank 0.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::PathBuf;

use anyhow::Result;
use fathom_hosts::{BulkMessage, Item};
use serde::{Deserialize, Serialize};

/// Log of a rank, in its list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RankLog {
    /// Path, as the job's options make it.
    pub(super) path: String,
    /// Identity of the file, equal for the same file alone.
    pub(super) identity: String,
}

/// Logs that a rank gives to rank 0.
#[derive(Debug, Default)]
pub(crate) struct OfferedLogs {
    /// List, as JSON; empty without logs.
    pub(crate) list: Vec<u8>,
    /// Files and their lengths, in order of the list.
    files: Vec<(PathBuf, u64)>,
}

impl OfferedLogs {
    /// Offers those of these logs that are files.
    pub(crate) fn of(paths: Vec<String>) -> Result<Self> {
        let mut offered = Self::default();
        let mut list = Vec::new();
        for path in paths {
            let found = fs::metadata(&path);
            let Some(found) = found.ok().filter(fs::Metadata::is_file) else {
                continue;
            };
            let identity = identity(&found);
            offered.files.push((path.clone().into(), found.len()));
            list.push(RankLog { path, identity });
        }
        if !list.is_empty() {
            offered.list = serde_json::to_vec(&list)?;
        }
        Ok(offered)
    }

    /// Reads a piece of a log.
    pub(crate) fn piece(&self, place: u32, offset: u64) -> io::Result<BulkMessage> {
        let file = usize::try_from(place).ok();
        let file = file.and_then(|place| self.files.get(place));
        let (path, length) = file.ok_or(io::ErrorKind::NotFound)?;
        let file = File::open(path)?;
        let read = |bytes: &mut [u8], offset| file.read_at(bytes, offset);
        BulkMessage::piece_of_file(Item::File(place), *length, offset, read)
    }
}

/// Returns the identity of a file: its inode, in its file system, under this kernel.
pub(super) fn identity(found: &fs::Metadata) -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    format!("{} {} {}", boot.trim(), found.dev(), found.ino())
}

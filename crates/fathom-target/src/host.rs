//! Facts on the host that target files depend on.

use std::io;
use std::path::Path;

use fathom_host::block_tree::BlockTree;
use fathom_host::safety::{Guard, Refusal};
use fathom_host::target_kind::{FileSystemProbe as _, HostFileSystem, TargetKind};
use fathom_sys::system;

/// Source of facts on the host: this one, or a table in tests.
pub trait Host {
    /// Judges whether a target may serve `path` to others, and returns its kind and size.
    ///
    /// # Errors
    /// The obstacle.
    fn file(&self, path: &Path) -> Result<TargetKind, Obstacle>;

    /// Returns the machine's memory, in bytes.
    fn memory_bytes(&self) -> u64;
}

/// Reason why a file cannot be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// Reason, with the path.
    pub why: String,
    /// Remedy, in the imperative; may be empty.
    pub hint: String,
}

/// The host that the program runs on.
#[derive(Debug)]
pub struct ThisHost {
    guard: Guard,
}

impl ThisHost {
    /// Reads the mounts of the host.
    #[must_use]
    pub fn new() -> Self {
        Self {
            guard: Guard::new(BlockTree::default()),
        }
    }
}

impl Default for ThisHost {
    fn default() -> Self {
        Self::new()
    }
}

impl Host for ThisHost {
    /// Judges the file as if it were written, even where the device is only read: what is mounted
    /// changes under the hosts that have it in their caches.
    fn file(&self, path: &Path) -> Result<TargetKind, Obstacle> {
        self.guard.check(path, true, false).map_err(refused)?;
        let kind = HostFileSystem.kind(&path.to_string_lossy());
        kind.map_err(|error| unreadable(path, &error))
    }

    fn memory_bytes(&self) -> u64 {
        system::memory_bytes()
    }
}

fn refused(refusal: Refusal) -> Obstacle {
    let hint = match &refusal {
        Refusal::InUse { .. } => "choose a device or file that is not in use",
        other => other.hint(),
    };
    Obstacle {
        why: refusal.to_string(),
        hint: hint.to_owned(),
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Obstacle {
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied => "change its permissions, or run as its owner",
        _ => "",
    };
    Obstacle {
        why: format!("{}: {error}", path.display()),
        hint: hint.to_owned(),
    }
}

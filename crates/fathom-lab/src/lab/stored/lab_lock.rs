//! One process at a time for a lab of a history: two would cut each other's runs.

use std::fs;
use std::path::Path;

use crate::lab::machine_lock::{LockFile, lock};
use crate::store::sha256;

/// Right to run a lab of a history, until it is dropped or the process ends in any way.
#[derive(Debug)]
pub(super) struct LabLock(#[expect(dead_code, reason = "held, not read")] LockFile);

impl LabLock {
    /// Takes the right for the lab of this name.
    ///
    /// # Errors
    /// Another process has it; the message names it. Or the lock cannot be created.
    pub(super) fn take(history: &Path, name: &str) -> Result<Self, String> {
        // One lock, whatever links lead to the history.
        let history = fs::canonicalize(history).unwrap_or_else(|_| history.to_owned());
        let mut path = history.into_os_string();
        // A name may be longer than that of a file, and have slashes.
        path.push(format!(".lab-{}", &sha256(name.as_bytes())[..NAME_DIGITS]));
        let why = "this lab is running in another process";
        Ok(Self(lock(Path::new(&path), name, why)?))
    }
}

/// Digits of a lab's name in that of its lock.
const NAME_DIGITS: usize = 16;

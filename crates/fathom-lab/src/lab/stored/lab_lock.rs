//! One process at a time for a lab of a history: two would mark each other's runs as interrupted.

use std::fs;
use std::path::Path;

use crate::lab::lock_file::LockFile;
use crate::store::sha256;

/// Takes the right to run the lab of this name.
///
/// # Errors
/// Another process has it; the message names it. Or the lock cannot be created.
pub(super) fn lock_lab(history: &Path, name: &str) -> Result<LockFile, String> {
    // One lock, whatever links lead to the history.
    let history = fs::canonicalize(history).unwrap_or_else(|_| history.to_owned());
    let mut path = history.into_os_string();
    // A name may be longer than that of a file, and have slashes.
    path.push(format!(".lab-{}", &sha256(name.as_bytes())[..NAME_DIGITS]));
    let taken = "this lab is running in another process";
    LockFile::take(Path::new(&path), name, taken)
}

/// Digits of a lab's name in that of its lock.
const NAME_DIGITS: usize = 16;
